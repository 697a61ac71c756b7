//! The contract of [`Store`] as cases that every engine must pass.

use std::{future::Future, ops::ControlFlow, pin::pin, sync::Arc, task::Poll};

use bytes::Bytes;

use crate::{
    BoxFuture, Change, Changes, Compare, Draft, Entry, Error, Limits, LocalStore, Operation, Outcome, Range, Store,
    Transaction, Txn,
};

/// Makes a new, empty store that keeps so much history.
pub type Make<'a> = &'a dyn Fn(Limits) -> Arc<dyn Store>;

type Case = fn(Arc<dyn Store>) -> BoxFuture<'static, ()>;

const ALL: Limits = Limits { changes: 100_000, bytes: 64 << 20 };
const FEW: Limits = Limits { changes: 10, bytes: 64 << 20 };
const SMALL: Limits = Limits { changes: 100_000, bytes: 1_000 };

const CASES: &[(&str, Limits, Case)] = &[
    ("a new store is empty and at revision 1", ALL, |it| Box::pin(new_store(it))),
    ("revisions count commits", ALL, |it| Box::pin(revisions(it))),
    ("comparisons guard a transaction", ALL, |it| Box::pin(comparisons(it))),
    ("a transaction is all or nothing, at one revision", ALL, |it| Box::pin(atomic(it))),
    ("what changes nothing takes no revision", ALL, |it| Box::pin(no_change(it))),
    ("ranges are ordered, bounded and limited", ALL, |it| Box::pin(ranges(it))),
    ("the past can be read", ALL, |it| Box::pin(past(it))),
    ("watches begin after their revision", ALL, |it| Box::pin(watch_from(it))),
    ("a watch waits, and sees only its range", ALL, |it| Box::pin(watch_waits(it))),
    ("a watch does not split transactions", ALL, |it| Box::pin(watch_whole(it))),
    ("a quiet watch does not fall behind", FEW, |it| Box::pin(quiet_watch(it))),
    ("compaction forgets the past, not the present", ALL, |it| Box::pin(compaction(it))),
    ("only one of many racing writers wins", ALL, |it| Box::pin(race(it))),
    ("a transaction has a largest size", ALL, |it| Box::pin(too_large(it))),
    ("closing ends everything", ALL, |it| Box::pin(closing(it))),
];

/// Of engines that bound their history themselves. A shared store keeps what nobody has compacted.
const OF_A_WINDOW: &[(&str, Limits, Case)] = &[
    ("who falls behind is told", FEW, |it| Box::pin(falls_behind(it))),
    ("history is bounded by bytes too", SMALL, |it| Box::pin(falls_behind(it))),
];

/// # Panics
/// If the store breaks its contract.
pub async fn run(make: Make<'_>) {
    play(CASES, make).await;
    play(OF_A_WINDOW, make).await;
}

/// # Panics
/// If the store breaks the contract of shared stores.
pub async fn run_shared(make: Make<'_>) {
    play(CASES, make).await;
}

/// Makes a new, empty store of this process.
pub type MakeLocal<'a> = &'a dyn Fn() -> Arc<dyn LocalStore>;

/// # Panics
/// If the store breaks the contract of local stores.
pub async fn run_local(make: MakeLocal<'_>) {
    reading_transactions(make()).await;
    given_up(make()).await;
    racing_transactions(make()).await;
    views(make()).await;
}

async fn play(cases: &[(&str, Limits, Case)], make: Make<'_>) {
    for (name, limits, case) in cases {
        let store = make(*limits);
        tracing::info!(name, "conformance");
        case(store.clone()).await;
        store.close().await;
    }
}

fn bytes(text: &str) -> Bytes {
    text.to_owned().into()
}

fn put(key: &str, value: &str) -> Operation {
    Operation::Put { key: bytes(key), value: bytes(value) }
}

fn delete(key: &str) -> Operation {
    Operation::Delete { key: bytes(key) }
}

fn txn(compares: &[(&str, u64)], operations: Vec<Operation>) -> Txn {
    let compares = compares.iter().map(|(key, mod_revision)| Compare { key: bytes(key), mod_revision: *mod_revision });
    Txn { compares: compares.collect(), operations }
}

