//! A cluster with other addresses and ports than the usual ones, and one that is started with others than it has.

use std::sync::Arc;

use corten_access::Identity;
use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    load_balancer::AddressPool,
};
use corten_store::backend::memory::Memory;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{quota::call, server};
use crate::{Config, Server};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const RANGE: &str = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
const NODES: &str = "/api/v1/nodes";
const RECORD: &str = "/api/v1/namespaces/kube-system/configmaps/corten-cluster-network";

fn network(settings: &[(&str, &str)]) -> ClusterNetwork {
    let settings = settings.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
    ClusterNetwork::of(&settings).expect("good settings")
}

fn with(store: &Arc<Memory>, network: ClusterNetwork, node_ports: &str) -> Config {
    let node_ports = NodePorts::parse(node_ports).expect("a range");
    Config { network, node_ports, ..server::over(store.clone()) }
}

async fn get(server: &Server, path: &str) -> Value {
    let (code, object) = call(server, "GET", path, Value::Null).await;
    assert_eq!(code, 200, "{object}");
    object
}

#[tokio::test]
async fn services_are_where_the_cluster_has_them() {
    for (settings, ranges, address, starts) in [
        (
            &[("cluster-cidr", "10.50.0.0/16"), ("service-cluster-ip-range", "10.60.0.0/20")][..],
            json!(["10.60.0.0/20"]),
            "10.60.0.1",
            "10.60.",
        ),
        (
            &[("cluster-cidr", "fd12:1::/48"), ("service-cluster-ip-range", "fd12:2::/112")],
            json!(["fd12:2::/112"]),
            "fd12:2::1",
            "fd12:2::",
        ),
        (
            &[("cluster-cidr", "fd12:1::/48,10.50.0.0/16"), ("service-cluster-ip-range", "fd12:2::/112,10.60.0.0/20")],
            json!(["fd12:2::/112", "10.60.0.0/20"]),
            "fd12:2::1",
            "fd12:2::",
        ),
    ] {
        let server = Server::start(with(&Arc::default(), network(settings), "40000-40003")).await.expect("it starts");
        assert_eq!(get(&server, RANGE).await["spec"]["cidrs"], ranges);
        let kubernetes = get(&server, &format!("{SERVICES}/kubernetes")).await;
        assert_eq!(kubernetes["spec"]["clusterIP"], address);
        let web = json!({ "metadata": { "name": "web" }, "spec": { "type": "NodePort", "ports": [{ "port": 80 }] } });
        let (code, web) = call(&server, "POST", SERVICES, web).await;
        assert_eq!(code, 201, "{web}");
        assert!(web["spec"]["clusterIP"].as_str().is_some_and(|it| it.starts_with(starts)), "{web}");
        let port = web["spec"]["ports"][0]["nodePort"].as_u64();
        assert!(port.is_some_and(|it| (40_000..=40_003).contains(&it)), "{web}");
        let usual = json!({
            "metadata": { "name": "usual" },
            "spec": { "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30_500 }] },
        });
        let (code, refused) = call(&server, "POST", SERVICES, usual).await;
        assert_eq!(code, 422, "{refused}");
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains("The range of valid ports is 40000-40003"), "{message}");
        let record = get(&server, RECORD).await;
        assert_eq!(record["data"]["service-node-port-range"], "40000-40003");
        assert_eq!(record["data"]["cluster-domain"], "cluster.local");
    }
}

#[tokio::test]
async fn what_a_cluster_has_is_not_changed_by_a_server_that_is_told_otherwise() {
    let store = Arc::new(Memory::new());
    let own =
        [("cluster-cidr", "10.50.0.0/16"), ("service-cluster-ip-range", "10.60.0.0/20"), ("cluster-domain", "a.b")];
    let made = Server::start(with(&store, network(&own), "30000-32767")).await.expect("it starts");
    made.stop().await;
    let error = Server::start(with(&store, ClusterNetwork::default(), "30000-32767")).await.err().expect("refused");
    let message = error.to_string();
    for option in [
        "--cluster-cidr=10.50.0.0/16, and not 10.244.0.0/16,fd00:10:244::/56",
        "--service-cluster-ip-range=10.60.0.0/20, and not",
        "--cluster-domain=a.b, and not cluster.local",
    ] {
        assert!(message.contains(option), "{message}");
    }
    // Who has a record of its own follows nobody who writes to the object, and writes it anew.
    let config = || Config { is_network_settled: true, ..with(&store, network(&own), "30000-32767") };
    let settled = Server::start(config()).await.expect("it starts");
    let forged = json!({ "data": { "cluster-domain": "evil.example" } });
    assert_eq!(call(&settled, "PATCH", RECORD, forged).await.0, 200);
    settled.stop().await;
    let settled = Server::start(config()).await.expect("it starts all the same");
    assert_eq!(get(&settled, RECORD).await["data"]["cluster-domain"], "a.b");
    settled.stop().await;
    // The ports of nodes may be others.
    let pool = AddressPool::parse(&["10.9.0.8/31", "fd00::1"]).expect("a pool");
    let config = Config { load_balancer_pool: pool, ..with(&store, network(&own), "40000-40003") };
    let again = Server::start(config).await.expect("the same");
    let record = get(&again, RECORD).await;
    assert_eq!(record["data"]["service-node-port-range"], "40000-40003");
    // Nodes may read it, and go by it.
    assert_eq!(record["data"]["load-balancer-pool"], "10.9.0.8-10.9.0.9,fd00::1");
}

#[tokio::test]
async fn a_node_has_few_addresses_of_the_pool_of_load_balancers() {
    let store = Arc::new(Memory::new());
    let pool = AddressPool::parse(&["10.9.0.8/29"]).expect("a pool");
    let config = Config { load_balancer_pool: pool, ..with(&store, ClusterNetwork::default(), "30000-32767") };
    let server = Server::start(config).await.expect("it starts");
    let node = |addresses: &[&str]| {
        let addresses: Vec<Value> = addresses.iter().map(|it| json!({ "type": "InternalIP", "address": it })).collect();
        json!({ "metadata": { "name": "n1" }, "status": { "addresses": addresses } })
    };
    let ask = async |method: &str, path: &str, body: Value| {
        let who = Identity::new("system:node:n1", &["system:nodes", "system:authenticated"]);
        let request = http::Request::builder().method(method).uri(path);
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = request.header("content-type", kind).body(body.to_string().into()).expect("a request");
        let answer = server.call(who, request).await;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.expect("a whole body").to_bytes();
        (code, serde_json::from_slice::<Value>(&bytes).expect("JSON"))
    };
    let taken = node(&["10.0.0.5", "10.9.0.8", "10.9.0.9", "::ffff:10.9.0.10"]);
    let (code, refused) = ask("POST", NODES, taken).await;
    assert_eq!(code, 403, "{refused}");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("claim 3 addresses of the pool of load balancers 10.9.0.8-10.9.0.15, but 2"), "{message}");
    // The pool may be a part of the network that machines are in.
    let (code, made) = ask("POST", NODES, node(&["10.0.0.5", "10.9.0.8", "10.9.0.9"])).await;
    assert_eq!(code, 201, "{made}");
    let many: Vec<String> = (0..101).map(|it| format!("10.1.0.{it}")).collect();
    let many = node(&many.iter().map(|it| &**it).collect::<Vec<_>>());
    let (code, refused) = ask("PATCH", &format!("{NODES}/n1/status"), many).await;
    assert_eq!(code, 403, "{refused}");
    assert!(
        refused["message"].as_str().is_some_and(|it| it.contains("not allowed to claim 101 addresses")),
        "{refused}"
    );
}
