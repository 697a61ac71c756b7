//! Connections that break amid a commit or a watch.

use std::sync::Arc;

use corten_store::{BoxFuture, Error, Operation, Outcome, Range, Store, Txn};

use super::{changes, commit, etcd::Etcd, proxy::Proxy, put, store, txn};
use crate::store::EtcdStore;

/// A store behind a proxy, and one beside it.
struct World {
    _etcd: Etcd,
    proxy: Proxy,
    store: Arc<EtcdStore>,
    direct: Arc<EtcdStore>,
}

impl World {
    async fn new() -> Self {
        let etcd = Etcd::start(&[]);
        let proxy = Proxy::to(etcd.url()).await;
        let (behind, direct) = (store(&proxy.url()).await, store(etcd.url()).await);
        Self { _etcd: etcd, proxy, store: behind, direct }
    }

    /// Commits, and loses the answer; `meanwhile` is written before the store can ask again.
    async fn losing(&self, commit_lost: Txn, meanwhile: Option<Operation>) -> Result<Outcome, Error> {
        let before = self.direct.newest().await.expect("etcd answers");
        let mut watch = self.direct.watch(Range::prefix("/registry/"), before).await.expect("a watch");
        self.proxy.mute();
        let lost = async {
            watch.next().await.expect("it is done");
            if let Some(operation) = meanwhile {
                commit(&self.direct, vec![operation]).await;
            }
            self.proxy.cut();
        };
        tokio::join!(self.store.commit(commit_lost), lost).0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_a_commit_is_found_out_where_that_can_be_told() {
    let world = World::new().await;
    let made = world.losing(txn(&[("/registry/a", 0)], vec![put("/registry/a", "1")]), None).await;
    assert_eq!(made.expect("it stands there"), Outcome::Committed(2));
    let both = vec![put("/registry/a", "2"), put("/registry/b", "2")];
    let changed = world.losing(txn(&[("/registry/a", 2), ("/registry/b", 0)], both), None).await;
    assert_eq!(changed.expect("it stands there"), Outcome::Committed(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_tell_is_not_said_to_have_failed() {
    let world = World::new().await;
    let overwritten = txn(&[("/registry/a", 0)], vec![put("/registry/a", "1")]);
    let outcome = world.losing(overwritten, Some(put("/registry/a", "other"))).await;
    assert!(matches!(&outcome, Err(Error::Io(it)) if it.contains("not known")), "{outcome:?}");
    // Nothing is compared: sent again, it could be done twice.
    let outcome = world.losing(txn(&[], vec![put("/registry/b", "1")]), None).await;
    assert!(matches!(&outcome, Err(Error::Io(it)) if it.contains("not known")), "{outcome:?}");
    let deletion = txn(&[("/registry/b", 4)], vec![Operation::Delete { key: "/registry/b".into() }]);
    let outcome = world.losing(deletion, None).await;
    assert!(matches!(&outcome, Err(Error::Io(it)) if it.contains("not known")), "{outcome:?}");
    // What is refused was certainly not done.
    let refused = world.losing(txn(&[], vec![put("/registry/c", "1")]), None).await;
    assert!(refused.is_err());
    let stale = world.store.commit(txn(&[("/registry/a", 2)], vec![put("/registry/a", "3")])).await;
    assert!(matches!(stale, Ok(Outcome::Conflict(Some(_)))), "{stale:?}");
}

/// What is asked, and not waited for.
async fn begun(asked: &mut BoxFuture<'_, Result<u64, Error>>) {
    std::future::poll_fn(|context| std::task::Poll::Ready(asked.as_mut().poll(context).is_pending())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_asking_leaves_no_old_answer_to_others() {
    let world = World::new().await;
    assert_eq!(world.store.newest().await.expect("etcd answers"), 1);
    world.proxy.mute();
    let (mut first, mut second, mut third) = (world.store.newest(), world.store.newest(), world.store.newest());
    for asked in [&mut first, &mut second, &mut third] {
        begun(asked).await;
    }
    drop(first);
    begun(&mut second).await;
    drop(second);
    let revision = commit(&world.direct, vec![put("/registry/a", "1")]).await;
    world.proxy.cut();
    assert_eq!(third.await.expect("etcd answers"), revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_where_it_was() {
    let world = World::new().await;
    let mut watch = world.store.watch(Range::prefix("/registry/"), 1).await.expect("a watch");
    for n in 0..20_u64 {
        let revision = commit(&world.direct, vec![put("/registry/a", n.to_string())]).await;
        if n.is_multiple_of(5) {
            world.proxy.cut();
        }
        assert_eq!(changes(&mut watch, 1).await, [(revision, "/registry/a".to_owned())]);
    }
    world.proxy.cut();
    let revision = commit(&world.direct, vec![put("/registry/b", "1"), put("/registry/c", "1")]).await;
    let expected = [(revision, "/registry/b".to_owned()), (revision, "/registry/c".to_owned())];
    assert_eq!(changes(&mut watch, 2).await, expected);
}
