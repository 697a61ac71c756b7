//! `scale`: the one number autoscalers and `kubectl scale` write, as `autoscaling/v1 Scale`, over any kind with replicas.

use std::collections::BTreeSet;

use bytes::Bytes;
use corten_cacher::{answer, body::Response};
use corten_kinds::{Scale, Schema};
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
    let object = target.current(ctx)?.draft();
    let at = place_of(target);
    // Of the built-in kinds, all have it or its default.
    if target.kind.is_custom() && walked(&object, &at).is_none() {
        let message = format!("the spec replicas field {:?} does not exist", format!(".{}", at.join(".")));
        return Err(Status::internal(message));
    }
    Ok(answer::json(StatusCode::OK, &scale_of(target, &object)))
}

pub(crate) async fn change_by(ctx: &mut Context, target: &Target, wish: &Wish) -> Result<Bytes, Status> {
    change(ctx, target, Part::Main, &mut |ctx, old| {
        let asked = wish.apply(ctx, target, old)?;
        let replicas = checked(&asked, target)?;
        let mut new = old.clone();
        set_replicas(target, &mut new, replicas);
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
    Ok(answer::json(StatusCode::OK, &scale_of(target, &object)))
}

/// How the client said what it wants.
pub(crate) enum Wish {
    Whole(Value),
    Patch(Patch),
}

impl Wish {
    fn apply(&self, ctx: &mut Context, target: &Target, old: &Value) -> Result<Value, Status> {
        let patch = match self {
            Self::Whole(scale) => return Ok(scale.clone()),
            Self::Patch(patch) => patch,
        };
        let schema = Schema::Table(SCHEMA);
        let mut scale = patch.apply(&schema, &scale_of(target, old))?;
        patch.decode(ctx, &schema, &mut scale)?;
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

/// Where the object says how many replicas it wants.
pub(super) fn place_of(target: &Target) -> Vec<&str> {
    match scale_paths(target) {
        Some(scale) => scale.spec_replicas.iter().map(String::as_str).collect(),
        None => vec!["spec", "replicas"],
    }
}

/// What a definition says of its objects' scale.
fn scale_paths(target: &Target) -> Option<&Scale> {
    match &target.asked.schema {
        Schema::Structural(schema) => schema.scale.as_ref(),
        Schema::Table(_) => None,
    }
}

fn walked<'v>(object: &'v Value, path: &[impl AsRef<str>]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name.as_ref()))
}

pub(super) fn set_replicas(target: &Target, object: &mut Value, replicas: i64) {
    let mut value = object;
    for name in place_of(target) {
        if !value.is_object() {
            *value = json!({});
        }
        value = &mut value[name];
    }
    *value = replicas.into();
}

pub(crate) fn scale_of(target: &Target, object: &Value) -> Value {
    let meta = &object["metadata"];
    let count = |path: &[&str]| walked(object, path).and_then(Value::as_i64).unwrap_or_default();
    let (in_status, selector) = match scale_paths(target) {
        Some(scale) => {
            let selector = walked(object, &scale.selector).filter(|_| !scale.selector.is_empty());
            let text = selector.and_then(Value::as_str).unwrap_or_default().to_owned();
            (scale.status_replicas.iter().map(String::as_str).collect(), text)
        }
        None => (vec!["status", "replicas"], written(&selector_of(object))),
    };
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": { "replicas": count(&place_of(target)) },
        "status": {
            "replicas": count(&in_status),
            "selector": selector,
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
