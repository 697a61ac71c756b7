//! The objects every cluster begins with: namespaces, roles and their bindings, priority classes.
//!
//! Each start puts back what is missing and leaves the rest alone; a restart of an unchanged cluster writes nothing.

mod controllers;
mod roles;

use bytes::Bytes;
use corten_api::resources::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, PRIORITY_CLASSES};
use corten_meta::{Key, Resource, Status};
use futures_util::future::try_join_all;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::{Identity, Server, access::MASTERS, filters::authenticate::AUTHENTICATED};

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// A write that is still to be made.
struct Write {
    method: Method,
    path: String,
    object: Value,
}

pub(crate) async fn run(server: &Server) -> Result<(), Status> {
    // Every write is its own request through the whole chain; together they share commits.
    try_join_all(wanted().into_iter().map(|(resource, object)| ensure(server, resource, object))).await?;
    Ok(())
}

/// Every object, each with the resource it is one of.
fn wanted() -> Vec<(&'static Resource, Value)> {
    const NODE_LEASES: &str = "kube-node-lease";
    let namespaces = ["default", "kube-system", "kube-public", NODE_LEASES];
    let mut objects: Vec<(&'static Resource, Value)> =
        namespaces.iter().map(|it| (&NAMESPACES_AT, json!({ "metadata": { "name": it } }))).collect();
    for role in roles::roles().into_iter().chain(controllers::roles()) {
        objects.push((&CLUSTER_ROLES_AT, role));
    }
    for binding in roles::bindings().into_iter().chain(controllers::bindings()) {
        objects.push((&CLUSTER_ROLE_BINDINGS_AT, binding));
    }
    objects.extend(priority_classes().map(|it| (&PRIORITY_CLASSES_AT, it)));
    objects
}

static NAMESPACES_AT: Resource = NAMESPACES;
static CLUSTER_ROLES_AT: Resource = CLUSTER_ROLES;
static CLUSTER_ROLE_BINDINGS_AT: Resource = CLUSTER_ROLE_BINDINGS;
static PRIORITY_CLASSES_AT: Resource = PRIORITY_CLASSES;

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

async fn ensure(server: &Server, resource: &'static Resource, mut object: Value) -> Result<(), Status> {
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    let name = object["metadata"]["name"].as_str().expect("every object here is named").to_owned();
    let stored = server.caches().get(resource).and_then(|it| it.get("", &name)).map(|it| it.parse());
    for write in writes(resource, &name, object, stored.as_ref()) {
        send(server, write).await?;
    }
    Ok(())
}

/// What it takes to make `stored` have all that `wanted` has.
fn writes(resource: &Resource, name: &str, wanted: Value, stored: Option<&Value>) -> Vec<Write> {
    let create = |object| Write { method: Method::POST, path: resource.collection_path(""), object };
    let path = resource.path(&Key::cluster(name));
    let Some(stored) = stored else { return vec![create(wanted)] };
    let is_rbac = resource.group == "rbac.authorization.k8s.io";
    // Namespaces and priority classes belong to the user once they are there. So does a role that says so.
    if !is_rbac || stored["metadata"]["annotations"][AUTOUPDATE] == "false" {
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
    for list in ["rules", "subjects"] {
        add_missing(&mut merged, &wanted, list);
    }
    if !wanted["aggregationRule"].is_null() {
        merged["aggregationRule"] = wanted["aggregationRule"].clone();
    }
    if merged == *stored { Vec::new() } else { vec![Write { method: Method::PUT, path, object: merged }] }
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

async fn send(server: &Server, write: Write) -> Result<(), Status> {
    let who = Identity::new("system:apiserver", &[MASTERS, AUTHENTICATED]);
    let request =
        Request::builder().method(write.method).uri(&write.path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Bytes::from(write.object.to_string()));
    let request = request.map_err(|it| Status::internal(format!("cannot ask for {}: {it}", write.path)))?;
    let response = server.call(who, request).await;
    if response.status().is_success() {
        return Ok(());
    }
    let body = response.into_body().collect().await.map_err(Status::internal)?.to_bytes();
    let status: Status = serde_json::from_slice(&body).map_err(Status::internal)?;
    // Another server of the same cluster was faster.
    if status.is_already_exists() || status.is_conflict() { Ok(()) } else { Err(status) }
}

#[cfg(test)]
mod tests;
