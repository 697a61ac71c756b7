//! What keeps an object that is deleted: its finalizers, who takes each away, and when.

use corten_api::snapshots::{BOUND_FINALIZER, CLAIM_FINALIZER, CONTENT_FINALIZER, SOURCE_FINALIZER, VOLUME_SNAPSHOTS};
use corten_api::{
    resources::PERSISTENT_VOLUME_CLAIMS,
    volumes::{CLONING_FINALIZER, LOCAL_DRIVER},
};
use corten_kinds::{Kind, custom::CLEANUP_FINALIZER};
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::{drivers, found::Findings, refusers};
use crate::why::{
    custom,
    fields::{condition, items, key_of, one_line, text, time},
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
    (
        CLONING_FINALIZER,
        Actor::External,
        "the CSI provisioner takes it away when no clone of the claim waits for its volume",
    ),
    ("resources-finalizer.argocd.argoproj.io", Actor::External, "Argo CD takes it away when it has pruned the app"),
    ("service.kubernetes.io/load-balancer-cleanup", Actor::External, "the cloud's service loop takes it away"),
    ("snapshot.storage.kubernetes.io/", Actor::External, "the CSI snapshotter takes it away"),
];

/// The same of volumes and snapshots where Corten does what the sidecars of a driver would.
const FINALIZERS_OF_SIDECARS: &[(&str, &str)] = &[
    ("external-attacher/", "the driver's node takes it away when the volume is detached"),
    (
        "external-provisioner.volume.kubernetes.io/finalizer",
        "the driver's node takes it away when the volume is removed",
    ),
    (CLONING_FINALIZER, "the driver's node takes it away when no clone of the claim waits for its volume"),
    (CONTENT_FINALIZER, "the driver's node takes it away when the snapshot is removed"),
    (BOUND_FINALIZER, "the snapshot loop takes it away when no claim is being made of it and its content is gone"),
    (SOURCE_FINALIZER, "the snapshot loop takes it away when no claim is being made of it and its content is gone"),
    (CLAIM_FINALIZER, "the snapshot loop takes it away when no snapshot is being taken of it"),
];

/// As what Corten's nodes and loops write fields: the first three in the server's process, the last from elsewhere.
const OWN_MANAGERS: [&str; 4] = ["kubelet", "kube-controller-manager", "node-volume-provisioner", "corten"];

pub(super) async fn leaving(reader: &Reader<'_>, kind: &Kind, object: &Value, found: &mut Findings) {
    let Some(since) = time(&object["metadata"]["deletionTimestamp"]) else { return };
    if kind.singular == "namespace" {
        found.explains.push("FinalizerRemains");
        let own = items(object, "/spec/finalizers").iter().filter_map(Value::as_str).filter(|it| *it != "kubernetes");
        own.for_each(|it| found.wait(holds(object, it, since)));
    }
    let namespace = text(object, "/metadata/namespace");
    if is_held(object) && !namespace.is_empty() && reader.lacks_namespace(namespace).await {
        // The admission plugin NamespaceLifecycle lets deletions through there and refuses updates.
        let message =
            format!("there is no namespace {namespace:?}: its finalizers cannot be taken away before there is");
        let mut wait = Wait::new("NamespaceNotFound", message, Actor::Operator);
        wait.since = Some(since);
        found.wait(wait);
    }
    for finalizer in items(object, "/metadata/finalizers").iter().filter_map(Value::as_str) {
        let mut wait = holds(object, finalizer, since);
        match finalizer {
            "foregroundDeletion" => wait.on = dependent(reader, kind, object).await,
            CLAIM_FINALIZER => wait.on = untaken(reader, object).await,
            CLONING_FINALIZER => wait.on = unmade(reader, object).await,
            CLEANUP_FINALIZER => match undeleted(object) {
                Some(refused) => wait = refused,
                None => wait.on = remaining(reader, object).await,
            },
            // Corten asks the driver first.
            _ if wait.actor == Actor::Cluster
                && (finalizer.starts_with("external-") || finalizer == CONTENT_FINALIZER) =>
            {
                let (driver, refused) = (driver_of(object), text(object, "/status/detachError/message"));
                if driver != LOCAL_DRIVER && drivers::run_nowhere(reader, driver).await {
                    wait.message.push_str("; but no node runs driver ");
                    wait.message.push_str(driver);
                    wait.actor = Actor::External;
                } else if !refused.is_empty() && finalizer.starts_with("external-attacher/") {
                    wait = Wait::new("DetachRefused", one_line(refused), Actor::External);
                    wait.since = Some(since);
                }
            }
            _ => {}
        }
        found.wait(wait);
    }
}

