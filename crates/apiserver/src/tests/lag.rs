//! A server whose caches are behind a store that others write to is not ready.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use corten_store::{
    BoxFuture, Changes, Entry, Error, Outcome, Page, Range, Revision, Store, Txn, backend::memory::Memory,
};
use serde_json::Value;

use super::{quota::call, server};
use crate::{Config, Server};

/// Others have written so much to it that is not told yet.
struct Shared {
    inner: Memory,
    ahead: AtomicU64,
}

impl Store for Shared {
    fn revision(&self) -> Revision {
        self.inner.revision()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        let newest = self.inner.revision() + self.ahead.load(Ordering::SeqCst);
        Box::pin(async move { Ok(newest) })
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        self.inner.get(key)
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        self.inner.range(range, revision, limit)
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.inner.commit(txn)
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        self.inner.watch(range, after)
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.compact(revision)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_behind_is_not_ready_until_it_has_caught_up() {
    let store = Arc::new(Shared { inner: Memory::new(), ahead: AtomicU64::new(0) });
    let server = Server::start(Config { store: store.clone(), ..server::config() }).await.expect("the store is read");
    let pods = async || call(&server, "GET", "/api/v1/pods", Value::Null).await.0;
    let ready = async || call(&server, "GET", "/readyz", Value::Null).await.0;
    assert_eq!((pods().await, ready().await), (200, 200));
    store.ahead.store(5, Ordering::SeqCst);
    assert_eq!((pods().await, ready().await), (503, 500));
    assert_eq!(call(&server, "GET", "/livez", Value::Null).await.0, 200, "a new process would not be quicker");
    store.ahead.store(0, Ordering::SeqCst);
    assert_eq!((pods().await, ready().await), (200, 200));
    server.stop().await;
}
