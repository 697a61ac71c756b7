//! Clients that leave before they are answered: what they began is done, and recorded.

use std::{sync::Arc, time::Duration};

use corten_store::backend::memory::Memory;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, sync::Semaphore};

use super::{
    https::{HttpsServer, admin, plain, request, serving},
    server,
};
use crate::{Config, Server, Sink};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const N_MAPS: usize = 100;

/// Records, each with a permit for who waits for it.
struct RecordingSink {
    lines: Mutex<Vec<Vec<u8>>>,
    n_new: Semaphore,
}

impl Sink for RecordingSink {
    fn record(&self, line: Vec<u8>) {
        self.lines.lock().push(line);
        self.n_new.add_permits(1);
    }

    fn dropped(&self) -> u64 {
        0
    }
}

impl RecordingSink {
    /// Waits for the end of a request of this verb.
    async fn end_of(&self, verb: &str) -> Value {
        let found = || {
            let lines = self.lines.lock();
            let events = lines.iter().map(|it| serde_json::from_slice::<Value>(it).expect("a record is JSON"));
            events.into_iter().find(|it| it["stage"] == "ResponseComplete" && it["verb"] == verb)
        };
        loop {
            if let Some(event) = found() {
                return event;
            }
            let waited = tokio::time::timeout(Duration::from_secs(20), self.n_new.acquire()).await;
            waited.expect("it is recorded").expect("it stays open").forget();
        }
    }
}

/// A store whose commits wait at a gate.
struct Gated {
    store: Arc<Memory>,
    kept: Arc<RecordingSink>,
    n_waiting: Arc<Semaphore>,
    gate: Arc<Semaphore>,
}

impl Gated {
    fn new() -> Self {
        Self {
            store: Arc::new(Memory::new()),
            kept: Arc::new(RecordingSink { lines: Mutex::default(), n_new: Semaphore::new(0) }),
            n_waiting: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    fn config(&self) -> Config {
        let mut config = Config { audit: Some(self.kept.clone()), ..server::over(self.store.clone()) };
        config.limits.connections_of_address = 1;
        config
    }

    /// What was recorded until now is forgotten.
    fn close(&self) {
        self.kept.lines.lock().clear();
        let (n_waiting, gate) = (self.n_waiting.clone(), self.gate.clone());
        self.store.faults().delay(Arc::new(move || {
            let (n_waiting, gate) = (n_waiting.clone(), gate.clone());
            Box::pin(async move {
                n_waiting.add_permits(1);
                gate.acquire().await.expect("it stays open").forget();
            })
        }));
    }

    /// Comes when a commit waits.
    async fn is_waited_at(&self) {
        self.n_waiting.acquire().await.expect("it stays open").forget();
    }

    fn open(&self) {
        self.store.faults().no_delay();
        self.gate.add_permits(10_000);
    }
}

async fn names(server: &Server) -> Vec<String> {
    let answer = server.call(admin(), plain("GET", MAPS, "")).await;
    let bytes = answer.into_body().collect().await.expect("a whole body").to_bytes();
    let list: Value = serde_json::from_slice(&bytes).expect("JSON");
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|it| it["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// Comes when no connection is left: with one for each address, another is not served before.
async fn all_are_gone(running: &HttpsServer) {
    let served = async { while !running.is_served().await {} };
    tokio::time::timeout(Duration::from_secs(20), served).await.expect("the connection ends");
}

#[tokio::test]
async fn a_collection_is_deleted_to_its_end_though_the_client_has_left() {
    let gated = Gated::new();
    let running = serving(gated.config()).await;
    for n in 0..N_MAPS {
        let body = json!({ "metadata": { "name": format!("m{n}") } }).to_string();
        assert_eq!(running.server.call(admin(), plain("POST", MAPS, body)).await.status(), 201);
    }
    gated.close();
    let mut stream = running.connect(b"http/1.1").await;
    let head = format!("DELETE {MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    stream.flush().await.expect("it is sent");
    gated.is_waited_at().await;
    drop(stream);
    all_are_gone(&running).await;
    assert_eq!(names(&running.server).await.len(), N_MAPS);
    gated.open();
    let event = gated.kept.end_of("deletecollection").await;
    assert_eq!(event["responseStatus"]["code"], 200, "{event}");
    assert!(names(&running.server).await.is_empty());
    running.end().await;
}

#[tokio::test]
async fn an_object_is_created_and_recorded_though_the_stream_was_cut() {
    let gated = Gated::new();
    let running = serving(gated.config()).await;
    gated.close();
    let io = TokioIo::new(running.connect(b"h2").await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let sent = sender.send_request(request("POST", MAPS, r#"{"metadata":{"name":"cut"}}"#));
    tokio::select! {
        _ = sent => panic!("nothing is committed yet"),
        () = gated.is_waited_at() => {}
    }
    drop(sender);
    connection.abort();
    drop(connection.await);
    all_are_gone(&running).await;
    gated.open();
    let event = gated.kept.end_of("create").await;
    assert_eq!((&event["responseStatus"]["code"], &event["objectRef"]["name"]), (&json!(201), &json!("cut")));
    assert_eq!(names(&running.server).await, ["cut"]);
    running.end().await;
}

#[tokio::test]
async fn what_is_given_up_is_recorded_as_it_was_left() {
    let gated = Gated::new();
    let server = Server::start(gated.config()).await.expect("starts");
    gated.close();
    let body = r#"{"metadata":{"name":"a"}}"#;
    tokio::select! {
        _ = server.call(admin(), plain("POST", MAPS, body)) => panic!("nothing is committed yet"),
        () = gated.is_waited_at() => {}
    }
    let event = gated.kept.end_of("create").await;
    let expected = json!({ "metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200 });
    assert_eq!(event["responseStatus"], expected);
    gated.open();
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_recorded_as_such() {
    let gated = Gated::new();
    let server = Server::start(gated.config()).await.expect("starts");
    gated.close();
    let late = server.call(admin(), plain("POST", &format!("{MAPS}?timeout=2s"), r#"{"metadata":{"name":"a"}}"#)).await;
    assert_eq!(late.status(), 504);
    let event = gated.kept.end_of("create").await;
    assert_eq!(
        (&event["responseStatus"]["code"], &event["responseStatus"]["reason"]),
        (&json!(504), &json!("Timeout"))
    );
    gated.open();
    server.stop().await;
}
