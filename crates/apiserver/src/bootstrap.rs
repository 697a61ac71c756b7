//! The objects every cluster begins with: namespaces, roles and their bindings, priority classes, flow schemas and priority
//! levels.
//!
//! Each start puts back what is missing and leaves the rest alone; a restart of an unchanged cluster writes nothing.

mod network;
mod root_ca;
mod services;
mod token_secrets;

use std::time::Duration;

use corten_access::default_roles;
use corten_api::resources::{
    CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, FLOW_SCHEMAS, NAMESPACES, PRIORITY_CLASSES, PRIORITY_LEVEL_CONFIGURATIONS,
    ROLE_BINDINGS, ROLES,
};
use corten_kinds::flow_control;
use corten_meta::{Key, Resource, Status};
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    own_requests::{self, JSON},
    state::State,
};

/// Before objects that were refused are tried again.
const RETRY: Duration = Duration::from_secs(2);

/// A write that is still to be made.
struct Write {
    method: Method,
    path: String,
    object: Value,
}

pub(crate) use network::refuse_other as refuse_other_network;
pub(crate) use services::addresses as service_addresses;

pub(crate) async fn run(state: &State) -> Result<(), Status> {
    let namespaces = state.caches().get(&NAMESPACES_AT).map(|it| it.snapshot());
    if let Some((_, reason)) = namespaces.as_ref().and_then(|it| it.unreadables()) {
        // The cluster is not new, and nothing can be written into a namespace that cannot be read. What can be read is served.
        tracing::error!(reason, "the objects every cluster begins with are not looked after");
        return Ok(());
    }
    // Every write is its own request through the whole chain; together they share commits. What is in a namespace comes
    // after it.
    for objects in [wanted(), wanted_within()] {
        ensure_all(state, objects).await?;
    }
    publish_authority(state).await?;
    network::publish(state).await?;
    services::run(state).await
}

/// Has nobody ever written anything?
pub(crate) fn is_new(state: &State) -> bool {
    state.caches().get(&NAMESPACES_AT).is_none_or(|it| it.snapshot().iter().next().is_none())
}

/// Tries again until all is there, or the server ends.
pub(crate) async fn keep_trying(state: State, mut ended: watch::Receiver<bool>) {
    let trying = async {
        while let Err(status) = run(&state).await {
            tracing::warn!(%status, "objects of the cluster cannot be written, and are tried again");
            tokio::time::sleep(RETRY).await;
        }
        tracing::info!("all objects of the cluster are there");
    };
    tokio::select! {
        biased;
        _ = ended.wait_for(|it| *it) => {}
        () = trying => {}
    }
}

/// Where clients and other API servers look whom to trust, made to say what is trusted now.
pub(crate) async fn publish_trust(state: &State) -> Result<(), Status> {
    root_ca::publish(state, &state.config().pki).await
}

/// What tells clients whom to trust, made to say what is trusted now.
pub(crate) async fn publish_authority(state: &State) -> Result<(), Status> {
    publish_trust(state).await?;
    token_secrets::publish(state).await
}