fn entry(key: &str, value: &str, create_revision: u64, mod_revision: u64, version: u64) -> Entry {
    Entry { key: bytes(key), value: bytes(value), create_revision, mod_revision, version, lease: 0, unreadable: None }
}

async fn commit(store: &Arc<dyn Store>, operations: Vec<Operation>) -> u64 {
    match store.commit(txn(&[], operations)).await {
        Ok(Outcome::Committed(revision)) => revision,
        other => panic!("an unconditional commit was answered with {other:?}"),
    }
}

async fn get(store: &Arc<dyn Store>, key: &str) -> Option<Entry> {
    store.get(key.as_bytes()).await.expect("a store can be read")
}

/// The keys of a range as one line, with `+` if there are more.
async fn keys(store: &Arc<dyn Store>, range: Range, revision: Option<u64>, limit: usize) -> String {
    let page = store.range(range, revision, limit).await.expect("a store can be read");
    assert_eq!(page.revision, revision.unwrap_or(store.revision()));
    let mut keys: Vec<_> = page.entries.iter().map(|it| String::from_utf8_lossy(&it.key).into_owned()).collect();
    keys.extend(page.more.then(|| "+".to_owned()));
    keys.join(" ")
}

async fn watch(store: &Arc<dyn Store>, prefix: &str, after: u64) -> Box<dyn Changes> {
    store.watch(Range::prefix(bytes(prefix)), after).await.expect("the history is there")
}

/// The next `n` changes as `revision+key=value` or `revision-key`.
async fn seen(watch: &mut Box<dyn Changes>, n: usize) -> String {
    let mut changes = Vec::new();
    while changes.len() < n {
        changes.extend(watch.next().await.expect("the watch goes on"));
    }
    changes.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn show(change: &Change) -> String {
    let key = String::from_utf8_lossy(&change.key);
    match &change.entry {
        Some(entry) => format!("{}+{key}={}", change.revision, String::from_utf8_lossy(&entry.value)),
        None => format!("{}-{key}", change.revision),
    }
}

/// Polled once: what is not ready now is not ready without another commit.
async fn waits(watch: &mut Box<dyn Changes>) -> bool {
    let mut next = pin!(watch.next());
    std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending())).await
}

async fn new_store(store: Arc<dyn Store>) {
    assert_eq!(store.revision(), 1);
    assert_eq!(get(&store, "/a").await, None);
    assert_eq!(keys(&store, Range::prefix("/"), None, 0).await, "");
    assert!(waits(&mut watch(&store, "/", 1).await).await);
}

async fn revisions(store: Arc<dyn Store>) {
    assert_eq!(commit(&store, vec![put("/a", "1")]).await, 2);
    assert_eq!(commit(&store, vec![put("/b", "1")]).await, 3);
    assert_eq!(commit(&store, vec![put("/a", "2")]).await, 4);
    assert_eq!(get(&store, "/a").await, Some(entry("/a", "2", 2, 4, 2)));
    assert_eq!(commit(&store, vec![delete("/a")]).await, 5);
    assert_eq!(get(&store, "/a").await, None);
    // Made anew, it is another one.
    assert_eq!(commit(&store, vec![put("/a", "3")]).await, 6);
    assert_eq!(get(&store, "/a").await, Some(entry("/a", "3", 6, 6, 1)));
    assert_eq!(store.revision(), 6);
}

async fn comparisons(store: Arc<dyn Store>) {
    let commit_if = async |compares: &[(&str, u64)], operation| {
        store.commit(txn(compares, vec![operation])).await.expect("a store can be written")
    };
    assert_eq!(commit_if(&[("/a", 0)], put("/a", "1")).await, Outcome::Committed(2));
    let there = Some(entry("/a", "1", 2, 2, 1));
    assert_eq!(commit_if(&[("/a", 0)], put("/a", "2")).await, Outcome::Conflict(there.clone()));
    assert_eq!(commit_if(&[("/a", 1)], put("/a", "2")).await, Outcome::Conflict(there.clone()));
    assert_eq!(commit_if(&[("/a", 3)], delete("/a")).await, Outcome::Conflict(there.clone()));
    assert_eq!(commit_if(&[("/b", 2)], put("/b", "2")).await, Outcome::Conflict(None));
    assert_eq!(commit_if(&[("/a", 2), ("/b", 7)], put("/a", "2")).await, Outcome::Conflict(None));
    assert_eq!(get(&store, "/a").await, there);
    assert_eq!(commit_if(&[("/a", 2), ("/b", 0)], put("/b", "2")).await, Outcome::Committed(3));
    assert_eq!(commit_if(&[("/a", 2)], delete("/a")).await, Outcome::Committed(4));
    assert_eq!(store.revision(), 4);
}

