//! Bindings to nodes that are full: many at once, by two servers, and what is not refused.

use std::sync::Arc;

use corten_store::memory::Memory;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{quota::call, server, shared};
use crate::Server;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn with_account(server: &Server) {
    let account = json!({ "metadata": { "name": "default" } });
    assert_eq!(call(server, "POST", "/api/v1/namespaces/default/serviceaccounts", account).await.0, 201);
}

async fn with_node(server: &Server, name: &str, allocatable: Value) {
    assert_eq!(call(server, "POST", NODES, json!({ "metadata": { "name": name } })).await.0, 201);
    let status = json!({ "status": { "capacity": allocatable, "allocatable": allocatable } });
    let (code, node) = call(server, "PATCH", &format!("{NODES}/{name}/status"), status).await;
    assert_eq!(code, 200, "{node}");
}

fn pod(name: &str, requests: &Value) -> Value {
    let container = json!({ "name": "c", "image": "i", "resources": { "requests": requests } });
    json!({ "metadata": { "name": name }, "spec": { "containers": [container] } })
}

async fn make(server: &Server, pod: Value) {
    let (code, made) = call(server, "POST", PODS, pod).await;
    assert_eq!(code, 201, "{made}");
}

async fn bind(server: &Server, name: &str, node: &str) -> (u16, Value) {
    let binding = json!({ "metadata": { "name": name }, "target": { "name": node } });
    call(server, "POST", &format!("{PODS}/{name}/binding"), binding).await
}

/// How many Pods are bound to the node.
async fn bound(server: &Server, node: &str) -> usize {
    let (_, pods) = call(server, "GET", &format!("{PODS}?fieldSelector=spec.nodeName%3D{node}"), Value::Null).await;
    pods["items"].as_array().map_or(0, Vec::len)
}

/// Binds twice as many Pods as there is room for, by all servers at once.
async fn race(servers: &[&Server], n_pods: usize) {
    with_account(servers[0]).await;
    with_node(servers[0], "n1", json!({ "cpu": "10", "memory": "1Ti", "pods": "1000" })).await;
    let requests = json!({ "cpu": format!("{}m", 20_000 / n_pods) });
    let names: Vec<String> = (0..n_pods).map(|it| format!("p{it}")).collect();
    for name in &names {
        make(servers[0], pod(name, &requests)).await;
    }
    let all = names.iter().enumerate().map(|(at, it)| bind(servers[at % servers.len()], it, "n1"));
    let answers = join_all(all).await;
    let n_bound = answers.iter().filter(|it| it.0 == 201).count();
    assert_eq!(n_bound, n_pods / 2);
    assert_eq!(bound(servers[0], "n1").await, n_pods / 2);
    for (name, (code, refused)) in names.iter().zip(&answers).filter(|it| it.1.0 != 201) {
        let detail = format!("node n1 has no room for pod {name}: insufficient cpu");
        assert_eq!((*code, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
        assert!(refused["message"].as_str().is_some_and(|it| it.ends_with(&detail)), "{refused}");
        assert_eq!(refused["details"]["causes"][0]["reason"], "NodeHasNoRoom", "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_bindings_at_once_as_many_pass_as_there_is_room_for() {
    let server = server::started().await;
    race(&[&server], 200).await;
    // What is gone or has ended has given its room back.
    let (_, pods) = call(&server, "GET", PODS, Value::Null).await;
    let pods = pods["items"].as_array().expect("a list");
    let on_node = |is: bool| pods.iter().filter(move |it| it["spec"]["nodeName"].is_string() == is);
    let [ended, gone] = [0, 1].map(|at| on_node(true).nth(at).expect("it is bound")["metadata"]["name"].clone());
    let waiting: Vec<_> = on_node(false).filter_map(|it| it["metadata"]["name"].as_str()).take(3).collect();
    let path = |it: &Value| format!("{PODS}/{}", it.as_str().expect("a name"));
    let succeeded = json!({ "status": { "phase": "Succeeded" } });
    assert_eq!(call(&server, "PATCH", &format!("{}/status", path(&ended)), succeeded).await.0, 200);
    assert_eq!(bind(&server, waiting[0], "n1").await.0, 201);
    assert_eq!(bind(&server, waiting[1], "n1").await.0, 409);
    let now = json!({ "gracePeriodSeconds": 0 });
    assert_eq!(call(&server, "DELETE", &path(&gone), now).await.0, 200);
    let older = json!({ "metadata": { "name": waiting[1] }, "target": { "name": "n1" } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/bindings", older).await.0, 201);
    assert_eq!(bind(&server, waiting[2], "n1").await.0, 409);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_servers_together_overcommit_nothing() {
    let (one, two) = shared::two_alike().await;
    race(&[&one, &two], 60).await;
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn what_is_no_binding_is_not_refused_and_counts() {
    let server = server::started().await;
    with_account(&server).await;
    with_node(&server, "n1", json!({ "cpu": "1", "pods": "2" })).await;
    with_node(&server, "new", json!({})).await;
    let half = json!({ "cpu": "600m" });
    for name in ["a", "b"] {
        let mut placed = pod(name, &half);
        placed["spec"]["nodeName"] = "n1".into();
        make(&server, placed).await;
    }
    make(&server, pod("c", &half)).await;
    let (code, refused) = bind(&server, "c", "n1").await;
    assert_eq!(code, 409, "{refused}");
    let message = "node n1 has no room for pod c: too many pods, insufficient cpu";
    assert!(refused["message"].as_str().is_some_and(|it| it.ends_with(message)), "{refused}");
    // One that does not say what it has, and one that nobody knows.
    assert_eq!(bind(&server, "c", "new").await.0, 201);
    make(&server, pod("d", &half)).await;
    assert_eq!(bind(&server, "d", "nowhere").await.0, 201);
    server.stop().await;
}

/// Nobody knows whether it is stored. It counts until that is seen: by what becomes of its Pod.
#[tokio::test]
async fn a_binding_in_doubt_has_its_room() {
    for is_done in [true, false] {
        let memory = Arc::new(Memory::new());
        let server = Server::start(server::over(memory.clone())).await.expect("an empty store is filled");
        with_account(&server).await;
        with_node(&server, "n1", json!({ "cpu": "1", "pods": "1" })).await;
        for name in ["a", "b"] {
            make(&server, pod(name, &json!({ "cpu": "1" }))).await;
        }
        if is_done {
            memory.faults().lose_answers(1);
        } else {
            memory.faults().refuse(1);
        }
        let (code, answer) = bind(&server, "a", "n1").await;
        assert_eq!(code, 500, "{answer}");
        assert_eq!(bind(&server, "b", "n1").await.0, 409, "{is_done}");
        // Whoever changes the Pod sees whether it has a node.
        let change = json!({ "metadata": { "labels": { "tried": "once" } } });
        assert_eq!(call(&server, "PATCH", &format!("{PODS}/a"), change).await.0, 200);
        assert_eq!(bind(&server, "b", "n1").await.0, if is_done { 409 } else { 201 });
        assert_eq!(bound(&server, "n1").await, 1);
        server.stop().await;
    }
}