fn holds(object: &Value, finalizer: &str, since: Time) -> Wait {
    let (actor, who) = taken_by(object, finalizer);
    let set_by = manager_of(object, "f:finalizers", finalizer).map(|it| format!("; set by {it}")).unwrap_or_default();
    let mut wait = Wait::new("FinalizerHolds", format!("finalizer {finalizer:?} remains: {who}{set_by}"), actor);
    // With a grace period the time lies ahead.
    wait.since = Some(since);
    wait
}

/// Who takes a finalizer away, and when.
fn taken_by(object: &Value, finalizer: &str) -> (Actor, &'static str) {
    let is_it = |name: &str| finalizer == name || (name.ends_with('/') && finalizer.starts_with(name));
    let of_sidecar = FINALIZERS_OF_SIDECARS.iter().find(|it| is_it(it.0));
    if let Some((_, when)) = of_sidecar.filter(|_| is_cortens(object, finalizer)) {
        return (Actor::Cluster, when);
    }
    let known = FINALIZERS.iter().find(|it| is_it(it.0));
    known.map_or((Actor::External, "only the program it belongs to knows when it goes"), |it| (it.1, it.2))
}

/// Does Corten do what a sidecar would? Whoever set a finalizer of a volume takes it away.
fn is_cortens(object: &Value, finalizer: &str) -> bool {
    driver_of(object) == LOCAL_DRIVER
        || entry_of(object, "f:finalizers", finalizer).is_some_and(|it| OWN_MANAGERS.contains(&text(it, "/manager")))
}

/// Of a volume, an attachment or a snapshot's content.
fn driver_of(object: &Value) -> &str {
    let names = ["/spec/csi/driver", "/spec/driver", "/spec/attacher"].map(|it| text(object, it));
    names.into_iter().find(|it| !it.is_empty()).unwrap_or_default()
}

/// Who wrote a field of an object, as its `managedFields` say.
pub(crate) fn manager_of(object: &Value, field: &str, value: &str) -> Option<String> {
    let entry = entry_of(object, field, value).filter(|it| !text(it, "/manager").is_empty())?;
    let at = entry["time"].as_str().map(|it| format!(" at {it}")).unwrap_or_default();
    Some(format!("{}{at}", text(entry, "/manager")))
}

fn entry_of<'a>(object: &'a Value, field: &str, value: &str) -> Option<&'a Value> {
    let has = |it: &&Value| {
        let fields = it["fieldsV1"].to_string();
        fields.contains(&format!("\"{field}\"")) && fields.contains(&value.replace('"', "\\\""))
    };
    items(object, "/metadata/managedFields").iter().rev().find(has)
}

/// Kinds of which an owner in a namespace is usually kept, those first that controllers make.
const DEPENDENTS: [&str; 9] = [
    "replicaset",
    "job",
    "pod",
    "persistentvolumeclaim",
    "statefulset",
    "deployment",
    "service",
    "configmap",
    "secret",
];

/// What an owner is kept for: of the objects that name it and block its deletion one that is held itself, else the first.
async fn dependent(reader: &Reader<'_>, kind: &Kind, object: &Value) -> Option<String> {
    let children: &[&str] = match &*kind.singular {
        "deployment" => &["replicaset"],
        "cronjob" => &["job"],
        "replicaset" | "replicationcontroller" | "daemonset" | "job" => &["pod"],
        _ => &DEPENDENTS,
    };
    let (key, uid) = (key_of(object), text(object, "/metadata/uid"));
    let others = if children.len() > 1 { custom::kinds(reader).await } else { Vec::new() };
    let kinds = children.iter().filter_map(|it| corten_kinds::by_name(it)).chain(others);
    let mut found: Vec<(bool, String)> = Vec::new();
    for kind in kinds {
        let objects = match children.len() {
            1 => reader.list(&kind.resource, &key.namespace).await,
            _ => reader.list_metadata(&kind.resource, &key.namespace).await,
        };
        let blocks = |it: &&Value| {
            let mut owners = items(it, "/metadata/ownerReferences").iter();
            owners.any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
        };
        found.extend(objects.iter().filter(blocks).map(|it| (!is_held(it), name_of(kind, it))));
        if found.iter().any(|it| !it.0) {
            break;
        }
    }
    found.into_iter().min_by_key(|it| it.0).map(|it| it.1)
}

fn is_held(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string() && !items(object, "/metadata/finalizers").is_empty()
}

