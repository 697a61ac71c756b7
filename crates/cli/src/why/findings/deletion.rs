//! What keeps an object that is deleted: its finalizers, who takes each away, and when.

use corten_kinds::Kind;
use corten_meta::Time;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    fields::{items, key_of, text, time},
    reader::Reader,
};

/// A finalizer everybody knows: its name or how it begins, who takes it away, when.
pub(crate) const FINALIZERS: &[(&str, Actor, &str)] = &[
    ("batch.kubernetes.io/job-tracking", Actor::Cluster, "the job loop takes it away when it has counted the pod"),
    ("crossplane.io/", Actor::External, "Crossplane takes it away when the resource behind it is gone"),
    ("customresourcecleanup.apiextensions.k8s.io", Actor::Cluster, "it goes when all objects of the kind are gone"),
    ("external-attacher/", Actor::External, "the CSI attacher takes it away when the volume is detached"),
    ("external-provisioner.volume.kubernetes.io/finalizer", Actor::External, "the CSI provisioner takes it away"),
    ("finalizer.acme.cert-manager.io", Actor::External, "cert-manager takes it away"),
    ("finalizers.fluxcd.io", Actor::External, "Flux takes it away when it has pruned what it made"),
    ("foregroundDeletion", Actor::Cluster, "the garbage collector takes it away when its dependents are gone"),
    ("kubernetes.io/pv-protection", Actor::Cluster, "it goes when no claim is bound to the volume"),
    ("kubernetes.io/pvc-protection", Actor::Cluster, "it goes when no pod uses the claim"),
    ("orphan", Actor::Cluster, "the garbage collector takes it away when it has let its dependents go"),
    ("resources-finalizer.argocd.argoproj.io", Actor::External, "Argo CD takes it away when it has pruned the app"),
    ("service.kubernetes.io/load-balancer-cleanup", Actor::External, "the cloud's service loop takes it away"),
    ("snapshot.storage.kubernetes.io/", Actor::External, "the CSI snapshotter takes it away"),
];

pub(super) async fn leaving(reader: &Reader<'_>, kind: &Kind, object: &Value, found: &mut Findings) {
    let Some(since) = time(&object["metadata"]["deletionTimestamp"]) else { return };
    if kind.singular == "namespace" {
        found.explains.push("FinalizerRemains");
        let own = items(object, "/spec/finalizers").iter().filter_map(Value::as_str).filter(|it| *it != "kubernetes");
        own.for_each(|it| found.wait(holds(object, it, since)));
    }
    for finalizer in items(object, "/metadata/finalizers").iter().filter_map(Value::as_str) {
        let mut wait = holds(object, finalizer, since);
        if finalizer == "foregroundDeletion" {
            wait.on = dependent(reader, kind, object).await;
        }
        found.wait(wait);
    }
}

fn holds(object: &Value, finalizer: &str, since: Time) -> Wait {
    let known = FINALIZERS.iter().find(|it| finalizer == it.0 || (it.0.ends_with('/') && finalizer.starts_with(it.0)));
    let (actor, who) =
        known.map_or((Actor::External, "only the program it belongs to knows when it goes"), |it| (it.1, it.2));
    let set_by = manager_of(object, "f:finalizers", finalizer).map(|it| format!("; set by {it}")).unwrap_or_default();
    let mut wait = Wait::new("FinalizerHolds", format!("finalizer {finalizer:?} remains: {who}{set_by}"), actor);
    // With a grace period the time lies ahead.
    wait.since = Some(since);
    wait
}

/// Who wrote a field of an object, as its `managedFields` say.
pub(crate) fn manager_of(object: &Value, field: &str, value: &str) -> Option<String> {
    let has = |it: &Value| {
        let fields = it["fieldsV1"].to_string();
        fields.contains(&format!("\"{field}\"")) && fields.contains(&value.replace('"', "\\\""))
    };
    let entry = items(object, "/metadata/managedFields").iter().rev().find(|it| has(it))?;
    let at = entry["time"].as_str().map(|it| format!(" at {it}")).unwrap_or_default();
    Some(format!("{}{at}", text(entry, "/manager")))
}

/// What an owner is kept for: the first object that names it, among the kinds owners usually have.
async fn dependent(reader: &Reader<'_>, kind: &Kind, object: &Value) -> Option<String> {
    let child = match &*kind.singular {
        "deployment" => "replicaset",
        "cronjob" => "job",
        "replicaset" | "replicationcontroller" | "statefulset" | "daemonset" | "job" => "pod",
        _ => return None,
    };
    let (key, uid) = (key_of(object), text(object, "/metadata/uid"));
    let children = reader.list(&corten_kinds::by_name(child)?.resource, &key.namespace).await;
    let is_owned = |it: &&Value| items(it, "/metadata/ownerReferences").iter().any(|it| it["uid"] == uid);
    children.iter().find(is_owned).map(|it| format!("{child}/{}", text(it, "/metadata/name")))
}
