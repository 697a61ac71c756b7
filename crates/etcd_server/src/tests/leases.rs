use std::time::Duration;

use corten_etcd_api::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseTimeToLiveRequest};
use futures_util::FutureExt;

use super::*;
use crate::lease;

async fn grant(core: &Arc<Core>, id: i64, ttl: i64) -> i64 {
    lease::grant(core.clone(), LeaseGrantRequest { ttl, id }).await.expect("it is granted").ttl
}

async fn bind(core: &Arc<Core>, key: &str, lease: i64) {
    kv::put(core.clone(), PutRequest { lease, ..put(key, "") }).await.expect("it is put");
}

fn bound(core: &Core, id: i64) -> (i64, String) {
    let answer = lease::time_to_live(core, LeaseTimeToLiveRequest { id, keys: true }).expect("it is told");
    (answer.ttl, answer.keys.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect::<Vec<_>>().join(" "))
}

fn keys(core: &Core) -> String {
    line(&kv::range(core, &get("\0", "\0")).expect("it is read"))
}

#[tokio::test(start_paused = true)]
async fn keys_end_with_their_lease() {
    let server = in_memory().await;
    let core = &server.core;
    let _serving = Serving::begin(&server).await;
    assert_eq!(grant(core, 1, 1).await, 2, "the shortest there is");
    assert_eq!(grant(core, 2, 10).await, 10);
    for (key, lease) in [("a", 1), ("b", 1), ("c", 2), ("d", 2)] {
        bind(core, key, lease).await;
    }
    // Put anew, a key is bound to what it is put with.
    bind(core, "b", 0).await;
    bind(core, "d", 1).await;
    assert_eq!(bound(core, 1), (2, "a d".into()));
    let revision = core.store.revision();
    let mut watch = core.store.watch(corten_store::Range::prefix(""), revision).await.expect("a watch");
    let gone = watch.next().await.expect("the watch goes on");
    assert_eq!(gone.iter().map(|it| &it.key[..]).collect::<Vec<_>>(), [b"a", b"d"]);
    assert!(gone.iter().all(|it| it.revision == revision + 1 && it.entry.is_none()));
    assert_eq!(keys(core), "b=@2 c=@1");
    assert_eq!(bound(core, 1), (-1, String::new()));
    // Kept alive, it lasts.
    tokio::time::advance(Duration::from_secs(7)).await;
    let kept = |id| lease::keep_alive(core, LeaseKeepAliveRequest { id }).ttl;
    assert_eq!((kept(1), kept(2)), (0, 10));
    tokio::time::advance(Duration::from_secs(7)).await;
    assert_eq!(bound(core, 2).1, "c");
    watch.next().await.expect("the watch goes on");
    assert_eq!(keys(core), "b=@2");
    assert!(lease::list(core).leases.is_empty());
}

#[tokio::test]
async fn leases_are_told_apart() {
    let core = in_memory().await.core;
    grant(&core, 5, 100).await;
    let said = |it: Result<_, Status>| it.map(|_| ()).expect_err("it is refused").message().to_owned();
    let asked = |id, ttl| lease::grant(core.clone(), LeaseGrantRequest { ttl, id });
    assert_eq!(said(asked(5, 100).await.map(|_| ())), "etcdserver: lease already exists");
    assert_eq!(said(asked(6, 9_000_000_001).await.map(|_| ())), "etcdserver: too large lease TTL");
    assert_eq!(said(lease::revoke(core.clone(), 6).await.map(|_| ())), "etcdserver: requested lease not found");
    let own = lease::grant(core.clone(), LeaseGrantRequest { ttl: 60, id: 0 }).await.expect("it is granted");
    assert!(own.id > 0);
    bind(&core, "a", own.id).await;
    let kept = PutRequest { ignore_lease: true, ..put("a", "1") };
    kv::put(core.clone(), kept).await.expect("it is put");
    assert_eq!(bound(&core, own.id).1, "a");
    lease::revoke(core.clone(), own.id).await.expect("it is there");
    assert_eq!(keys(&core), "");
    assert_eq!(lease::list(&core).leases.iter().map(|it| it.id).collect::<Vec<_>>(), [5]);
}