/// As a wait names what it waits for.
fn name_of(kind: &Kind, object: &Value) -> String {
    let word = if kind.is_custom() { kind.resource.qualified() } else { kind.singular.to_string() };
    let key = key_of(object);
    let place = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    format!("{word}/{place}{}", key.name)
}

/// The snapshot that is still to be taken of a claim.
async fn untaken(reader: &Reader<'_>, claim: &Value) -> Option<String> {
    let key = key_of(claim);
    let snapshots = reader.list(&VOLUME_SNAPSHOTS, &key.namespace).await;
    let is_untaken = |it: &&Value| {
        let is_leaving = it["metadata"]["deletionTimestamp"].is_string();
        text(it, "/spec/source/persistentVolumeClaimName") == key.name
            && !is_leaving
            && it["status"]["readyToUse"] != true
    };
    let untaken = snapshots.iter().find(is_untaken)?;
    Some(format!("{}/{}", VOLUME_SNAPSHOTS.qualified(), text(untaken, "/metadata/name")))
}

/// A clone of the claim that has no volume yet.
async fn unmade(reader: &Reader<'_>, source: &Value) -> Option<String> {
    let key = key_of(source);
    let claims = reader.list(&PERSISTENT_VOLUME_CLAIMS, &key.namespace).await;
    let is_unmade = |it: &&Value| {
        let of = &it["spec"]["dataSourceRef"];
        let is_claim = text(of, "/kind") == "PersistentVolumeClaim" && text(of, "/apiGroup").is_empty();
        is_claim && text(of, "/name") == key.name && !matches!(text(it, "/status/phase"), "Bound" | "Lost")
    };
    let unmade = claims.iter().find(is_unmade)?;
    Some(format!("persistentvolumeclaim/{}", text(unmade, "/metadata/name")))
}

/// Objects of a definition that could not be deleted, as it says itself.
fn undeleted(definition: &Value) -> Option<Wait> {
    let failed = condition(definition, "Terminating").filter(|it| it["reason"] == "InstanceDeletionFailed")?;
    let said = text(failed, "/message");
    let mut wait = refusers::read(said).unwrap_or_else(|| Wait::new("InstanceDeletionFailed", said, Actor::Operator));
    wait.since = time(&failed["lastTransitionTime"]);
    Some(wait)
}

/// What a definition is kept for: of its objects one that is held, else the first.
async fn remaining(reader: &Reader<'_>, definition: &Value) -> Option<String> {
    let name = text(definition, "/metadata/name");
    let kind = custom::kinds(reader).await.into_iter().find(|it| it.resource.qualified() == name)?;
    let objects = reader.list_metadata(&kind.resource, "").await;
    objects.iter().min_by_key(|it| !is_held(it)).map(|it| name_of(kind, it))
}

/// The collector that deletes what its owner leaves behind, by upstream's name of the controller.
const COLLECTOR: &str = "garbage-collector-controller";

/// Takes the collector out of those that are `off` where nothing of it is awaited, and says what waits for it in vain.
pub(in crate::why) async fn without_collector(
    reader: &Reader<'_>,
    object: &Value,
    off: &mut Vec<String>,
    found: &mut Findings,
) {
    if !off.iter().any(|it| it == COLLECTOR) {
        return;
    }
    let mut awaited = found.waits.iter_mut().map(|it| &mut it.1).filter(|it| it.message.contains("garbage collector"));
    if let Some(wait) = awaited.next().filter(|it| it.on.is_none()) {
        wait.actor = Actor::Operator;
        wait.message.push_str("; it is off here");
    } else if let Some(owner) = gone_owner(reader, object).await {
        let message =
            format!("its owner {owner} is gone, and the garbage collector, which would delete it, is off here");
        found.add("OwnerGone", message, Actor::Operator);
    } else {
        off.retain(|it| it != COLLECTOR);
    }
}

/// The first owner of an object, where none of all is there any more.
async fn gone_owner(reader: &Reader<'_>, object: &Value) -> Option<String> {
    let mut first = None;
    for owner in items(object, "/metadata/ownerReferences") {
        let kind = custom::kind_served(reader, text(owner, "/apiVersion"), text(owner, "/kind")).await?;
        let namespace = if kind.resource.namespaced { text(object, "/metadata/namespace") } else { "" };
        let key = Key::new(namespace, text(owner, "/name"));
        let is_gone = match reader.get(&kind.resource, &key).await {
            Some(found) => found["metadata"]["uid"] != owner["uid"],
            None => reader.is_missing(&kind.resource, &key).await,
        };
        if !is_gone {
            return None;
        }
        first = first.or_else(|| Some(format!("{}/{}", kind.singular, key.name)));
    }
    first
}
