//! `pods/NAME/binding`: a scheduler's decision, written into the Pod once.

use corten_cacher::{answer, body::Response};
use corten_kinds::{Kind, binding};
use corten_meta::Status;
use http::StatusCode;
use serde_json::Value;

use super::{
    body, metadata,
    request_scope::RequestScope,
    update::{Part, change},
    write_request::WriteRequest,
};
use crate::context::Context;

const SCHEMA: &str = "io.k8s.api.core.v1.Binding";

/// The older path: `bindings`, with the Pod's name in the body. Admission is shown a Binding that is created, as upstream.
pub(crate) async fn legacy(ctx: &mut Context, kind: &'static Kind) -> Result<Response, Status> {
    let pods = corten_kinds::by_path("", "v1", "pods").ok_or_else(Status::no_such_path)?;
    let binding = body::part(ctx, "Binding", &["v1"], SCHEMA).await?;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let subresource = Some(corten_kinds::Subresource::Binding);
    let target = RequestScope::built_in(pods, ctx.info.namespace.clone(), name.clone(), subresource);
    let shown = RequestScope::built_in(kind, ctx.info.namespace.clone(), name, None);
    assign(ctx, &shown, &target, binding).await
}

pub(crate) async fn bind(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    let binding = body::part(ctx, "Binding", &["v1"], SCHEMA).await?;
    assign(ctx, target, target, binding).await
}

/// `shown`: what admission sees of `target`, the Pod.
async fn assign(
    ctx: &mut Context,
    shown: &RequestScope,
    target: &RequestScope,
    mut binding: Value,
) -> Result<Response, Status> {
    metadata::place(&mut binding, target, "")?;
    let asked = WriteRequest::create(ctx, shown);
    asked.admit(&mut binding).await?;
    // Whoever may change a Binding does not bind another Pod with it.
    if binding["metadata"]["name"] != *target.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    asked.validate(&binding).await?;
    let violations = binding::violations(&binding);
    if !violations.is_empty() {
        let resource = corten_meta::Resource::namespaced("", "v1", "Binding", "bindings");
        return Err(Status::invalid(&resource, &target.name, &violations));
    }
    change(ctx, target, Part::Own, &mut |ctx, pod| assigned(ctx, target, &binding, pod)).await?;
    let mut status = Status::success();
    status.code = 201;
    Ok(answer::json(StatusCode::CREATED, &status))
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
    Ok(binding::bound(pod, binding, ctx.state.now()))
}
