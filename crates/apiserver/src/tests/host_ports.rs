//! Ports of the host that are chosen at bindings: by many at once, among two servers, and what is free again.

use std::collections::BTreeSet;

use corten_api::host_ports::HostPortRange;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{quota::call, server, shared};
use crate::{Config, Server};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn with_account(server: &Server) {
    let account = json!({ "metadata": { "name": "default" } });
    assert_eq!(call(server, "POST", "/api/v1/namespaces/default/serviceaccounts", account).await.0, 201);
}

fn pod(name: &str, ports: &Value) -> Value {
    json!({
        "metadata": { "name": name, "annotations": { "corten.dev/network": "host" } },
        "spec": { "containers": [{ "name": "c", "image": "i", "ports": ports }] },
    })
}

async fn make(server: &Server, name: &str) {
    let (code, made) = call(server, "POST", PODS, pod(name, &json!([{ "name": "http", "containerPort": 80 }]))).await;
    assert_eq!(code, 201, "{made}");
}

async fn bind(server: &Server, name: &str, node: &str) -> (u16, Value) {
    let binding = json!({ "metadata": { "name": name }, "target": { "name": node } });
    call(server, "POST", &format!("{PODS}/{name}/binding"), binding).await
}

async fn port(server: &Server, name: &str) -> u64 {
    let (_, pod) = call(server, "GET", &format!("{PODS}/{name}"), Value::Null).await;
    let port = &pod["spec"]["containers"][0]["ports"][0];
    assert_eq!(port["containerPort"], port["hostPort"], "{pod}");
    assert_eq!(pod["metadata"]["annotations"]["corten.dev/host-ports"], format!("{{\"http\":{}}}", port["hostPort"]));
    port["hostPort"].as_u64().expect("it was chosen")
}

fn narrow(first: u16, last: u16) -> Config {
    Config { host_ports: HostPortRange(first..=last), ..server::config() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_bindings_at_once_get_different_ports() {
    let server = Server::start(narrow(20_000, 20_039)).await.expect("an empty store is filled");
    with_account(&server).await;
    let names: Vec<String> = (0..80).map(|it| format!("p{it}")).collect();
    for name in &names {
        make(&server, name).await;
    }
    // Each node has as many as there are ports.
    let bound = join_all(names.iter().enumerate().map(|(at, it)| bind(&server, it, ["n1", "n2"][at % 2]))).await;
    assert!(bound.iter().all(|it| it.0 == 201), "{bound:?}");
    for first in 0..2 {
        let ports = join_all(names.iter().skip(first).step_by(2).map(|it| port(&server, it))).await;
        assert_eq!(ports.into_iter().collect::<BTreeSet<_>>(), (20_000..=20_039).collect());
    }
    make(&server, "late").await;
    let (code, refused) = bind(&server, "late", "n1").await;
    assert_eq!(code, 409, "{refused}");
    let message = "node \"n1\" has too few free host ports: 0 of 20000-20039 are free";
    assert!(refused["message"].as_str().is_some_and(|it| it.ends_with(message)), "{refused}");

    // What has ended has none.
    let ended = json!({ "status": { "phase": "Succeeded" } });
    assert_eq!(call(&server, "PATCH", &format!("{PODS}/p0/status"), ended).await.0, 200);
    assert_eq!(bind(&server, "late", "n1").await.0, 201);
    assert_eq!(port(&server, "late").await, port(&server, "p0").await);
    server.stop().await;
}

#[tokio::test]
async fn ports_that_are_written_down_are_taken() {
    let server = Server::start(narrow(20_000, 20_003)).await.expect("an empty store is filled");
    with_account(&server).await;
    let mut fixed = pod("fixed", &json!([{ "containerPort": 20_001, "hostPort": 20_001 }]));
    fixed["spec"]["nodeName"] = "n1".into();
    assert_eq!(call(&server, "POST", PODS, fixed).await.0, 201);
    let two = json!([{ "name": "a", "containerPort": 1 }, { "name": "b", "containerPort": 2 }, { "containerPort": 20_002, "hostPort": 20_002 }]);
    let mut both = pod("both", &two);
    both["spec"]["nodeName"] = "n1".into();
    let (code, made) = call(&server, "POST", PODS, both.clone()).await;
    assert_eq!(code, 201, "{made}");
    let ports = made["spec"]["containers"][0]["ports"].as_array().expect("they are there");
    let ports: BTreeSet<u64> = ports.iter().filter_map(|it| it["hostPort"].as_u64()).collect();
    assert_eq!(ports, BTreeSet::from([20_000, 20_002, 20_003]));
    both["metadata"]["name"] = "more".into();
    let (code, refused) = call(&server, "POST", PODS, both).await;
    assert_eq!(code, 409, "{refused}");
    server.stop().await;
}

/// A client that reads a Pod and writes it back changes nothing, before the binding and after.
#[tokio::test]
async fn a_pod_can_be_written_as_it_is_read() {
    let server = server::started().await;
    with_account(&server).await;
    make(&server, "p").await;
    for _ in 0..2 {
        let (_, pod) = call(&server, "GET", &format!("{PODS}/p"), Value::Null).await;
        assert_eq!(call(&server, "PUT", &format!("{PODS}/p"), pod.clone()).await, (200, pod));
        bind(&server, "p", "n1").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_trial_chooses_nothing() {
    let server = Server::start(narrow(20_000, 20_000)).await.expect("an empty store is filled");
    with_account(&server).await;
    make(&server, "p").await;
    let binding = json!({ "metadata": { "name": "p" }, "target": { "name": "n1" } });
    let path = format!("{PODS}/p/binding?dryRun=All");
    assert_eq!(call(&server, "POST", &path, binding).await.0, 201);
    let (_, read) = call(&server, "GET", &format!("{PODS}/p"), Value::Null).await;
    assert_eq!(read["metadata"]["annotations"]["corten.dev/host-ports"], "{\"http\":0}");
    assert_eq!(bind(&server, "p", "n1").await.0, 201);
    assert_eq!(port(&server, "p").await, 20_000);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_servers_choose_different_ports() {
    let (one, two, _) = shared::two_with(|it| Config { host_ports: HostPortRange(20_000..=20_039), ..it }).await;
    with_account(&one).await;
    let names: Vec<String> = (0..40).map(|it| format!("p{it}")).collect();
    for name in &names {
        make(&one, name).await;
    }
    let bound = join_all(names.iter().enumerate().map(|(at, it)| bind([&one, &two][at % 2], it, "n1"))).await;
    assert!(bound.iter().all(|it| it.0 == 201), "{bound:?}");
    let ports = join_all(names.iter().map(|it| port(&two, it))).await;
    assert_eq!(ports.into_iter().collect::<BTreeSet<_>>(), (20_000..=20_039).collect());
    one.stop().await;
    two.stop().await;
}
