//! What is concluded from the discovery of an old server of Kubernetes's.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use corten_client::{Body, BoxFuture, Transport, TransportError};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;

/// Answers by path; what is not there is not served.
struct Paths(BTreeMap<&'static str, Value>);

impl Transport for Paths {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let answer = self.0.get(request.uri().path());
        let (code, text) = answer.map_or((404, "404 page not found".to_owned()), |it| (200, it.to_string()));
        let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
        let answer = Response::builder().status(code).body(body).map_err(|it| TransportError(it.to_string()));
        Box::pin(async move { answer })
    }
}

fn resources(entries: &[(&str, &str, bool)]) -> Value {
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let entry = |(name, kind, namespaced): &(&str, &str, bool)| {
        let verbs = if kind.ends_with("Review") { &all[..1] } else { &all };
        json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": verbs})
    };
    json!({"kind": "APIResourceList", "resources": entries.iter().map(entry).collect::<Vec<_>>()})
}

fn group(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> =
        versions.iter().map(|it| json!({"groupVersion": format!("{name}/{it}"), "version": it})).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
}

fn old_server() -> Client {
    let groups = [
        group("apps", &["v1"]),
        group("autoscaling", &["v1", "v2beta2"]),
        group("batch", &["v1", "v1beta1"]),
        group("extensions", &["v1beta1"]),
        group("networking.k8s.io", &["v1"]),
        group("example.com", &["v1"]),
        group("metrics.k8s.io", &["v1beta1"]),
    ];
    let definitions = json!({"items": [{"metadata": {"name": "crontabs.example.com"}}]});
    let services = json!({"items": [
        {"metadata": {"name": "v1.apps"}, "spec": {"group": "apps", "version": "v1"}},
        {"metadata": {"name": "v1beta1.metrics.k8s.io"},
         "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "service": {"name": "m", "namespace": "n"}}},
    ]});
    let paths = BTreeMap::from([
        ("/version", json!({"gitVersion": "v1.20.2"})),
        ("/apis", json!({"groups": groups})),
        ("/apis/apiregistration.k8s.io/v1/apiservices", services),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definitions),
        (
            "/api/v1",
            resources(&[
                ("namespaces", "Namespace", false),
                ("pods", "Pod", true),
                ("pods/status", "Pod", true),
                ("configmaps", "ConfigMap", true),
            ]),
        ),
        (
            "/apis/apps/v1",
            resources(&[
                ("deployments", "Deployment", true),
                ("replicasets", "ReplicaSet", true),
                ("controllerrevisions", "ControllerRevision", true),
            ]),
        ),
        ("/apis/autoscaling/v1", resources(&[("horizontalpodautoscalers", "HorizontalPodAutoscaler", true)])),
        ("/apis/autoscaling/v2beta2", resources(&[("horizontalpodautoscalers", "HorizontalPodAutoscaler", true)])),
        ("/apis/batch/v1", resources(&[("jobs", "Job", true)])),
        ("/apis/batch/v1beta1", resources(&[("cronjobs", "CronJob", true)])),
        ("/apis/extensions/v1beta1", resources(&[("ingresses", "Ingress", true)])),
        (
            "/apis/networking.k8s.io/v1",
            resources(&[("ingresses", "Ingress", true), ("oldreviews", "OldReview", false)]),
        ),
        ("/apis/example.com/v1", resources(&[("crontabs", "CronTab", true)])),
    ]);
    Client::new(Arc::new(Paths(paths)))
}

#[tokio::test]
async fn each_kind_is_looked_at_once_in_a_version_that_is_served() {
    let served = ServedKinds::of(&old_server()).await.expect("it is told");
    let mut kinds: Vec<String> = served.kinds.iter().map(|it| format!("{} {}", it.qualified(), it.version)).collect();
    kinds.sort();
    let expected = [
        "configmaps v1",
        "controllerrevisions.apps v1",
        "cronjobs.batch v1beta1",
        "deployments.apps v1",
        "horizontalpodautoscalers.autoscaling v1",
        "ingresses.networking.k8s.io v1",
        "jobs.batch v1",
        "namespaces v1",
        "pods v1",
        "replicasets.apps v1",
    ];
    assert_eq!(kinds, expected);
    assert!(!served.is_own && served.wants_token_secrets);
}

#[tokio::test]
async fn a_loop_without_its_kind_does_not_run() {
    let served = ServedKinds::of(&old_server()).await.expect("it is told");
    for name in ["deployment", "replicaset", "job", "garbage-collector", "namespace"] {
        assert!(served.controllers.contains(name), "{name}");
    }
    for name in ["cronjob", "disruption", "endpointslice", "horizontal-pod-autoscaler", "volume-snapshot"] {
        assert!(served.left_out.contains(name) && !served.controllers.contains(name), "{name}");
    }
    // The server does that itself.
    assert!(!served.controllers.contains("event-expiry") && !served.left_out.contains("event-expiry"));
}