type ClusterObjects = Vec<(&'static Resource, Value)>;

/// Every object of the cluster's, each with the resource it is one of.
fn wanted() -> ClusterObjects {
    const NODE_LEASES: &str = "kube-node-lease";
    let namespaces = ["default", "kube-system", "kube-public", NODE_LEASES];
    let mut objects: ClusterObjects =
        namespaces.iter().map(|it| (&NAMESPACES_AT, json!({ "metadata": { "name": it } }))).collect();
    for role in default_roles::roles() {
        objects.push((&CLUSTER_ROLES_AT, role));
    }
    for binding in default_roles::bindings() {
        objects.push((&CLUSTER_ROLE_BINDINGS_AT, binding));
    }
    objects.extend(priority_classes().map(|it| (&PRIORITY_CLASSES_AT, it)));
    objects.extend(flow_control_objects());
    objects
}

fn flow_control_objects() -> impl Iterator<Item = (&'static Resource, Value)> {
    let levels = flow_control::priority_levels().into_iter().map(|it| (&PRIORITY_LEVELS_AT, it));
    levels.chain(flow_control::flow_schemas().into_iter().map(|it| (&FLOW_SCHEMAS_AT, it)))
}

/// Puts back what is missing of flow schemas and priority levels, and what says that it follows the release.
pub(crate) async fn keep_flow_control(state: &State) -> Result<(), Status> {
    ensure_all(state, flow_control_objects()).await
}

/// Every object in a namespace.
fn wanted_within() -> ClusterObjects {
    let roles = default_roles::namespaced_roles().into_iter().map(|it| (&ROLES_AT, it));
    roles.chain(default_roles::namespaced_bindings().into_iter().map(|it| (&ROLE_BINDINGS_AT, it))).collect()
}

static NAMESPACES_AT: Resource = NAMESPACES;
static CLUSTER_ROLES_AT: Resource = CLUSTER_ROLES;
static CLUSTER_ROLE_BINDINGS_AT: Resource = CLUSTER_ROLE_BINDINGS;
static ROLES_AT: Resource = ROLES;
static ROLE_BINDINGS_AT: Resource = ROLE_BINDINGS;
static PRIORITY_CLASSES_AT: Resource = PRIORITY_CLASSES;
static PRIORITY_LEVELS_AT: Resource = PRIORITY_LEVEL_CONFIGURATIONS;
static FLOW_SCHEMAS_AT: Resource = FLOW_SCHEMAS;

fn priority_classes() -> impl Iterator<Item = Value> {
    let class = |(name, value, description): (&str, i64, &str)| {
        json!({
            "metadata": { "name": name },
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    let node = "Used for system critical pods that must not be moved from their current node.";
    let cluster =
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.";
    [("system-node-critical", 2_000_001_000, node), ("system-cluster-critical", 2_000_000_000, cluster)]
        .into_iter()
        .map(class)
}

/// Where one is refused, the others are written all the same.
async fn ensure_all(
    state: &State,
    objects: impl IntoIterator<Item = (&'static Resource, Value)>,
) -> Result<(), Status> {
    let made = join_all(objects.into_iter().map(|(resource, object)| ensure(state, resource, object))).await;
    made.into_iter().collect()
}

async fn ensure(state: &State, resource: &'static Resource, mut object: Value) -> Result<(), Status> {
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    let name = object["metadata"]["name"].as_str().expect("every object here is named").to_owned();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let snapshot = state.caches().get(resource).map(|it| it.snapshot());
    if snapshot.as_ref().is_some_and(|it| it.unreadable(&namespace, &name).is_some()) {
        // It is there. What it says nobody knows: readiness tells.
        return Ok(());
    }
    let stored = snapshot.and_then(|it| it.get(&namespace, &name).map(|it| it.parse()));
    for write in writes(resource, &Key::new(namespace, name), object, stored.as_ref()) {
        send(state, write).await?;
    }
    Ok(())
}

/// What it takes to make `stored` have all that `wanted` has.
fn writes(resource: &Resource, key: &Key, wanted: Value, stored: Option<&Value>) -> Vec<Write> {
    let create = |object| Write { method: Method::POST, path: resource.collection_path(&key.namespace), object };
    let path = resource.path(key);
    let Some(stored) = stored else { return vec![create(wanted)] };
    if stored["metadata"]["annotations"][flow_control::AUTOUPDATE] == "true" && stored["spec"] != wanted["spec"] {
        let mut object = stored.clone();
        object["spec"] = wanted["spec"].clone();
        return vec![Write { method: Method::PUT, path, object }];
    }
    let is_rbac = resource.group == "rbac.authorization.k8s.io";
    // Namespaces and priority classes belong to the user once they are there. So does a role that says so.
    if !is_rbac || stored["metadata"]["annotations"][default_roles::AUTOUPDATE] == "false" {
        return Vec::new();
    }
    if stored["roleRef"] != wanted["roleRef"] {
        // A binding's role cannot be changed, only the binding replaced.
        let delete = Write { method: Method::DELETE, path, object: json!({}) };
        return vec![delete, create(wanted)];
    }
    let mut merged = stored.clone();
    for field in ["labels", "annotations"] {
        for (key, value) in wanted["metadata"][field].as_object().into_iter().flatten() {
            merged["metadata"][field][key] = value.clone();
        }
    }
    add_missing(&mut merged, &wanted, "subjects");
    if wanted["aggregationRule"].is_null() {
        add_missing(&mut merged, &wanted, "rules");
    } else {
        // A loop keeps its rules.
        merged["aggregationRule"] = wanted["aggregationRule"].clone();
    }
    if *resource == CLUSTER_ROLE_BINDINGS && key.name == "system:node" {
        unbind_nodes(&mut merged);
    }
    if merged == *stored { Vec::new() } else { vec![Write { method: Method::PUT, path, object: merged }] }
}

/// Clusters that began before there was a node authorizer bound all nodes to one role.
fn unbind_nodes(binding: &mut Value) {
    if let Some(subjects) = binding["subjects"].as_array_mut() {
        subjects.retain(|it| it["kind"] != "Group" || it["name"] != "system:nodes");
    }
}

/// What a user added stays; what a user took away comes back.
fn add_missing(merged: &mut Value, wanted: &Value, list: &str) {
    let items = wanted[list].as_array().cloned().unwrap_or_default();
    let held = merged[list].as_array().cloned().unwrap_or_default();
    let missing: Vec<Value> = items.into_iter().filter(|it| !held.contains(it)).collect();
    if !missing.is_empty() {
        merged[list] = held.into_iter().chain(missing).collect();
    }
}

async fn send(state: &State, write: Write) -> Result<(), Status> {
    let body = write.object.to_string().into();
    match own_requests::send(state, write.method, &write.path, JSON, body).await {
        // Another server of the same cluster was faster.
        Err(status) if status.is_already_exists() || status.is_conflict() => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests;
