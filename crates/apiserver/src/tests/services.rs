//! Addresses and node ports are given once: to many writers at a time, and by a server that was started again.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{quota::call, server};
use crate::{Config, Server};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
    for (field, value) in spec.as_object().into_iter().flatten() {
        service["spec"][field] = value.clone();
    }
    service
}

/// Creates so many Services with node ports at once, and gives what each has.
async fn create(server: &Server, prefix: &str, count: usize) -> Vec<(String, i64)> {
    let creations = (0..count).map(|at| {
        let service = service(&format!("{prefix}-{at}"), json!({ "type": "NodePort" }));
        call(server, "POST", SERVICES, service)
    });
    let answers = join_all(creations).await;
    let had = answers.into_iter().map(|(code, it)| {
        assert_eq!(code, 201, "{it}");
        assert_eq!(it["spec"]["clusterIPs"], json!([it["spec"]["clusterIP"]]));
        let address = it["spec"]["clusterIP"].as_str().expect("an address").to_owned();
        (address, it["spec"]["ports"][0]["nodePort"].as_i64().expect("a port"))
    });
    had.collect()
}

async fn named_addresses(server: &Server) -> BTreeSet<String> {
    let (_, list) = call(server, "GET", ADDRESSES, Value::Null).await;
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|it| it["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_given_twice() {
    let config = server::config();
    let store = config.store.clone();
    let first = Server::start(config).await.expect("an empty store is filled");
    let mut had = create(&first, "a", 64).await;
    first.stop().await;

    // The second knows nothing but what is stored.
    let second = Server::start(Config { store, ..server::config() }).await.expect("a filled store is read");
    had.extend(create(&second, "b", 64).await);
    let addresses: BTreeSet<String> = had.iter().map(|it| it.0.clone()).collect();
    let ports: BTreeSet<i64> = had.iter().map(|it| it.1).collect();
    assert_eq!((addresses.len(), ports.len()), (128, 128), "{had:?}");
    assert!(ports.iter().all(|it| (30_000..=32_767).contains(it)), "{ports:?}");
    let mut named = named_addresses(&second).await;
    assert!(named.remove("10.96.0.1"), "that of the Service kubernetes");
    assert_eq!(named, addresses);

    // What others have cannot be asked for; what was given back can.
    let (address, port) = had[0].clone();
    let wish = |name: &str| {
        let ports = json!([{ "port": 80, "nodePort": port }]);
        service(name, json!({ "type": "NodePort", "clusterIP": address, "ports": ports }))
    };
    let (code, refusal) = call(&second, "POST", SERVICES, wish("c")).await;
    let expected = format!(
        "spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: provided IP is already allocated"
    );
    assert_eq!(code, 422);
    assert!(refusal["message"].as_str().is_some_and(|it| it.ends_with(&expected)), "{refusal}");
    assert_eq!(call(&second, "DELETE", &format!("{SERVICES}/a-0"), Value::Null).await.0, 200);
    assert!(!named_addresses(&second).await.contains(&address));
    let (code, again) = call(&second, "POST", SERVICES, wish("c")).await;
    assert_eq!(
        (code, &again["spec"]["clusterIP"], &again["spec"]["ports"][0]["nodePort"]),
        (201, &json!(address), &json!(port))
    );
    second.stop().await;
}

/// Several ask for the same port at once: one gets it, and what the others had taken goes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_gets_a_port() {
    let server = server::started().await;
    let wishes = (0..16).map(|at| {
        let ports = json!([{ "port": 80, "nodePort": 30_023 }]);
        call(&server, "POST", SERVICES, service(&format!("s-{at}"), json!({ "type": "NodePort", "ports": ports })))
    });
    let codes: Vec<u16> = join_all(wishes).await.into_iter().map(|it| it.0).collect();
    assert_eq!(codes.iter().filter(|it| **it == 201).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|it| **it == 422).count(), 15, "{codes:?}");
    // That of kubernetes, and that of the one.
    assert_eq!(named_addresses(&server).await.len(), 2);
    server.stop().await;
}

/// What a Service that a quota refuses had taken goes back at once.
#[tokio::test]
async fn a_refused_service_keeps_nothing() {
    const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
    let server = server::started().await;
    // The Service kubernetes is the one.
    let one = json!({ "services": "1" });
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": one } });
    assert_eq!(call(&server, "POST", QUOTAS, quota).await.0, 201);
    let counted = json!({ "status": { "hard": one, "used": one } });
    assert_eq!(call(&server, "PATCH", &format!("{QUOTAS}/q/status"), counted).await.0, 200);
    let wish = || {
        let ports = json!([{ "port": 80, "nodePort": 30_024 }]);
        service("s", json!({ "type": "NodePort", "clusterIP": "10.96.7.7", "ports": ports }))
    };
    assert_eq!(call(&server, "POST", SERVICES, wish()).await.0, 403);
    assert_eq!(call(&server, "DELETE", &format!("{QUOTAS}/q"), Value::Null).await.0, 200);
    let (code, answer) = call(&server, "POST", SERVICES, wish()).await;
    assert_eq!(code, 201, "{answer}");
    server.stop().await;
}

/// A range of fourteen addresses gives fourteen, and says that it is full.
#[tokio::test]
async fn a_full_range_says_so() {
    let server = server::started().await;
    let ranges = "/apis/networking.k8s.io/v1/servicecidrs";
    assert_eq!(call(&server, "DELETE", &format!("{ranges}/kubernetes"), Value::Null).await.0, 200);
    let range = json!({ "metadata": { "name": "small" }, "spec": { "cidrs": ["198.51.100.0/28"] } });
    assert_eq!(call(&server, "POST", ranges, range).await.0, 201);
    // Until a loop has said that it is ready nothing is given of it.
    assert_eq!(call(&server, "POST", SERVICES, service("too-early", json!({}))).await.0, 500);
    let ready = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    assert_eq!(call(&server, "PATCH", &format!("{ranges}/small/status"), ready).await.0, 200);
    for at in 0..14 {
        let (code, made) = call(&server, "POST", SERVICES, service(&format!("s-{at}"), json!({}))).await;
        assert_eq!(code, 201, "{made}");
    }
    let (code, refusal) = call(&server, "POST", SERVICES, service("one-too-many", json!({}))).await;
    assert_eq!(code, 500);
    assert!(
        refusal["message"].as_str().is_some_and(|it| it.ends_with("failed to allocate a serviceIP: range is full")),
        "{refusal}"
    );
    server.stop().await;
}