#[tokio::test(start_paused = true)]
async fn leases_last_over_a_restart_with_their_keys() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = open(embedded(&dir, "store"), embedded(&dir, "etcd")).await;
    let (core, identity) = (server.core.clone(), server.core.identity);
    grant(&core, 1, 60).await;
    grant(&core, 2, 60).await;
    bind(&core, "a", 1).await;
    bind(&core, "b", 2).await;
    lease::revoke(core.clone(), 2).await.expect("it is there");
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(bound(&core, 1).0, 20);
    core.store.close().await;
    drop((server, core));

    let core = open(embedded(&dir, "store"), embedded(&dir, "etcd-2")).await.core;
    let (ttl, keys_of) = bound(&core, 1);
    assert_eq!(ttl, 3_600, "where nothing is known of it, it ends in an hour");
    assert_eq!(keys_of, "a");
    core.store.close().await;
    drop(core);
    let core = open(embedded(&dir, "store"), embedded(&dir, "etcd")).await.core;
    assert_eq!((core.identity.cluster, core.identity.member), (identity.cluster, identity.member));
    let (ttl, keys_of) = bound(&core, 1);
    assert_eq!(ttl, 60, "it has its whole time again");
    assert_eq!(keys_of, "a");
    assert_eq!(lease::list(&core).leases.len(), 1);
    lease::revoke(core.clone(), 1).await.expect("it is there");
    assert_eq!(keys(&core), "");
}

fn embedded(dir: &tempfile::TempDir, name: &str) -> Arc<dyn LocalStore> {
    let store = embedded::Embedded::open(&dir.path().join(name), embedded::Options::default());
    Arc::new(store.expect("the store opens"))
}

/// The writer's thread answers in its own time: others go on until then.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_wait_leaves_no_lease_half_way() {
    let dir = tempfile::tempdir().expect("a directory");
    let core = open(embedded(&dir, "store"), embedded(&dir, "beside")).await.core;
    let asked = LeaseGrantRequest { ttl: 60, id: 1 };
    assert!(lease::grant(core.clone(), asked).now_or_never().is_none(), "it is not answered at once");
    until(|| bound(&core, 1).0 > 0).await;
    bind(&core, "a", 1).await;
    assert!(lease::revoke(core.clone(), 1).now_or_never().is_none(), "it is not answered at once");
    until(|| !core.leases.known.lock().contains_key(&1)).await;
    assert_eq!(keys(&core), "");
    assert_eq!(grant(&core, 1, 60).await, 60, "it can be granted again");
}

#[tokio::test]
async fn a_lease_ends_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let core = open(embedded(&dir, "store"), embedded(&dir, "beside")).await.core;
    grant(&core, 1, 60).await;
    bind(&core, "a", 1).await;
    let (first, second) = tokio::join!(lease::revoke(core.clone(), 1), lease::revoke(core.clone(), 1));
    first.expect("it is there");
    assert_eq!(second.expect_err("it ends already").message(), "etcdserver: requested lease not found");
    assert_eq!(keys(&core), "");
    assert!(
        core.leases
            .disk
            .range(corten_store::Range::prefix("lease/"), None, 0)
            .await
            .expect("it is read")
            .entries
            .is_empty()
    );
}

#[tokio::test]
async fn a_lease_forgets_the_keys_that_it_has_lost() {
    let core = in_memory().await.core;
    grant(&core, 1, 60).await;
    grant(&core, 2, 60).await;
    for key in ["a", "b", "c", "d"] {
        bind(&core, key, 1).await;
    }
    bind(&core, "a", 2).await;
    bind(&core, "b", 0).await;
    kv::delete_range(core.clone(), delete("c", "")).await.expect("it is deleted");
    // One that was lost and is bound again stays.
    kv::delete_range(core.clone(), delete("d", "")).await.expect("it is deleted");
    bind(&core, "d", 1).await;
    puts(&core, &[("e", "")]).await;
    let held = |id| core.leases.keys(id).iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect::<String>();
    assert_eq!((held(1), held(2)), ("d".into(), "a".into()));
}
