//! The store over a store: what is written above is Kubernetes's below, and the other way round.

use std::sync::Arc;

use bytes::Bytes;
use corten_schema::proto::RangeAllocation;
use corten_store::{Compare, Entry, Operation, Outcome, Range, Store, Txn, conformance, memory::Memory};
use serde_json::{Value, json};

use crate::KubernetesForm;

const CONFIG: &str = "/registry/configmaps/d/c";
const PORTS: &str = "/registry/ranges/servicenodeports/";
const ADDRESSES: &str = "/registry/ranges/serviceips/";
const ALLOCATION: &str = "/registry/ranges/servicenodeports";

fn over() -> (Arc<Memory>, KubernetesForm) {
    let inner = Arc::new(Memory::default());
    (inner.clone(), KubernetesForm::new(inner))
}

fn put(key: &str, value: impl Into<Bytes>) -> Operation {
    Operation::Put { key: key.to_owned().into(), value: value.into() }
}

fn delete(key: &str) -> Operation {
    Operation::Delete { key: key.to_owned().into() }
}

async fn commit(store: &dyn Store, operations: Vec<Operation>) -> Outcome {
    store.commit(Txn { compares: Vec::new(), operations }).await.expect("the store is open")
}

/// On condition that none of these is there.
async fn create(store: &dyn Store, keys: &[&str]) -> Outcome {
    let compares = keys.iter().map(|it| Compare { key: (*it).to_owned().into(), mod_revision: 0 }).collect();
    let operations = keys.iter().map(|it| put(it, "{}")).collect();
    store.commit(Txn { compares, operations }).await.expect("the store is open")
}

async fn get(store: &dyn Store, key: &str) -> Option<Entry> {
    store.get(key.as_bytes()).await.expect("the store is open")
}

async fn keys(store: &dyn Store, prefix: &str) -> Vec<String> {
    let page = store.range(Range::prefix(prefix.to_owned()), None, 0).await.expect("the store is open");
    page.entries.iter().map(|it| String::from_utf8_lossy(&it.key).into_owned()).collect()
}

fn config(data: &str) -> Bytes {
    let head = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"d"}"#;
    format!(r#"{head},"data":{{"a":"{data}"}}}}"#).into()
}

/// As another server has written it.
fn allocation(range: &str, data: &[u8]) -> Operation {
    let mut allocation = RangeAllocation::new(range);
    allocation.data = data.to_vec();
    put(ALLOCATION, allocation.encode())
}