async fn atomic(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    assert_eq!(commit(&store, vec![put("/a", "1"), put("/b", "1"), put("/c", "1")]).await, 2);
    assert_eq!(commit(&store, vec![delete("/a"), put("/b", "2"), put("/d", "1")]).await, 3);
    assert_eq!(seen(&mut watch, 6).await, "2+/a=1 2+/b=1 2+/c=1 3-/a 3+/b=2 3+/d=1");
    assert_eq!(keys(&store, Range::prefix("/"), None, 0).await, "/b /c /d");
    // The last operation on a key counts.
    assert_eq!(commit(&store, vec![put("/a", "1"), put("/a", "2"), delete("/b"), put("/b", "3")]).await, 4);
    assert_eq!(seen(&mut watch, 2).await, "4+/a=2 4+/b=3");
    assert_eq!(get(&store, "/b").await, Some(entry("/b", "3", 2, 4, 3)));
}

async fn no_change(store: Arc<dyn Store>) {
    assert_eq!(commit(&store, vec![]).await, 1);
    assert_eq!(commit(&store, vec![delete("/a")]).await, 1);
    assert_eq!(commit(&store, vec![put("/a", "1"), delete("/a")]).await, 1);
    assert_eq!(commit(&store, vec![delete("/a"), put("/b", "1")]).await, 2);
    let mut watch = watch(&store, "/", 1).await;
    assert_eq!(seen(&mut watch, 1).await, "2+/b=1");
    // The same value again is a change.
    assert_eq!(commit(&store, vec![put("/b", "1")]).await, 3);
    let refused = store.commit(txn(&[("/b", 2)], vec![])).await.expect("a store can be written");
    assert_eq!(refused, Outcome::Conflict(Some(entry("/b", "1", 2, 3, 2))));
}

async fn ranges(store: Arc<dyn Store>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    for key in ["/b/2", "/a/1", "/b/1", "/b", "/c", "/b/10", "/b0"] {
        commit(&store, vec![put(key, "")]).await;
    }
    let range = |start: &str, end| Range { start: bytes(start), end };
    let cases = [
        (Range::prefix("/b/"), 0, "/b/1 /b/10 /b/2"),
        (Range::prefix("/b/"), 2, "/b/1 /b/10 +"),
        (Range::prefix("/b/"), 3, "/b/1 /b/10 /b/2"),
        (Range::prefix("/"), 0, "/a/1 /b /b/1 /b/10 /b/2 /b0 /c"),
        (Range::prefix(""), 1, "/a/1 +"),
        (Range::prefix("/x"), 0, ""),
        (range("/b/10", Excluded(bytes("/c"))), 0, "/b/10 /b/2 /b0"),
        (range("/b/10", Included(bytes("/c"))), 0, "/b/10 /b/2 /b0 /c"),
        (range("/b/10\0", Excluded(bytes("/b0"))), 0, "/b/2"),
        (range("/b0", Unbounded), 0, "/b0 /c"),
        (range("/c", Excluded(bytes("/b"))), 0, ""),
        (range("/c", Excluded(bytes("/c"))), 0, ""),
        (range("/c", Included(bytes("/b"))), 0, ""),
    ];
    for (range, limit, expected) in cases {
        assert_eq!(keys(&store, range.clone(), None, limit).await, expected, "{range:?} {limit}");
    }
    let top = Range::prefix(vec![0xff, 0xff]);
    assert_eq!(top.end, Unbounded);
}

