mod keys;
mod leases;
mod watches;

use std::sync::Arc;

use bytes::Bytes;
use corten_etcd::{EtcdStore, Options};
use corten_etcd_api::{
    DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestKind, RequestOp, TxnRequest, TxnResponse,
};
use corten_store::{Limits, LocalStore, Store, conformance, embedded, memory::Memory};
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tonic::Status;

use crate::{EtcdServer, Reserved, Settings, core::Core, kv, serve};

async fn open(store: Arc<dyn LocalStore>, beside: Arc<dyn LocalStore>) -> EtcdServer {
    let reserved = Some(Reserved {
        prefix: "/reserved/".into(),
        reason: "it is another's".into(),
        lasting: vec!["/reserved/lasting/".into()],
        lasting_reason: "another counts on it".into(),
    });
    let urls = vec!["https://127.0.0.1:2379".to_owned()];
    EtcdServer::open(Settings { store, beside, reserved, urls }).await.expect("a server")
}

async fn in_memory() -> EtcdServer {
    open(Arc::new(Memory::new()), Arc::new(Memory::new())).await
}

/// A server that answers without TLS, until it is dropped.
struct Serving {
    url: String,
    _stop: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Serving {
    async fn begin(server: &EtcdServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (stop, stopping) = watch::channel(false);
        let (mut tasks, core) = (JoinSet::new(), server.core.clone());
        tasks.spawn(crate::lease::end_in_time(core.clone(), stopping.clone()));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve::converse(core.clone(), stream, stopping.clone()));
            }
        });
        Self { url, _stop: stop, _tasks: tasks }
    }

    async fn store(&self, limits: Limits) -> EtcdStore {
        let options = Options { servers: vec![self.url.clone()], tls: None, prefix: "/registry".into() };
        EtcdStore::connect(&options, limits).await.expect("the server answers")
    }
}

/// What speaks to etcd holds the contract of the store, over this server too.
fn holds_the_contract(new: &dyn Fn(Limits) -> Arc<dyn LocalStore>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let running: Mutex<Option<Serving>> = Mutex::default();
    let make = |limits: Limits| -> Arc<dyn Store> {
        let store = new(Limits { changes: 100_000, ..limits });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let serving = Serving::begin(&open(store, Arc::new(Memory::new())).await).await;
                let connected = serving.store(limits).await;
                *running.lock() = Some(serving);
                Arc::new(connected) as Arc<dyn Store>
            })
        })
    };
    runtime.block_on(conformance::run_shared(&make));
}

#[test]
fn a_client_keeps_the_contract_over_memory() {
    holds_the_contract(&|limits| Arc::new(Memory::with_limits(limits)));
}

#[test]
fn a_client_keeps_the_contract_over_the_embedded_store() {
    let dir = tempfile::tempdir().expect("a directory");
    let n = std::sync::atomic::AtomicUsize::new(0);
    holds_the_contract(&|history| {
        let dir = dir.path().join(n.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
        let options = embedded::Options { history, ..embedded::Options::default() };
        Arc::new(embedded::Embedded::open(&dir, options).expect("the store opens"))
    });
}

fn bytes(text: &str) -> Bytes {
    text.to_owned().into()
}

fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: bytes(key), value: bytes(value), ..PutRequest::default() }
}

fn get(key: &str, end: &str) -> RangeRequest {
    RangeRequest { key: bytes(key), range_end: bytes(end), ..RangeRequest::default() }
}

fn delete(key: &str, end: &str) -> DeleteRangeRequest {
    DeleteRangeRequest { key: bytes(key), range_end: bytes(end), prev_kv: true }
}

fn operation(kind: RequestKind) -> RequestOp {
    RequestOp { request: Some(kind) }
}

async fn puts(core: &Arc<Core>, pairs: &[(&str, &str)]) {
    for (key, value) in pairs {
        kv::put(core.clone(), put(key, value)).await.expect("it is put");
    }
}

async fn txn(core: &Arc<Core>, asked: TxnRequest) -> Result<TxnResponse, Status> {
    kv::txn(core.clone(), asked).await
}

/// The pairs of an answer as one line, `key=value@version`, with `+` if there are more.
fn line(answer: &RangeResponse) -> String {
    let text = |it: &Bytes| String::from_utf8_lossy(it).into_owned();
    let mut words: Vec<String> =
        answer.kvs.iter().map(|it| format!("{}={}@{}", text(&it.key), text(&it.value), it.version)).collect();
    words.extend(answer.more.then(|| "+".to_owned()));
    words.join(" ")
}
