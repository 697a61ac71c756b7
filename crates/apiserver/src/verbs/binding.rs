//! `pods/NAME/binding`: a scheduler's decision, written into the Pod once.

use corten_cacher::{answer, body::Response};
use corten_meta::{Status, Violation};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    body, metadata,
    request_scope::RequestScope,
    update::{Part, change},
    write_request::WriteRequest,
};
use crate::context::Context;

const SCHEMA: &str = "io.k8s.api.core.v1.Binding";

/// The older path: `bindings`, with the Pod's name in the body.
pub(crate) async fn legacy(ctx: &mut Context) -> Result<Response, Status> {
    let kind = corten_kinds::by_path("", "v1", "pods").ok_or_else(Status::no_such_path)?;
    let binding = body::part(ctx, "Binding", &["v1"], SCHEMA).await?;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let subresource = Some(corten_kinds::Subresource::Binding);
    let target = RequestScope::built_in(kind, ctx.info.namespace.clone(), name, subresource);
    assign(ctx, &target, binding).await
}

pub(crate) async fn bind(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    let binding = body::part(ctx, "Binding", &["v1"], SCHEMA).await?;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    if !name.is_empty() && name != target.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    assign(ctx, target, binding).await
}

async fn assign(ctx: &mut Context, target: &RequestScope, mut binding: Value) -> Result<Response, Status> {
    metadata::place(&mut binding, target, "")?;
    let asked = WriteRequest::create(ctx, target);
    asked.admit(&mut binding).await?;
    asked.validate(&binding).await?;
    let violations = violations(&binding);
    if !violations.is_empty() {
        let resource = corten_meta::Resource::namespaced("", "v1", "Binding", "bindings");
        return Err(Status::invalid(&resource, &target.name, &violations));
    }
    change(ctx, target, Part::Own, &mut |ctx, pod| assigned(ctx, target, &binding, pod)).await?;
    let mut status = Status::success();
    status.code = 201;
    Ok(answer::json(StatusCode::CREATED, &status))
}

fn violations(binding: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let target = &binding["target"];
    if !matches!(target["kind"].as_str(), None | Some("" | "Node")) {
        let kind = target["kind"].as_str().unwrap_or_default();
        found.push(Violation::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if target["name"].as_str().unwrap_or_default().is_empty() {
        found.push(Violation::required("target.name", ""));
    }
    found
}

/// The Pod with its node, unless it has one or must not get one.
fn assigned(ctx: &mut Context, target: &RequestScope, binding: &Value, pod: &Value) -> Result<Value, Status> {
    let conflict = |detail: String| Err(Status::conflict(target.resource(), &target.name, &detail));
    let (wanted, meta) = (&binding["metadata"], &pod["metadata"]);
    for name in ["uid", "resourceVersion"] {
        let asked = wanted[name].as_str().unwrap_or_default();
        let found = meta[name].as_str().unwrap_or_default();
        if !asked.is_empty() && asked != found {
            return conflict(format!(
                "Precondition failed: {name} in precondition: {asked}, {name} in object meta: {found}"
            ));
        }
    }
    if !meta["deletionTimestamp"].is_null() {
        return conflict(format!("pod {} is being deleted, cannot be assigned to a host", target.name));
    }
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !node.is_empty() {
        return conflict(format!("pod {} is already assigned to node {node:?}", target.name));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|it| !it.is_empty()) {
        return conflict(format!("pod {} has non-empty .spec.schedulingGates", target.name));
    }
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    // Whoever bound it, where it was expected to go is over (KEP-5278, `ClearingNominatedNodeNameAfterBinding`).
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    for (key, value) in wanted["annotations"].as_object().into_iter().flatten() {
        pod["metadata"]["annotations"][key.as_str()] = value.clone();
    }
    for (key, value) in wanted["labels"].as_object().into_iter().flatten() {
        pod["metadata"]["labels"][key.as_str()] = value.clone();
    }
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": ctx.state.now().to_string(),
    });
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let conditions = pod["status"]["conditions"].as_array_mut().expect("made a list above");
    conditions.retain(|it| it["type"] != "PodScheduled");
    conditions.push(scheduled);
    Ok(pod)
}
