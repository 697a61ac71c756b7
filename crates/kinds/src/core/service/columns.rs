//! What `kubectl get services` prints.

use corten_validation::read::{items, text};
use serde_json::{Value, json};

use crate::{
    Column,
    columns::{AGE, column, labels_text, wide},
};

pub(super) const COLUMNS: &[Column] = &[
    column("Type", "How far it can be reached.", |object, _| json!(text(object, "/spec/type"))),
    column("Cluster-IP", "Its address in the cluster.", |object, _| {
        json!(object.pointer("/spec/clusterIPs/0").and_then(Value::as_str).unwrap_or("<none>"))
    }),
    column("External-IP", "Its address for the world.", |object, _| json!(external_ip(object))),
    column("Port(s)", "Its ports, and those on each node.", |object, _| json!(ports(object))),
    AGE,
    wide("Selector", "Which Pods answer for it.", |object, _| json!(labels_text(&object["spec"]["selector"]))),
];

fn external_ip(service: &Value) -> String {
    let own: Vec<&str> = items(service, "/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".into(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let ingress = items(service, "/status/loadBalancer/ingress");
            let mut given: Vec<&str> = ingress
                .iter()
                .map(|it| if text(it, "/ip").is_empty() { text(it, "/hostname") } else { text(it, "/ip") })
                .filter(|it| !it.is_empty())
                .collect();
            given.sort_unstable();
            given.dedup();
            given.extend(own);
            if given.is_empty() { "<pending>".into() } else { given.join(",") }
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".into(),
    }
}

/// `80/TCP,443:30443/TCP`
fn ports(service: &Value) -> String {
    let port = |it: &Value| {
        let on_nodes = it["nodePort"].as_i64().filter(|it| *it != 0).map_or(String::new(), |it| format!(":{it}"));
        format!("{}{on_nodes}/{}", it["port"], text(it, "/protocol"))
    };
    let ports: Vec<String> = items(service, "/spec/ports").iter().map(port).collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",") }
}
