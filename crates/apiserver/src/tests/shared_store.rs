//! Two servers over one store that keeps values as Kubernetes does: each sees what the other wrote, and nothing is given twice.

use std::{collections::BTreeSet, sync::Arc};

use corten_store::{Range, Store, backend::memory::Memory};
use corten_stored_form::KubernetesForm;
use serde_json::{Value, json};

use super::{quota::call, server};
use crate::{Config, Server};

const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn over(inner: &Arc<Memory>) -> Server {
    let store = Arc::new(KubernetesForm::new(inner.clone()));
    Server::start(Config { store, ..server::config() }).await.expect("the store is read")
}

fn service(name: &str, port: Option<u16>) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "type": "NodePort", "ports": [{ "port": 80, "nodePort": port }] } })
}

/// Waits until the server has seen all that is stored.
async fn caught_up(server: &Server, inner: &Memory) {
    server.caches().reach(inner.revision()).await.expect("the caches follow the store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_what_is_stored_and_what_is_given() {
    let inner = Arc::new(Memory::new());
    let (one, two) = (over(&inner).await, over(&inner).await);
    let mut had = BTreeSet::new();
    for n in 0..8 {
        for (name, server) in [("a", &one), ("b", &two)] {
            let (code, created) = call(server, "POST", SERVICES, service(&format!("{name}-{n}"), None)).await;
            assert_eq!(code, 201, "{created}");
            had.insert(created["spec"]["clusterIP"].to_string());
            had.insert(created["spec"]["ports"][0]["nodePort"].to_string());
        }
    }
    assert_eq!(had.len(), 32, "{had:?}");
    caught_up(&two, &inner).await;
    let (code, found) = call(&two, "GET", &format!("{SERVICES}/a-0"), Value::Null).await;
    assert_eq!(code, 200, "{found}");

    // A port that one server gave and took back is to be had at the other.
    let (code, _) = call(&one, "POST", SERVICES, service("port", Some(30_500))).await;
    assert_eq!(code, 201);
    let (code, refused) = call(&two, "POST", SERVICES, service("other", Some(30_500))).await;
    assert!(matches!(code, 409 | 422), "{refused}");
    let (code, _) = call(&one, "DELETE", &format!("{SERVICES}/port"), Value::Null).await;
    assert_eq!(code, 200);
    caught_up(&two, &inner).await;
    let again = async {
        loop {
            let (code, _) = call(&two, "POST", SERVICES, service("other", Some(30_500))).await;
            if code == 201 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), again).await.expect("the port is free");

    let page = inner.range(Range::prefix("/registry/"), None, 0).await.expect("the store is open");
    let is_object = |key: &[u8]| !key.starts_with(b"/registry/apiregistration.k8s.io/");
    for entry in page.entries.iter().filter(|it| is_object(&it.key)) {
        assert!(entry.value.starts_with(b"k8s\0"), "{:?}", entry.key);
    }
    one.stop().await;
    two.stop().await;
}