async fn past(store: Arc<dyn Store>) {
    commit(&store, vec![put("/a", "1"), put("/z", "1")]).await;
    commit(&store, vec![put("/b", "1")]).await;
    commit(&store, vec![put("/a", "2"), delete("/b")]).await;
    commit(&store, vec![put("/b", "2"), delete("/a")]).await;
    let read = async |revision| {
        let page = store.range(Range::prefix("/"), Some(revision), 0).await.expect("the past is kept");
        let show = |it: &Entry| format!("{}={}", String::from_utf8_lossy(&it.key), String::from_utf8_lossy(&it.value));
        page.entries.iter().map(show).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(1).await, "");
    assert_eq!(read(2).await, "/a=1 /z=1");
    assert_eq!(read(3).await, "/a=1 /b=1 /z=1");
    assert_eq!(read(4).await, "/a=2 /z=1");
    assert_eq!(read(5).await, "/b=2 /z=1");
    assert_eq!(keys(&store, Range::prefix("/"), Some(3), 2).await, "/a /b +");
    let future = store.range(Range::prefix("/"), Some(6), 0).await;
    assert!(matches!(future, Err(Error::Future { asked: 6, newest: 5 })), "{future:?}");
}

async fn watch_from(store: Arc<dyn Store>) {
    for n in 2..6 {
        commit(&store, vec![put("/a", &n.to_string())]).await;
    }
    for after in 1..5 {
        let expected: Vec<_> = (after + 1..6).map(|it| format!("{it}+/a={it}")).collect();
        assert_eq!(seen(&mut watch(&store, "/", after).await, expected.len()).await, expected.join(" "));
    }
    assert!(waits(&mut watch(&store, "/", 5).await).await);
    assert!(matches!(store.watch(Range::prefix("/"), 6).await.err(), Some(Error::Future { asked: 6, newest: 5 })));

    let mut watch = watch(&store, "/", 4).await;
    let changes = watch.next().await.expect("the watch goes on");
    assert_eq!(changes[0].previous, Some(entry("/a", "4", 2, 4, 3)));
    assert_eq!(changes[0].entry, Some(entry("/a", "5", 2, 5, 4)));
}

async fn watch_waits(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/b/", 1).await;
    commit(&store, vec![put("/a", "1")]).await;
    assert!(waits(&mut watch).await);
    commit(&store, vec![put("/a", "2"), put("/b/1", "1")]).await;
    commit(&store, vec![put("/b0", "1")]).await;
    assert_eq!(seen(&mut watch, 1).await, "3+/b/1=1");
    assert!(waits(&mut watch).await);
    // A future given up while it waited has lost nothing.
    let (next, _) = tokio::join!(watch.next(), commit(&store, vec![delete("/b/1")]));
    assert_eq!(next.expect("the watch goes on").iter().map(show).collect::<String>(), "5-/b/1");
}

async fn watch_whole(store: Arc<dyn Store>) {
    const N: u64 = 700;
    for n in 0..5 {
        let operations = (0..N).map(|it| put(&format!("/{it:04}"), &n.to_string())).collect();
        commit(&store, operations).await;
    }
    let mut watch = watch(&store, "/", 1).await;
    let mut per_revision = std::collections::BTreeMap::new();
    while per_revision.len() < 5 {
        let batch = watch.next().await.expect("the watch goes on");
        assert!(batch.is_sorted_by_key(|it| (it.revision, it.key.clone())));
        for change in &batch {
            *per_revision.entry(change.revision).or_insert(0) += 1;
        }
        assert!(per_revision.values().all(|it| *it == N), "{per_revision:?}");
    }
}

async fn falls_behind(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    for n in 0..50 {
        commit(&store, vec![put("/a", &n.to_string().repeat(100))]).await;
    }
    for _ in 0..2 {
        let error = watch.next().await.expect_err("the history is gone");
        assert!(matches!(error, Error::Compacted { asked: 1, .. }), "{error}");
    }
    let error = store.watch(Range::prefix("/"), 2).await.err();
    assert!(matches!(error, Some(Error::Compacted { asked: 2, .. })), "{error:?}");
    let error = store.range(Range::prefix("/"), Some(2), 0).await.err();
    assert!(matches!(error, Some(Error::Compacted { asked: 2, .. })), "{error:?}");
    let Some(Error::Compacted { oldest, .. }) = error else { unreachable!("it was just compared") };
    let mut oldest_watch = store.watch(Range::prefix("/"), oldest).await.expect("the oldest is kept");
    assert_eq!(oldest_watch.next().await.expect("the watch goes on")[0].revision, oldest + 1);
}