fn address(name: &str) -> Value {
    json!({"kind": "IPAddress", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": name}})
}

#[tokio::test]
async fn it_is_a_store() {
    conformance::run(&|limits| Arc::new(KubernetesForm::new(Arc::new(Memory::with_limits(limits))))).await;
}

#[tokio::test]
async fn values_lie_below_as_kubernetes_stores_them() {
    let (inner, store) = over();
    commit(&store, vec![put(CONFIG, config("1"))]).await;
    let below = get(&*inner, CONFIG).await.expect("it is there");
    assert!(below.value.starts_with(b"k8s\0"));
    let above = get(&store, CONFIG).await.expect("it is there");
    assert_eq!((above.value, above.mod_revision), (config("1"), below.mod_revision));
    assert!(!store.is_stale(CONFIG.as_bytes()).await.expect("the store is open"));
}

#[tokio::test]
async fn what_is_stored_in_another_form_is_stale() {
    let (inner, store) = over();
    commit(&*inner, vec![put(CONFIG, config("1"))]).await;
    assert_eq!(get(&store, CONFIG).await.expect("it is there").value, config("1"));
    assert!(store.is_stale(CONFIG.as_bytes()).await.expect("the store is open"));
    commit(&store, vec![put(CONFIG, config("1"))]).await;
    assert!(!store.is_stale(CONFIG.as_bytes()).await.expect("the store is open"));
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_stale() {
    let (inner, store) = over();
    commit(&*inner, vec![put(CONFIG, "k8s\0\u{1}")]).await;
    let above = get(&store, CONFIG).await.expect("it is there");
    assert!(above.unreadable.is_some());
    assert_eq!(above.value, "k8s\0\u{1}");
    assert!(store.is_stale(CONFIG.as_bytes()).await.expect("the store is open"));
    let page = store.range(Range::prefix("/registry/"), None, 0).await.expect("the store is open");
    assert!(page.entries[0].unreadable.is_some());
}

#[tokio::test]
async fn watches_are_told_what_others_write_below() {
    let (inner, store) = over();
    let mut changes = store.watch(Range::prefix("/registry/"), store.revision()).await.expect("the store is open");
    let mine = config("mine");
    commit(&store, vec![put(CONFIG, mine.clone())]).await;
    let told = changes.next().await.expect("the store is open");
    let value = &told[0].entry.as_ref().expect("it is there").value;
    assert_eq!(value.as_ptr(), mine.as_ptr(), "what was written here is not read again");

    let other = crate::to_stored(CONFIG.as_bytes(), &config("other"));
    commit(&*inner, vec![put(CONFIG, other)]).await;
    let told = changes.next().await.expect("the store is open");
    assert_eq!(told[0].entry.as_ref().expect("it is there").value, config("other"));
}

#[tokio::test]
async fn a_refused_write_is_not_taken_for_what_another_wrote() {
    let (inner, store) = over();
    commit(&*inner, vec![put(CONFIG, "{}")]).await;
    let mine = config("mine");
    let refused = Txn {
        compares: vec![Compare { key: CONFIG.into(), mod_revision: 0 }],
        operations: vec![put(CONFIG, mine.clone())],
    };
    assert!(matches!(store.commit(refused).await, Ok(Outcome::Conflict(Some(it))) if it.unreadable.is_some()));
    let mut changes = store.watch(Range::prefix("/registry/"), store.revision()).await.expect("the store is open");
    commit(&*inner, vec![put(CONFIG, crate::to_stored(CONFIG.as_bytes(), &mine))]).await;
    let told = changes.next().await.expect("the store is open");
    let value = &told[0].entry.as_ref().expect("it is there").value;
    assert_eq!(value, &mine);
    assert_ne!(value.as_ptr(), mine.as_ptr());
}

#[tokio::test]
async fn node_ports_are_bits_of_one_allocation() {
    let (inner, store) = over();
    let (one, two) = (format!("{PORTS}30080"), format!("{PORTS}31031"));
    assert!(matches!(create(&store, &[&one, "/x"]).await, Outcome::Committed(_)));
    assert!(matches!(create(&store, &[&two]).await, Outcome::Committed(_)));
    let below = get(&*inner, ALLOCATION).await.expect("the allocation is there");
    let allocation = RangeAllocation::decode(&below.value).expect("it is one");
    assert_eq!((&*allocation.range, allocation.data.len()), ("30000-32767", 129));
    assert_eq!((allocation.data[0], allocation.data[118]), (0x80, 1));
    assert_eq!(keys(&*inner, PORTS).await, Vec::<String>::new());
    assert_eq!(keys(&store, PORTS).await, [one.clone(), two.clone()]);
    assert_eq!(get(&store, &one).await.expect("it is given").mod_revision, below.mod_revision);

    assert!(matches!(create(&store, &[&one, "/y"]).await, Outcome::Conflict(Some(it)) if it.key == one), "it is given");
    assert_eq!(get(&store, "/y").await, None, "nothing of the transaction is done");
    commit(&store, vec![delete(&one)]).await;
    assert_eq!(get(&store, &one).await, None);
    assert_eq!(keys(&store, PORTS).await, [two]);
}

#[tokio::test]
async fn a_port_that_another_server_gave_is_given() {
    let (inner, store) = over();
    commit(&*inner, vec![allocation("30000-30009", &[1 << 3])]).await;
    assert!(matches!(create(&store, &[&format!("{PORTS}30003")]).await, Outcome::Conflict(_)));
    assert!(matches!(create(&store, &[&format!("{PORTS}30010")]).await, Outcome::Conflict(_)), "beyond the range");
    assert!(matches!(create(&store, &[&format!("{PORTS}30004")]).await, Outcome::Committed(_)));
    let below = get(&*inner, ALLOCATION).await.expect("the allocation is there");
    let allocation = RangeAllocation::decode(&below.value).expect("it is one");
    assert_eq!((&*allocation.range, allocation.data), ("30000-30009", vec![0x18]));
}

#[tokio::test]
async fn servers_that_give_ports_at_once_give_none_twice() {
    let (inner, store) = over();
    let create_all = |first: u16| {
        let store = KubernetesForm::new(inner.clone());
        async move {
            for port in first..first + 20 {
                let key = format!("{PORTS}{port}");
                assert!(matches!(create(&store, &[&key]).await, Outcome::Committed(_)), "{port}");
            }
        }
    };
    tokio::join!(create_all(30_100), create_all(30_200), create_all(30_300));
    assert_eq!(keys(&store, PORTS).await.len(), 60);
}

#[tokio::test]
async fn an_address_is_given_where_its_ip_address_is() {
    let (inner, store) = over();
    let (object, record) = ("/registry/ipaddresses/10.96.0.7", format!("{ADDRESSES}10.96.0.7"));
    let compares = [object, &*record].map(|it| Compare { key: it.to_owned().into(), mod_revision: 0 }).to_vec();
    let operations = vec![put(&record, "{}"), put(object, address("10.96.0.7").to_string())];
    let txn = Txn { compares, operations };
    assert!(matches!(store.commit(txn.clone()).await, Ok(Outcome::Committed(_))));
    assert_eq!(keys(&*inner, "/registry/").await, [object]);
    assert_eq!(keys(&store, ADDRESSES).await, std::slice::from_ref(&record));
    assert!(get(&store, &record).await.is_some());
    assert!(matches!(store.commit(txn).await, Ok(Outcome::Conflict(_))));
    commit(&store, vec![delete(&record), delete(object)]).await;
    assert_eq!(get(&store, &record).await, None);
}

#[tokio::test]
async fn watches_are_told_of_what_is_given() {
    let (inner, store) = over();
    let after = store.revision();
    let mut ports = store.watch(Range::prefix(PORTS), after).await.expect("the store is open");
    let mut addresses = store.watch(Range::prefix(ADDRESSES), after).await.expect("the store is open");
    let ip_address = "/registry/ipaddresses/10.96.0.8";
    commit(&*inner, vec![put(ip_address, address("10.96.0.8").to_string())]).await;
    commit(&*inner, vec![allocation("30000-32767", &[0b01])]).await;
    commit(&*inner, vec![allocation("30000-32767", &[0b10])]).await;
    commit(&*inner, vec![delete(ip_address)]).await;
    let told = |batch: Vec<corten_store::Change>| {
        let told = batch.iter().map(|it| (String::from_utf8_lossy(&it.key).into_owned(), it.entry.is_some()));
        told.collect::<Vec<_>>()
    };
    let mut of_ports = Vec::new();
    while of_ports.len() < 3 {
        of_ports.extend(told(ports.next().await.expect("the store is open")));
    }
    let port = |it: u16| format!("{PORTS}{it}");
    assert_eq!(of_ports, [(port(30_000), true), (port(30_001), true), (port(30_000), false)]);
    let mut of_addresses = Vec::new();
    while of_addresses.len() < 2 {
        of_addresses.extend(told(addresses.next().await.expect("the store is open")));
    }
    let record = format!("{ADDRESSES}10.96.0.8");
    assert_eq!(of_addresses, [(record.clone(), true), (record, false)]);
}
