//! Two servers over one store, of which one hears late what the other writes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
};

use corten_store::{
    BoxFuture, Change, Changes, Entry, Error, Operation, Outcome, Page, Range, Revision, Store, Txn, memory::Memory,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{quota::call, server};
use crate::{Config, Server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A memory that others write to, whose watches tell nothing while it is deaf.
pub(super) struct Shared {
    memory: Arc<Memory>,
    is_deaf: Arc<watch::Sender<bool>>,
    is_away: AtomicBool,
}

impl Shared {
    fn over(memory: &Arc<Memory>) -> Arc<Self> {
        Arc::new(Self { memory: memory.clone(), is_deaf: Arc::default(), is_away: AtomicBool::new(false) })
    }
}

impl Store for Shared {
    fn revision(&self) -> Revision {
        self.memory.revision()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        let is_away = self.is_away.load(Relaxed);
        Box::pin(async move {
            if is_away { Err(Error::Unavailable("nobody answers".into())) } else { Ok(self.memory.revision()) }
        })
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        self.memory.get(key)
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        self.memory.range(range, revision, limit)
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.memory.commit(txn)
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(async move {
            let changes = self.memory.watch(range, after).await?;
            let (memory, is_deaf) = (self.memory.clone(), self.is_deaf.subscribe());
            Ok(Box::new(Late { changes, memory, is_deaf }) as Box<dyn Changes>)
        })
    }

    /// Nobody asks this server to: what is forgotten is decided among all.
    fn compact(&self, _: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Err(Error::Closed) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.memory.close()
    }
}

struct Late {
    changes: Box<dyn Changes>,
    memory: Arc<Memory>,
    is_deaf: watch::Receiver<bool>,
}

impl Changes for Late {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Change>, Error>> {
        self.changes.next()
    }

    fn ready(&mut self) -> Option<Result<Vec<Change>, Error>> {
        if *self.is_deaf.borrow() { None } else { self.changes.ready() }
    }

    fn progress(&self) -> Option<Revision> {
        (!*self.is_deaf.borrow()).then(|| self.memory.revision())
    }

    fn woken(&self) -> BoxFuture<'static, ()> {
        let (woken, mut is_deaf) = (self.changes.woken(), self.is_deaf.clone());
        Box::pin(async move {
            tokio::select! {
                () = woken => {}
                // The store outlives its watches.
                _ = is_deaf.changed() => {}
            }
        })
    }
}

/// One server, and another one over the same memory.
async fn two() -> (Server, Server, Arc<Shared>) {
    two_with(|it| it).await
}

pub(super) async fn two_with(settings: impl Fn(Config) -> Config) -> (Server, Server, Arc<Shared>) {
    let memory = Arc::new(Memory::new());
    let one = Server::start(settings(server::over(memory.clone()))).await.expect("an empty store is filled");
    let shared = Shared::over(&memory);
    let config = Config { store: shared.clone(), ..settings(server::over(memory)) };
    (one, Server::start(config).await.expect("a filled store is read"), shared)
}

/// Two servers that both know that others write to their store.
pub(super) async fn two_alike() -> (Server, Server) {
    let memory = Arc::new(Memory::new());
    let over = || Config { store: Shared::over(&memory), ..server::over(memory.clone()) };
    let one = Server::start(over()).await.expect("an empty store is filled");
    (one, Server::start(over()).await.expect("a filled store is read"))
}

/// Polled once: what waits now goes on waiting until the store is heard.
async fn waits<T>(asked: &mut BoxFuture<'_, T>) -> bool {
    std::future::poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_pending())).await
}

#[tokio::test]
async fn a_request_sees_what_was_written_elsewhere_before_it() {
    let (one, two, shared) = two().await;
    shared.is_deaf.send_replace(true);
    let made = call(&one, "POST", CONFIG_MAPS, json!({ "metadata": { "name": "a" }, "data": { "k": "1" } })).await;
    assert_eq!(made.0, 201);
    let path = format!("{CONFIG_MAPS}/a");
    let mut got: BoxFuture<'_, _> = Box::pin(call(&two, "GET", &path, Value::Null));
    let mut changed: BoxFuture<'_, _> = Box::pin(call(&two, "PATCH", &path, json!({ "data": { "l": "2" } })));
    assert!(waits(&mut got).await && waits(&mut changed).await);
    // Who names a revision asks for no more than that.
    let old = call(&two, "GET", &format!("{path}?resourceVersion=0"), Value::Null).await;
    assert_eq!(old.0, 404);

    shared.is_deaf.send_replace(false);
    assert_eq!(got.await, (200, made.1));
    assert_eq!(changed.await.1["data"], json!({ "k": "1", "l": "2" }));
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn what_is_no_object_is_waited_for_too() {
    let (one, two, shared) = two().await;
    let put = Operation::Put { key: "/elsewhere".into(), value: "1".into() };
    shared.commit(Txn { compares: vec![], operations: vec![put] }).await.expect("the store is open");
    let (code, list) = call(&two, "GET", CONFIG_MAPS, Value::Null).await;
    assert_eq!((code, &list["metadata"]["resourceVersion"]), (200, &json!(shared.revision().to_string())));
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn what_another_server_takes_back_can_be_given() {
    let (one, two, _) = two().await;
    let service = |name: &str| {
        let spec = json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30_040 }] });
        json!({ "metadata": { "name": name }, "spec": spec })
    };
    assert_eq!(call(&one, "POST", SERVICES, service("a")).await.0, 201);
    let (code, refused) = call(&two, "POST", SERVICES, service("b")).await;
    assert_eq!(code, 422, "{refused}");
    assert_eq!(call(&one, "DELETE", &format!("{SERVICES}/a"), Value::Null).await.0, 200);
    assert_eq!(call(&two, "POST", SERVICES, service("b")).await.0, 201);
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_store_that_is_away_is_said_to_be() {
    let (one, two, shared) = two().await;
    shared.is_away.store(true, Relaxed);
    let (code, status) = call(&two, "GET", CONFIG_MAPS, Value::Null).await;
    assert_eq!((code, &status["message"]), (503, &json!("the store is not available: nobody answers")));
    assert_eq!(call(&two, "GET", &format!("{CONFIG_MAPS}?resourceVersion=0"), Value::Null).await.0, 200);
    shared.is_away.store(false, Relaxed);
    assert_eq!(call(&two, "GET", CONFIG_MAPS, Value::Null).await.0, 200);
    one.stop().await;
    two.stop().await;
}
