use corten_etcd_api::{
    WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchRequestKind, WatchResponse, method,
};
use corten_store::Operation;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tonic::{Streaming, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

use super::*;

/// One stream of watches.
struct Watching {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
}

impl Watching {
    async fn begin(serving: &Serving) -> Self {
        let channel = Endpoint::from_shared(serving.url.clone()).expect("a URL").connect().await.expect("it answers");
        let (requests, mut sent) = mpsc::channel(8);
        let mut grpc = Grpc::new(channel).max_decoding_message_size(64 << 20);
        grpc.ready().await.expect("it is ready");
        let request = tonic::Request::new(futures_util::stream::poll_fn(move |context| sent.poll_recv(context)));
        let (path, codec) = (PathAndQuery::from_static(method::WATCH), ProstCodec::default());
        let responses = grpc.streaming(request, path, codec).await.expect("it begins").into_inner();
        Self { requests, responses }
    }

    async fn ask(&self, request: WatchRequestKind) {
        self.requests.send(WatchRequest { request: Some(request) }).await.expect("the stream goes on");
    }

    async fn create(&mut self, asked: WatchCreateRequest) -> WatchResponse {
        self.ask(WatchRequestKind::Create(asked)).await;
        let created = self.next().await;
        assert!(created.created, "{created:?}");
        created
    }

    async fn next(&mut self) -> WatchResponse {
        self.responses.message().await.expect("the stream goes on").expect("the stream goes on")
    }

    /// The next events as `id revision+key=value(before)` or `id revision-key(before)`.
    async fn seen(&mut self) -> String {
        let response = self.next().await;
        let text = |it: &Bytes| String::from_utf8_lossy(it).into_owned();
        let event = |it: &corten_etcd_api::Event| {
            let kv = it.kv.as_ref().expect("an event has a key");
            let before = it.prev_kv.as_ref().map_or_else(String::new, |it| format!("({})", text(&it.value)));
            match it.kind {
                0 => format!("{}+{}={}{before}", kv.mod_revision, text(&kv.key), text(&kv.value)),
                _ => format!("{}-{}{before}", kv.mod_revision, text(&kv.key)),
            }
        };
        format!("{} {}", response.watch_id, response.events.iter().map(event).collect::<Vec<_>>().join(" "))
    }
}

fn watch(key: &str, end: &str, start_revision: i64) -> WatchCreateRequest {
    WatchCreateRequest { key: bytes(key), range_end: bytes(end), start_revision, ..WatchCreateRequest::default() }
}

#[tokio::test]
async fn watches_of_one_stream_are_told_apart() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    let core = &server.core;
    puts(core, &[("a", "1"), ("b", "1"), ("a", "2")]).await;
    let mut stream = Watching::begin(&serving).await;
    // From now on, from the past with what was there before, and from a revision that is still to come.
    let created = stream.create(watch("a", "", 0)).await;
    assert_eq!((created.watch_id, created.header.expect("it has one").revision), (0, 4));
    assert_eq!(stream.create(WatchCreateRequest { prev_kv: true, ..watch("a", "z", 2) }).await.watch_id, 1);
    assert_eq!(stream.seen().await, "1 2+a=1 3+b=1 4+a=2(1)");
    assert_eq!(stream.create(WatchCreateRequest { watch_id: 9, ..watch("", "\0", 6) }).await.watch_id, 9);
    puts(core, &[("a", "3")]).await;
    let mut both = [stream.seen().await, stream.seen().await];
    both.sort();
    assert_eq!(both, ["0 5+a=3", "1 5+a=3(2)"]);
    kv::delete_range(core.clone(), delete("b", "")).await.expect("it is deleted");
    let mut both = [stream.seen().await, stream.seen().await];
    both.sort();
    assert_eq!(both, ["1 6-b(1)", "9 6-b"]);
    // One that is cancelled is told nothing any more.
    stream.ask(WatchRequestKind::Cancel(WatchCancelRequest { watch_id: 1 })).await;
    let ended = stream.next().await;
    assert!(ended.canceled && ended.watch_id == 1, "{ended:?}");
    puts(core, &[("c", "1")]).await;
    assert_eq!(stream.seen().await, "9 7+c=1");
}

#[tokio::test]
async fn filters_leave_out_puts_or_deletions() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    puts(&server.core, &[("a", "1")]).await;
    kv::delete_range(server.core.clone(), delete("a", "")).await.expect("it is deleted");
    let mut stream = Watching::begin(&serving).await;
    stream.create(WatchCreateRequest { filters: vec![1], ..watch("a", "", 2) }).await;
    assert_eq!(stream.seen().await, "0 2+a=1");
    stream.create(WatchCreateRequest { filters: vec![0], ..watch("a", "", 2) }).await;
    assert_eq!(stream.seen().await, "1 3-a");
}

