use bytes::Bytes;
use corten_access::{Attributes, Decision, Identity, ResourceOrPath};
use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_kinds::custom::has_condition;
use http::Request;
use serde_json::{Value, json};

use super::server;
use crate::Server;

async fn create(server: &Server, path: &str, object: Value) {
    let admin = Identity::new("admin", &["system:masters"]);
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Bytes::from(object.to_string())).expect("a request");
    let response = server.call(admin, request).await;
    assert!(response.status().is_success(), "{path}: {}", response.status());
}

async fn pod(server: &Server, name: &str, node: &str, secret: &str) {
    let volumes = json!([
        { "name": "s", "secret": { "secretName": secret } },
        { "name": "v", "persistentVolumeClaim": { "claimName": format!("claim-of-{name}") } },
    ]);
    let containers = json!([{ "name": "c", "image": "i" }]);
    let spec = json!({ "nodeName": node, "volumes": volumes, "containers": containers });
    let pods = "/api/v1/namespaces/default/pods";
    create(server, pods, json!({ "metadata": { "name": name }, "spec": spec })).await;
}

fn decide(
    server: &Server,
    node: &str,
    verb: &str,
    path: (&str, &str, &str, &str),
    selector: &str,
) -> Result<(), String> {
    let (resource, subresource, namespace, name) = path;
    let (group, resource) = resource.split_once('/').unwrap_or(("", resource));
    let who = Identity::new(format!("system:node:{node}"), &["system:nodes"]);
    let target = ResourceOrPath::Resource { group, resource, subresource, namespace, name };
    let question = Attributes { verb, target, field_selector: selector, ..Attributes::of(&who) };
    match server.access().answers().decide(&question) {
        Decision::Allowed(_) => Ok(()),
        Decision::Denied(denial) => Err(denial.reason),
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_sees_what_its_pods_name() {
    let server = server::started().await;
    create(&server, "/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "default" } })).await;
    pod(&server, "a", "n1", "s1").await;
    pod(&server, "b", "n2", "s2").await;
    let unrelated = "no relationship found between node 'n1' and this object";
    for (verb, path, selector, expected) in [
        ("get", ("secrets", "", "default", "s1"), "", Ok(())),
        ("watch", ("secrets", "", "default", "s1"), "", Ok(())),
        ("get", ("secrets", "", "default", "s2"), "", Err(unrelated)),
        ("get", ("secrets", "", "other", "s1"), "", Err(unrelated)),
        ("list", ("secrets", "", "default", ""), "", Err("No Object name found")),
        ("list", ("secrets", "", "", "s1"), "", Err("can only read namespaced object of this type")),
        ("update", ("secrets", "", "default", "s1"), "", Err("can only read resources of this type")),
        ("get", ("persistentvolumeclaims", "", "default", "claim-of-a"), "", Ok(())),
        ("get", ("persistentvolumeclaims", "", "default", "claim-of-b"), "", Err(unrelated)),
        (
            "list",
            ("persistentvolumeclaims", "", "default", ""),
            "",
            Err("can only get individual resources of this type"),
        ),
        ("create", ("serviceaccounts", "token", "default", "default"), "", Ok(())),
        ("create", ("serviceaccounts", "token", "default", "other"), "", Err(unrelated)),
        ("get", ("pods", "", "default", "a"), "", Ok(())),
        ("get", ("pods", "", "default", "b"), "", Err(unrelated)),
        ("list", ("pods", "", "", ""), "spec.nodeName=n1", Ok(())),
        (
            "watch",
            ("pods", "", "", ""),
            "spec.nodeName=n2",
            Err("can only list/watch pods with spec.nodeName field selector"),
        ),
        ("patch", ("pods", "status", "default", "b"), "", Ok(())),
        ("update", ("pods", "", "default", "a"), "", Err("")),
        ("get", ("nodes", "", "", "n1"), "", Ok(())),
        ("get", ("nodes", "", "", "n2"), "", Err("node 'n1' cannot read 'n2', only its own Node object")),
        ("list", ("nodes", "", "", ""), "", Err("node 'n1' cannot read all nodes, only its own Node object")),
        ("update", ("coordination.k8s.io/leases", "", "kube-node-lease", "n1"), "", Ok(())),
        (
            "update",
            ("coordination.k8s.io/leases", "", "kube-node-lease", "n2"),
            "",
            Err("can only access node lease with the same name as the requesting node"),
        ),
        (
            "get",
            ("coordination.k8s.io/leases", "", "kube-system", "n1"),
            "",
            Err("can only access leases in the \"kube-node-lease\" system namespace"),
        ),
        ("create", ("events", "", "default", ""), "", Ok(())),
        ("list", ("apps/deployments", "", "default", ""), "", Err("")),
    ] {
        let found = decide(&server, "n1", verb, path, selector);
        assert_eq!(found, expected.map_err(str::to_owned), "{verb} {path:?} {selector}");
    }
    let nobody = decide(&server, "", "get", ("nodes", "", "", "n1"), "");
    assert_eq!(nobody, Err("unknown node for user \"system:node:\"".to_owned()));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_node_sees_follows_its_pods() {
    let server = server::started().await;
    create(&server, "/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "default" } })).await;
    let sees = |secret| decide(&server, "n1", "get", ("secrets", "", "default", secret), "").is_ok();
    assert!(!sees("s1"));
    pod(&server, "a", "n1", "s1").await;
    assert!(sees("s1") && !sees("s2"));
    pod(&server, "b", "n1", "s2").await;
    assert!(sees("s1") && sees("s2"));
    let admin = Identity::new("admin", &["system:masters"]);
    let request = Request::delete("/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0");
    server.call(admin, request.body(Bytes::new()).expect("a request")).await;
    assert!(!sees("s1") && sees("s2"));

    let volume = json!({
        "metadata": { "name": "pv" },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "claimRef": { "namespace": "default", "name": "claim-of-b" },
            "csi": { "driver": "d", "volumeHandle": "h", "nodeStageSecretRef": { "namespace": "vault", "name": "key" } },
        },
    });
    create(&server, "/api/v1/persistentvolumes", volume).await;
    let claim = json!({
        "metadata": { "name": "claim-of-b" },
        "spec": { "volumeName": "pv", "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    create(&server, "/api/v1/namespaces/default/persistentvolumeclaims", claim).await;
    let found =
        |node, resource, namespace, name| decide(&server, node, "get", (resource, "", namespace, name), "").is_ok();
    assert!(found("n1", "persistentvolumes", "", "pv") && !found("n2", "persistentvolumes", "", "pv"));
    assert!(found("n1", "secrets", "vault", "key") && !found("n2", "secrets", "vault", "key"));

    // Whoever makes claims can have one name any volume.
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "theirs" } })).await;
    create(&server, "/api/v1/namespaces/theirs/serviceaccounts", json!({ "metadata": { "name": "default" } })).await;
    let claim = json!({
        "metadata": { "name": "claim-of-b" },
        "spec": { "volumeName": "pv", "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    create(&server, "/api/v1/namespaces/theirs/persistentvolumeclaims", claim).await;
    let pod = json!({
        "metadata": { "name": "thief" },
        "spec": {
            "nodeName": "n2", "containers": [{ "name": "c", "image": "busybox" }],
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "claim-of-b" } }],
        },
    });
    create(&server, "/api/v1/namespaces/theirs/pods", pod).await;
    assert!(found("n2", "persistentvolumeclaims", "theirs", "claim-of-b"));
    assert!(!found("n2", "persistentvolumes", "", "pv") && !found("n2", "secrets", "vault", "key"));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_makes_volumes_reads_the_secrets_that_classes_and_volumes_name() {
    let server = server::started().await;
    let may_read = |namespace: &str, name: &str| {
        let who = Identity::new("system:node-volume-provisioner", &["system:authenticated"]);
        let target = ResourceOrPath::Resource { group: "", resource: "secrets", subresource: "", namespace, name };
        let question = Attributes { verb: "get", target, ..Attributes::of(&who) };
        matches!(server.access().answers().decide(&question), Decision::Allowed(_))
    };
    let parameters = json!({
        "csi.storage.k8s.io/provisioner-secret-name": "${pvc.name}-key",
        "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
        "csi.storage.k8s.io/node-stage-secret-name": "of-nodes",
        "csi.storage.k8s.io/node-stage-secret-namespace": "default",
    });
    let class = json!({ "metadata": { "name": "keyed" }, "provisioner": "sample", "parameters": parameters });
    create(&server, "/apis/storage.k8s.io/v1/storageclasses", class).await;
    assert!(!may_read("default", "data-key"), "no claim asks for a volume");
    let spec = json!({
        "storageClassName": "keyed", "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } },
    });
    let claim = json!({ "metadata": { "name": "data" }, "spec": spec });
    create(&server, "/api/v1/namespaces/default/persistentvolumeclaims", claim).await;
    assert!(may_read("default", "data-key"));
    assert!(!may_read("kube-system", "data-key"), "of another namespace");
    assert!(!may_read("default", "of-nodes"), "the kubelet reads it");
    let csi = json!({
        "driver": "sample", "volumeHandle": "v",
        "controllerPublishSecretRef": { "name": "attach", "namespace": "ns" },
        "nodeStageSecretRef": { "name": "stage", "namespace": "ns" },
    });
    let removal = json!({
        "volume.kubernetes.io/provisioner-deletion-secret-name": "remove",
        "volume.kubernetes.io/provisioner-deletion-secret-namespace": "ns",
    });
    let volume = json!({
        "metadata": { "name": "v", "annotations": removal },
        "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "csi": csi },
    });
    create(&server, "/api/v1/persistentvolumes", volume).await;
    assert_eq!(["attach", "remove", "stage", "other"].map(|it| may_read("ns", it)), [true, true, false, false]);
}

/// A kind of snapshots, as far as the authorizer reads it.
async fn define(server: &Server, kind: &str, plural: &str) {
    let name = format!("{plural}.snapshot.storage.k8s.io");
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "metadata": { "name": name, "annotations": { "api-approved.kubernetes.io": "https://example.com" } },
        "spec": {
            "group": "snapshot.storage.k8s.io", "scope": "Cluster", "names": { "kind": kind, "plural": plural },
            "versions":
                [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    create(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let caches = server.caches();
    let is_established = || {
        let stored = caches.get(&CUSTOM_RESOURCE_DEFINITIONS)?.get("", &name)?;
        has_condition(&stored.parse(), "Established").then_some(())
    };
    caches.until(is_established).await;
}

#[tokio::test]
async fn who_finds_snapshots_reads_the_secrets_that_classes_of_snapshots_name_for_contents() {
    const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1";
    let server = server::started().await;
    let may_read = |name: &str| {
        let who = Identity::new("system:node-volume-provisioner", &["system:authenticated"]);
        let target =
            ResourceOrPath::Resource { group: "", resource: "secrets", subresource: "", namespace: "vault", name };
        let question = Attributes { verb: "get", target, ..Attributes::of(&who) };
        matches!(server.access().answers().decide(&question), Decision::Allowed(_))
    };
    assert!(!may_read("list-of-found"), "there are no such kinds");
    define(&server, "VolumeSnapshotClass", "volumesnapshotclasses").await;
    define(&server, "VolumeSnapshotContent", "volumesnapshotcontents").await;
    let class = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": { "name": "listed" }, "driver": "sample", "deletionPolicy": "Retain",
        "parameters": {
            "csi.storage.k8s.io/snapshotter-list-secret-name": "list-of-${volumesnapshotcontent.name}",
            "csi.storage.k8s.io/snapshotter-list-secret-namespace": "vault",
        },
    });
    create(&server, &format!("{SNAPSHOTS}/volumesnapshotclasses"), class).await;
    assert!(!may_read("list-of-found"), "nothing is to be found");
    let found = json!({ "snapshotHandle": "h" });
    for (name, driver, source) in
        [("found", "sample", &found), ("taken", "sample", &json!({ "volumeHandle": "v" })), ("other", "other", &found)]
    {
        let content = json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent", "metadata": { "name": name },
            "spec": { "driver": driver, "volumeSnapshotClassName": "listed", "source": source },
        });
        create(&server, &format!("{SNAPSHOTS}/volumesnapshotcontents"), content).await;
    }
    let secrets = ["list-of-found", "list-of-taken", "list-of-other", "list-of-none"];
    assert_eq!(secrets.map(may_read), [true, false, false, false]);
}
