//! Against a real etcd, whose programs are in the folder that `CORTEN_ETCD` names.

mod etcd;
mod faults;
mod proxy;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_store::{Changes, Compare, Error, Limits, Operation, Outcome, Range, Store, Txn, conformance};
use parking_lot::Mutex;

use self::etcd::Etcd;
use super::options;
use crate::{Options, StartError, compaction, store::EtcdStore};

async fn store(url: &str) -> Arc<EtcdStore> {
    Arc::new(EtcdStore::connect(&options(url), Limits::default()).await.expect("etcd answers"))
}

fn put(key: &str, value: impl Into<Bytes>) -> Operation {
    Operation::Put { key: key.to_owned().into(), value: value.into() }
}

fn txn(compares: &[(&str, u64)], operations: Vec<Operation>) -> Txn {
    let compare = |it: &(&str, u64)| Compare { key: it.0.to_owned().into(), mod_revision: it.1 };
    Txn { compares: compares.iter().map(compare).collect(), operations }
}

async fn commit(store: &EtcdStore, operations: Vec<Operation>) -> u64 {
    match store.commit(txn(&[], operations)).await {
        Ok(Outcome::Committed(revision)) => revision,
        other => panic!("an unconditional commit was answered with {other:?}"),
    }
}

async fn changes(watch: &mut Box<dyn Changes>, n: usize) -> Vec<(u64, String)> {
    let mut seen = Vec::new();
    while seen.len() < n {
        let batch = watch.next().await.expect("the watch goes on");
        seen.extend(batch.into_iter().map(|it| (it.revision, String::from_utf8_lossy(&it.key).into_owned())));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_contract() {
    let running: Mutex<Option<Etcd>> = Mutex::default();
    let make = |limits: Limits| -> Arc<dyn Store> {
        let etcd = Etcd::start(&["--max-txn-ops=1024"]);
        let options = options(etcd.url());
        *running.lock() = Some(etcd);
        let connecting = EtcdStore::connect(&options, limits);
        let runtime = tokio::runtime::Handle::current();
        Arc::new(tokio::task::block_in_place(|| runtime.block_on(connecting)).expect("etcd answers"))
    };
    conformance::run_shared(&make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_is_read_and_watched_in_parts() {
    const N: usize = 2_000;
    let etcd = Etcd::start(&[]);
    let store = store(etcd.url()).await;
    let mut watch = store.watch(Range::prefix("/registry/"), 1).await.expect("a watch");
    let keys: Vec<String> = (0..N).map(|it| format!("/registry/{it:05}")).collect();
    for keys in keys.chunks(100) {
        commit(&store, keys.iter().map(|it| put(it, vec![b'x'; 5_000])).collect()).await;
    }
    let seen: Vec<String> = changes(&mut watch, N).await.into_iter().map(|it| it.1).collect();
    assert_eq!(seen, keys);
    // Beginning late, etcd has all of it to tell at once, and splits it.
    let mut late = store.watch(Range::prefix("/registry/"), 1).await.expect("a watch");
    assert_eq!(changes(&mut late, N).await.into_iter().map(|it| it.1).collect::<Vec<_>>(), keys);

    let read = async |limit| {
        let page = store.range(Range::prefix("/registry/"), None, limit).await.expect("it is read");
        let keys = page.entries.iter().map(|it| String::from_utf8_lossy(&it.key).into_owned());
        (keys.collect::<Vec<_>>(), page.more)
    };
    assert_eq!(read(0).await, (keys.clone(), false));
    assert_eq!(read(700).await, (keys[..700].to_vec(), true));
    assert_eq!(read(N).await, (keys.clone(), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_elsewhere_is_known() {
    let etcd = Etcd::start(&[]);
    let (one, other) = (store(etcd.url()).await, store(etcd.url()).await);
    let mut watch = one.watch(Range::prefix("/registry/a/"), 1).await.expect("a watch");
    let revision = commit(&other, vec![put("/registry/b/1", "1")]).await;
    assert_eq!(one.newest().await.expect("etcd answers"), revision);
    // No change of the range tells so: the member is asked.
    while watch.progress() < Some(revision) {
        watch.woken().await;
    }
    assert!(watch.ready().is_none());
    let revision = commit(&other, vec![put("/registry/a/1", "1")]).await;
    assert_eq!(changes(&mut watch, 1).await, [(revision, "/registry/a/1".to_owned())]);
    assert_eq!(watch.progress(), Some(revision));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_gone_when_its_writer_is() {
    let etcd = Etcd::start(&[]);
    let store = store(etcd.url()).await;
    let mut watch = store.watch(Range::prefix("/registry/masterleases/"), 1).await.expect("a watch");
    let put = async |key: &'static str, seconds| store.put_for(seconds, key.into(), "1".into()).await.expect("written");
    put("/registry/masterleases/192.0.2.1", 600).await;
    put("/registry/masterleases/192.0.2.2", 1).await;
    // Written again it lasts longer, though the lease of before ends.
    put("/registry/masterleases/192.0.2.3", 1).await;
    put("/registry/masterleases/192.0.2.3", 600).await;
    let mut gone = Vec::new();
    while gone.is_empty() {
        let changes = watch.next().await.expect("the watch goes on");
        gone.extend(changes.into_iter().filter(|it| it.entry.is_none()).map(|it| it.key));
    }
    assert_eq!(gone, ["/registry/masterleases/192.0.2.2"]);
    store.take_back("/registry/masterleases/192.0.2.1".into()).await.expect("taken back");
    let left = store.range(Range::prefix("/registry/masterleases/"), None, 0).await.expect("it is read");
    let keys: Vec<_> = left.entries.iter().map(|it| it.key.clone()).collect();
    assert_eq!(keys, ["/registry/masterleases/192.0.2.3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_forget_is_told() {
    let etcd = Etcd::start(&[]);
    let (one, other) = (store(etcd.url()).await, store(etcd.url()).await);
    for value in ["2", "3", "4", "5"] {
        commit(&one, vec![put("/registry/a", value)]).await;
    }
    other.compact(4).await.expect("the revision is there");
    let gone = one.range(Range::prefix("/registry/"), Some(3), 0).await;
    assert!(matches!(gone, Err(Error::Compacted { asked: 3, oldest: 4 })), "{gone:?}");
    let mut watch = one.watch(Range::prefix("/registry/"), 1).await.expect("nobody has told it yet");
    for _ in 0..2 {
        let ended = watch.next().await;
        assert!(matches!(ended, Err(Error::Compacted { asked: 1, oldest: 4 })), "{ended:?}");
    }
    assert!(matches!(one.watch(Range::prefix("/registry/"), 2).await.err(), Some(Error::Compacted { asked: 2, .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_is_taken_in_turns() {
    let etcd = Etcd::start(&[]);
    let (one, other) = (store(etcd.url()).await, store(etcd.url()).await);
    let written = async || one.get(b"compact_rev_key").await.expect("etcd answers").expect("it is there").value;
    let first = compaction::next(&one, compaction::Round::default()).await.expect("etcd answers");
    assert_eq!(written().await, "0");
    let late = compaction::next(&other, compaction::Round::default()).await.expect("etcd answers");
    let at = commit(&one, vec![put("/registry/a", "1")]).await;
    // The round that came too late learns where the first is, and may take the next.
    compaction::next(&other, late).await.expect("etcd answers");
    assert_eq!(written().await, (at - 1).to_string());
    let too_late = compaction::next(&one, first).await.expect("etcd answers");
    compaction::next(&one, too_late).await.expect("etcd answers");
    let gone = other.range(Range::prefix("/registry/"), Some(at - 1), 0).await;
    assert!(matches!(gone, Err(Error::Compacted { .. })), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_of_the_clusters_own() {
    let etcd = Etcd::start(&[]);
    let own = Options { prefix: "other/cluster/".into(), ..options(etcd.url()) };
    let own = EtcdStore::connect(&own, Limits::default()).await.expect("etcd answers");
    let plain = store(etcd.url()).await;
    let mut watch = own.watch(Range::prefix("/registry/"), 1).await.expect("a watch");
    commit(&plain, vec![put("/registry/pods/a", "plain")]).await;
    let revision = commit(&own, vec![put("/registry/pods/a", "own")]).await;
    assert_eq!(changes(&mut watch, 1).await, [(revision, "/registry/pods/a".to_owned())]);
    let page = own.range(Range::prefix("/registry/"), None, 0).await.expect("it is read");
    assert_eq!(
        page.entries.iter().map(|it| (&*it.key, &*it.value)).collect::<Vec<_>>(),
        [(&b"/registry/pods/a"[..], &b"own"[..])]
    );
    let stored = plain.get(b"/other/cluster/pods/a").await.expect("etcd answers").expect("it is there");
    assert_eq!(&*stored.value, b"own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_told() {
    let etcd = Etcd::start(&[]);
    let store = store(etcd.url()).await;
    for operations in [
        vec![put("/registry/a", vec![b'x'; 2 << 20])],
        vec![put("/registry/a", vec![b'x'; 8 << 20])],
        (0..200).map(|it| put(&format!("/registry/{it}"), "")).collect(),
    ] {
        let refused = store.commit(txn(&[], operations)).await;
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    }
    assert_eq!(store.newest().await.expect("etcd answers"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_etcd_takes_deletions_only() {
    let etcd = Etcd::start(&["--quota-backend-bytes=4194304", "--backend-batch-limit=1"]);
    let store = store(etcd.url()).await;
    let mut refused = None;
    for n in 0..10 {
        let put = put(&format!("/registry/{n}"), vec![b'x'; 1 << 20]);
        refused = store.commit(txn(&[], vec![put])).await.err();
        if refused.is_some() {
            break;
        }
    }
    assert!(matches!(&refused, Some(Error::Unavailable(it)) if it.contains("space exceeded")), "{refused:?}");
    let said = store.writable().expect_err("it is full").to_string();
    assert!(said.contains("NOSPACE"), "{said}");
    assert!(store.disk_use().expect("that is told").is_refused);
    commit(&store, vec![Operation::Delete { key: "/registry/0".into() }]).await;
}

/// etcd before 3.6 tells its quota by its metrics alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_is_nearly_used_is_told_before_it_is() {
    let etcd = Etcd::start(&["--quota-backend-bytes=33554432", "--backend-batch-limit=1"]);
    let told = async || {
        let store = store(etcd.url()).await;
        let (_going_on, ended) = tokio::sync::watch::channel(false);
        let keeping = tokio::spawn(store.keep(ended));
        let looked = async {
            while store.disk_use().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), looked).await.expect("etcd tells its quota");
        keeping.abort();
        store.disk_use().expect("it was told")
    };
    let empty = told().await;
    assert_eq!((empty.total, empty.is_refused, empty.concern()), (32 << 20, false, None));
    // A write that it has no room for would fail here: it is told before.
    let mut concern = None;
    for n in 0.. {
        commit(&*store(etcd.url()).await, vec![put(&format!("/registry/{n}"), vec![b'x'; 1 << 20])]).await;
        concern = told().await.concern();
        if concern.is_some() {
            break;
        }
    }
    let concern = concern.unwrap_or_default();
    assert!(
        concern.starts_with("etcd's quota is nearly full: ") && concern.ends_with(" of 32 MiB are free"),
        "{concern}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_two_clusters_are_refused() {
    let (one, other) = (Etcd::start(&[]), Etcd::start(&[]));
    let both = Options { servers: vec![one.url().to_owned(), other.url().to_owned()], ..options("") };
    let refused = EtcdStore::connect(&both, Limits::default()).await.err();
    assert!(matches!(&refused, Some(StartError::Member(it)) if it.contains(other.url())), "{refused:?}");
    // One that is away is no reason not to start.
    let (url, gone) = (one.url().to_owned(), super::nowhere());
    let store = EtcdStore::connect(&Options { servers: vec![gone, url], ..options("") }, Limits::default()).await;
    commit(&store.expect("one member answers"), vec![put("/registry/a", "1")]).await;
}