#[tokio::test]
async fn progress_is_told_after_all_events() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    let mut stream = Watching::begin(&serving).await;
    stream.create(watch("a", "", 0)).await;
    for n in 0..50 {
        let operations = ["a", "b"].map(|it| Operation::Put { key: bytes(it), value: bytes(&n.to_string()) });
        let txn = corten_store::Txn { compares: Vec::new(), operations: operations.to_vec() };
        server.core.store.commit(txn).await.expect("it is written");
        puts(&server.core, &[("b", "x")]).await;
        stream.ask(WatchRequestKind::Progress(WatchProgressRequest {})).await;
        let revision = 2 * n + 2;
        assert_eq!(stream.seen().await, format!("0 {revision}+a={n}"));
        let progress = stream.next().await;
        assert!(progress.events.is_empty() && progress.watch_id == -1, "{progress:?}");
        assert_eq!(progress.header.expect("it has one").revision, revision + 1);
    }
}

#[tokio::test]
async fn what_is_compacted_ends_a_watch_with_the_oldest_revision() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    puts(&server.core, &[("a", "1"), ("a", "2"), ("b", "1"), ("a", "3")]).await;
    server.core.store.compact(3).await.expect("the revision is there");
    let mut stream = Watching::begin(&serving).await;
    let ended = {
        stream.create(watch("a", "", 2)).await;
        stream.next().await
    };
    assert!(ended.canceled, "{ended:?}");
    assert_eq!((ended.watch_id, ended.compact_revision), (0, 3));
    // From there on, what the oldest revision has left is told, too.
    stream.create(watch("a", "z", ended.compact_revision)).await;
    assert_eq!(stream.seen().await, "1 3+a=2");
    assert_eq!(stream.seen().await, "1 4+b=1 5+a=3");
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_alone() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    let mut stream = Watching::begin(&serving).await;
    stream.create(WatchCreateRequest { watch_id: 4, ..watch("a", "", 0) }).await;
    let twice = stream.create(WatchCreateRequest { watch_id: 4, ..watch("b", "", 0) }).await;
    assert!(twice.canceled && twice.watch_id == -1 && twice.cancel_reason.contains("duplicate watch ID"), "{twice:?}");
    let empty = stream.create(watch("b", "a", 0)).await;
    assert!(empty.canceled && empty.cancel_reason.contains("range is empty"), "{empty:?}");
    puts(&server.core, &[("a", "1")]).await;
    assert_eq!(stream.seen().await, "4 2+a=1");
}

#[tokio::test]
async fn a_large_response_comes_in_parts_where_that_is_asked_for() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    let value = "x".repeat(400 << 10);
    puts(&server.core, &[("a", &value), ("b", &value), ("c", &value), ("d", &value), ("e", &value)]).await;
    let mut stream = Watching::begin(&serving).await;
    stream.create(WatchCreateRequest { fragment: true, ..watch("", "\0", 2) }).await;
    let parts = [stream.next().await, stream.next().await];
    assert_eq!(parts.each_ref().map(|it| (it.events.len(), it.fragment)), [(3, true), (2, false)]);
    stream.create(watch("", "\0", 2)).await;
    let whole = stream.next().await;
    assert_eq!((whole.events.len(), whole.fragment), (5, false));
}

#[tokio::test]
async fn an_empty_key_is_the_first_one() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    let mut stream = Watching::begin(&serving).await;
    stream.create(watch("", "", 2)).await;
    stream.create(watch("", "b", 2)).await;
    puts(&server.core, &[("b", "1"), ("a", "1"), ("\0", "1")]).await;
    let mut seen = String::new();
    while !(seen.contains("0 4+\0=1") && seen.contains("1 3+a=1") && seen.matches("4+").count() == 2) {
        seen += &stream.seen().await;
    }
    assert!(!seen.contains("b=") && seen.matches("a=").count() == 1, "{seen}");
}

#[tokio::test]
async fn a_stream_has_so_many_watches() {
    let server = in_memory().await;
    let serving = Serving::begin(&server).await;
    let mut stream = Watching::begin(&serving).await;
    for _ in 0..10_000 {
        assert!(!stream.create(watch("a", "", 0)).await.canceled);
    }
    let refused = stream.create(watch("a", "", 0)).await;
    assert!(refused.canceled && refused.cancel_reason.contains("too many watches"), "{refused:?}");
    stream.ask(WatchRequestKind::Cancel(WatchCancelRequest { watch_id: 7 })).await;
    assert!(stream.next().await.canceled);
    assert!(!stream.create(watch("a", "", 0)).await.canceled, "there is room again");
}
