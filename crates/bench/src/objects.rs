//! What is written: ConfigMaps of some hundred bytes, and Pods as large as a real one.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};

pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";

/// What is before a name and what is after it: the load shall not spend its time on making text.
type Halves = [String; 2];

static CONFIG_MAP: LazyLock<Halves> = LazyLock::new(|| halves(&config_map_named(NAME)));
static POD: LazyLock<Halves> = LazyLock::new(|| halves(&pod_named(NAME)));
/// Stands where a name will be.
const NAME: &str = "THE-NAME";

fn halves(object: &Value) -> Halves {
    let text = object.to_string();
    let (before, after) = text.split_once(NAME).expect("the object has its name");
    [before.to_owned(), after.to_owned()]
}

fn named([before, after]: &Halves, name: &str) -> Bytes {
    [before, name, after].concat().into()
}

pub(super) fn config_map(name: &str) -> Bytes {
    named(&CONFIG_MAP, name)
}

pub(super) fn pod(name: &str) -> Bytes {
    named(&POD, name)
}

fn config_map_named(name: &str) -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "bench"}},
        "data": {"a.properties": "color=weathering\nsize=40ft\n", "b.properties": "x".repeat(200)},
    })
}

/// No scheduler feels responsible for it, so what is measured is the API alone.
fn pod_named(name: &str) -> Value {
    let variable = |n: usize| json!({"name": format!("SETTING_{n:02}"), "value": format!("value-{n}-of-a-setting")});
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example/team/{name}:v1.27.3"),
            "imagePullPolicy": "IfNotPresent",
            "command": ["/usr/bin/server", "--listen=:8080", "--log-level=info"],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": (0..6).map(variable).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        })
    };
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "default",
            "labels": {"app.kubernetes.io/name": "bench", "app.kubernetes.io/part-of": "measurement", "tier": "backend"},
            "annotations": {"example.com/description": "A Pod as they are met in the field, not the smallest one"},
        },
        "spec": {
            "schedulerName": "none",
            "automountServiceAccountToken": false,
            "containers": [container("main"), container("side")],
        },
    })
}

pub(super) fn deployment(name: &str, replicas: usize) -> Bytes {
    let object = json!({
        "kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "schedulerName": "none",
                    "automountServiceAccountToken": false,
                    "containers": [{"name": "main", "image": "registry.example/main:1"}],
                },
            },
        },
    });
    object.to_string().into()
}
