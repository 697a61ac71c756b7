//! `scale`: the one number autoscalers and `kubectl scale` write, as `autoscaling/v1 Scale`, over any kind with replicas.

use std::collections::BTreeSet;

use bytes::Bytes;
use corten_cacher::{answer, body::Response};
use corten_meta::{LabelSelector, Resource, Status, Violation, depth, selector::Requirement};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    body, managed,
    patch::{self, Patch},
    scale_apply,
    target::Target,
    update::{Part, change},
};
use crate::context::Context;

pub(crate) const SCALE: Resource = Resource::namespaced("autoscaling", "v1", "Scale", "scales");
pub(crate) const SCHEMA: &str = "io.k8s.api.autoscaling.v1.Scale";

pub(crate) fn get(ctx: &Context, target: &Target) -> Result<Response, Status> {
    Ok(answer::json(StatusCode::OK, &scale_of(&target.current(ctx)?.draft())))
}

pub(crate) async fn change_by(ctx: &mut Context, target: &Target, wish: &Wish) -> Result<Bytes, Status> {
    change(ctx, target, Part::Main, &mut |ctx, old| {
        let asked = wish.apply(ctx, old)?;
        let replicas = checked(&asked, target)?;
        let mut new = old.clone();
        new["spec"]["replicas"] = replicas.into();
        // The Scale's preconditions are the object's.
        for name in ["resourceVersion", "uid"] {
            if asked["metadata"][name].is_string() {
                new["metadata"][name] = asked["metadata"][name].clone();
            }
        }
        Ok(new)
    })
    .await
}

pub(crate) async fn change_scale(ctx: &mut Context, target: &Target) -> Result<Response, Status> {
    let is_patch = ctx.info.verb == "patch";
    if is_patch && patch::media_type(ctx) == patch::APPLY {
        return scale_apply::apply(ctx, target).await;
    }
    managed::check_options(ctx, false)?;
    let wish = if is_patch {
        Wish::Patch(Patch::read(ctx).await?)
    } else {
        Wish::Whole(body::part(ctx, "Scale", &["autoscaling/v1"], SCHEMA).await?)
    };
    let json = change_by(ctx, target, &wish).await?;
    let object = depth::read(&json).map_err(Status::internal)?.value;
    Ok(answer::json(StatusCode::OK, &scale_of(&object)))
}

/// How the client said what it wants.
pub(crate) enum Wish {
    Whole(Value),
    Patch(Patch),
}

impl Wish {
    fn apply(&self, ctx: &mut Context, old: &Value) -> Result<Value, Status> {
        let patch = match self {
            Self::Whole(scale) => return Ok(scale.clone()),
            Self::Patch(patch) => patch,
        };
        let mut scale = patch.apply(SCHEMA, &scale_of(old))?;
        patch.decode(ctx, SCHEMA, &mut scale)?;
        Ok(scale)
    }
}

pub(crate) fn checked(scale: &Value, target: &Target) -> Result<i64, Status> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (text(&scale["kind"]), text(&scale["apiVersion"]));
    if kind != "Scale" || api_version != "autoscaling/v1" {
        return Err(Status::bad_request(format!(
            "{kind} in version {api_version:?} cannot be handled as a Scale: expected autoscaling/v1 Scale"
        )));
    }
    let metadata = &scale["metadata"];
    let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
    if !name.is_empty() && name != target.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(Status::bad_request(message));
    }
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let violation = Violation::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(Status::invalid(&SCALE, &target.name, &[violation]));
    }
    Ok(replicas)
}

pub(crate) fn scale_of(object: &Value) -> Value {
    let meta = &object["metadata"];
    let selector = selector_of(object);
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": { "replicas": object["spec"]["replicas"].as_i64().unwrap_or_default() },
        "status": {
            "replicas": object["status"]["replicas"].as_i64().unwrap_or_default(),
            "selector": written(&selector),
        },
    })
}

/// A ReplicationController's selector is older: labels alone.
fn selector_of(object: &Value) -> LabelSelector {
    let selector = object["spec"]["selector"].clone();
    if object["kind"] == "ReplicationController" {
        let match_labels = serde_json::from_value(selector).unwrap_or_default();
        return LabelSelector { match_labels, ..LabelSelector::default() };
    }
    serde_json::from_value(selector).unwrap_or_default()
}

fn joined(values: BTreeSet<String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

/// The selector in its text form.
fn written(selector: &LabelSelector) -> String {
    let parts = selector.selector().0.into_iter().map(|it| match it {
        Requirement::In(key, values) if values.len() == 1 => format!("{key}={}", joined(values)),
        Requirement::In(key, values) => format!("{key} in ({})", joined(values)),
        Requirement::NotIn(key, values) => format!("{key} notin ({})", joined(values)),
        Requirement::Exists(key) => key,
        Requirement::DoesNotExist(key) => format!("!{key}"),
        Requirement::GreaterThan(key, bound) => format!("{key}>{bound}"),
        Requirement::LessThan(key, bound) => format!("{key}<{bound}"),
    });
    parts.collect::<Vec<_>>().join(",")
}