async fn quiet_watch(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/quiet", 1).await;
    for n in 0..50 {
        commit(&store, vec![put("/a", &n.to_string())]).await;
    }
    commit(&store, vec![put("/quiet", "1")]).await;
    assert_eq!(seen(&mut watch, 1).await, "52+/quiet=1");
}

async fn compaction(store: Arc<dyn Store>) {
    for n in 2..8 {
        commit(&store, vec![put("/a", &n.to_string())]).await;
    }
    let mut behind = watch(&store, "/", 3).await;
    let mut in_time = watch(&store, "/", 5).await;
    store.compact(5).await.expect("the revision is there");
    store.compact(4).await.expect("it is done already");
    assert!(matches!(behind.next().await, Err(Error::Compacted { asked: 3, oldest: 5 })));
    assert_eq!(seen(&mut in_time, 2).await, "6+/a=6 7+/a=7");
    assert_eq!(keys(&store, Range::prefix("/"), Some(5), 0).await, "/a");
    let error = store.range(Range::prefix("/"), Some(4), 0).await;
    assert!(matches!(error, Err(Error::Compacted { asked: 4, oldest: 5 })), "{error:?}");
    assert!(matches!(store.compact(8).await, Err(Error::Future { asked: 8, newest: 7 })));
    assert_eq!(get(&store, "/a").await, Some(entry("/a", "7", 2, 7, 6)));
}

async fn race(store: Arc<dyn Store>) {
    const WRITERS: u64 = 20;
    let writers = (0..WRITERS).map(|it| {
        let store = store.clone();
        tokio::spawn(async move { store.commit(txn(&[("/lock", 0)], vec![put("/lock", &it.to_string())])).await })
    });
    let mut n_won = 0;
    for writer in writers.collect::<Vec<_>>() {
        let outcome = writer.await.expect("a writer ends").expect("a store can be written");
        n_won += u64::from(matches!(outcome, Outcome::Committed(2)));
    }
    assert_eq!((n_won, store.revision()), (1, 2));
}

async fn too_large(store: Arc<dyn Store>) {
    let value = Bytes::from(vec![0; 33 << 20]);
    let put = |key: &str| Operation::Put { key: bytes(key), value: value.clone() };
    let refused = store.commit(txn(&[], vec![put("/a"), put("/b")])).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
    assert_eq!(store.revision(), 1);
}

async fn closing(store: Arc<dyn Store>) {
    let mut watch = watch(&store, "/", 1).await;
    commit(&store, vec![put("/a", "1")]).await;
    store.close().await;
    assert_eq!(seen(&mut watch, 1).await, "2+/a=1");
    for _ in 0..2 {
        assert!(matches!(watch.next().await, Err(Error::Closed)));
    }
    assert!(matches!(store.get(b"/a").await, Err(Error::Closed)));
    assert!(matches!(store.range(Range::prefix("/"), None, 0).await, Err(Error::Closed)));
    assert!(matches!(store.commit(txn(&[], vec![put("/a", "2")])).await, Err(Error::Closed)));
    assert!(matches!(store.watch(Range::prefix("/"), 1).await.err(), Some(Error::Closed)));
    assert!(matches!(store.compact(1).await, Err(Error::Closed)));
    assert_eq!(store.revision(), 2);
}

async fn transact(
    store: &Arc<dyn LocalStore>,
    body: impl Fn(&mut Draft<'_>) -> ControlFlow<()> + Send + Sync + 'static,
) -> u64 {
    let transaction = Transaction { bytes: 0, body: Arc::new(body) };
    store.transact(transaction).await.expect("a store can be written")
}

async fn reading_transactions(store: Arc<dyn LocalStore>) {
    let mut watch = watch(&(store.clone() as Arc<dyn Store>), "/", 1).await;
    let revision = transact(&store, |draft| {
        assert_eq!((draft.revision(), draft.has_written()), (1, false));
        assert_eq!(draft.put(bytes("/a"), bytes("1"), 7), None);
        draft.put(bytes("/b"), bytes("1"), 0);
        assert_eq!(draft.get(b"/a").map(|it| (it.version, it.lease)), Some((1, 7)));
        assert_eq!((draft.revision(), draft.entries(&Range::prefix("/")).count()), (2, 2));
        ControlFlow::Continue(())
    });
    assert_eq!(revision.await, 2);
    let revision = transact(&store, |draft| {
        let before = draft.put(bytes("/a"), bytes("2"), 0).expect("it was there");
        assert_eq!((before.version, before.mod_revision), (1, 2));
        draft.put(bytes("/a"), bytes("3"), 9);
        assert_eq!(draft.delete(&bytes("/none")), None);
        draft.delete(&bytes("/b"));
        // Made anew, it is another one.
        draft.put(bytes("/b"), bytes("2"), 0);
        draft.put(bytes("/c"), bytes("1"), 0);
        draft.delete(&bytes("/c"));
        ControlFlow::Continue(())
    });
    assert_eq!(revision.await, 3);
    assert_eq!(seen(&mut watch, 4).await, "2+/a=1 2+/b=1 3+/a=3 3+/b=2");
    let now = |key: &'static str| store.get(key.as_bytes());
    assert_eq!(now("/a").await.expect("it is read"), Some(Entry { lease: 9, ..entry("/a", "3", 2, 3, 3) }));
    assert_eq!(now("/b").await.expect("it is read"), Some(entry("/b", "2", 3, 3, 1)));
    // An operation that knows of no lease takes it away.
    commit(&(store.clone() as Arc<dyn Store>), vec![put("/a", "4")]).await;
    assert_eq!(now("/a").await.expect("it is read"), Some(entry("/a", "4", 2, 4, 4)));
    let nothing = transact(&store, |draft| {
        draft.put(bytes("/d"), bytes(""), 0);
        draft.delete(&bytes("/d"));
        ControlFlow::Continue(())
    });
    assert_eq!(nothing.await, 4);
}

async fn given_up(store: Arc<dyn LocalStore>) {
    transact(&store, |draft| {
        draft.put(bytes("/a"), bytes("1"), 0);
        ControlFlow::Continue(())
    })
    .await;
    let revision = transact(&store, |draft| {
        draft.put(bytes("/a"), bytes("2"), 0);
        draft.put(bytes("/b"), bytes("2"), 0);
        ControlFlow::Break(())
    });
    assert_eq!(revision.await, 2);
    assert_eq!(store.get(b"/a").await.expect("it is read"), Some(entry("/a", "1", 2, 2, 1)));
    assert_eq!(store.get(b"/b").await.expect("it is read"), None);
}

async fn racing_transactions(store: Arc<dyn LocalStore>) {
    const WRITERS: usize = 50;
    let writers = (0..WRITERS).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            transact(&store, |draft| {
                let n = draft.get(b"/n").map_or(0, |it| it.value.len());
                draft.put(bytes("/n"), vec![b'x'; n + 1].into(), 0);
                ControlFlow::Continue(())
            })
            .await
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer ends");
    }
    let all = store.get(b"/n").await.expect("it is read").expect("it is there");
    assert_eq!((all.value.len(), all.version, store.revision()), (WRITERS, WRITERS as u64, WRITERS as u64 + 1));
}

async fn views(store: Arc<dyn LocalStore>) {
    for value in ["2", "3", "4", "5"] {
        commit(&(store.clone() as Arc<dyn Store>), vec![put("/a", value), put("/b", value)]).await;
    }
    let all = Range::prefix("/");
    let then = store.view(&all, Some(3)).expect("the past is kept");
    let now = store.view(&all, None).expect("a store can be read");
    commit(&(store.clone() as Arc<dyn Store>), vec![delete("/a")]).await;
    let values = |it: &crate::View| {
        it.entries().rev().map(|it| String::from_utf8_lossy(&it.value).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!((values(&then), then.revision(), then.newest()), (vec!["3".to_owned(), "3".into()], 3, 5));
    assert_eq!((values(&now), now.revision(), now.newest()), (vec!["5".to_owned(), "5".into()], 5, 5));
    assert_eq!(then.get(b"/a").map(|it| it.version), Some(2));
    assert!(matches!(store.view(&all, Some(7)).err(), Some(Error::Future { asked: 7, newest: 6 })));
    assert_eq!(store.oldest(), 1);
    store.compact(4).await.expect("the revision is there");
    assert_eq!(store.oldest(), 4);
    assert!(matches!(store.view(&all, Some(3)).err(), Some(Error::Compacted { asked: 3, oldest: 4 })));
    store.close().await;
    assert!(matches!(store.view(&all, None).err(), Some(Error::Closed)));
}
