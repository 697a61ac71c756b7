//! `scale`: the one number autoscalers and `kubectl scale` write, as `autoscaling/v1 Scale`, over any kind with replicas.

use bytes::Bytes;
use corten_meta::{LabelSelector, Resource, Status, Violation, selector::Requirement};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    patch::Patch,
    target::Target,
    update::{Part, change},
};
use crate::{
    answer, codec,
    request::{Context, Response},
};

const SCALE: Resource = Resource::namespaced("autoscaling", "v1", "Scale", "scales");
const SCHEMA: &str = "io.k8s.api.autoscaling.v1.Scale";

pub(super) fn get(ctx: &Context, target: &Target) -> Result<Response, Status> {
    Ok(answer::json(StatusCode::OK, &scale_of(&target.current(ctx)?.parse())))
}

pub(super) async fn change_by(ctx: &mut Context, target: &Target, wish: &Wish) -> Result<Bytes, Status> {
    change(ctx, target, Part::Main, &mut |_, old| {
        let asked = wish.apply(old)?;
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

pub(super) async fn change_scale(ctx: &mut Context, target: &Target) -> Result<Response, Status> {
    let wish = if ctx.info.verb == "patch" {
        Wish::Patch(Patch::read(ctx).await?)
    } else {
        Wish::Whole(codec::document(ctx, "Scale").await?.value)
    };
    let json = change_by(ctx, target, &wish).await?;
    let object: Value = serde_json::from_slice(&json).map_err(Status::internal)?;
    Ok(answer::json(StatusCode::OK, &scale_of(&object)))
}

/// How the client said what it wants.
pub(super) enum Wish {
    Whole(Value),
    Patch(Patch),
}

impl Wish {
    fn apply(&self, old: &Value) -> Result<Value, Status> {
        match self {
            Self::Whole(scale) => Ok(scale.clone()),
            Self::Patch(patch) => patch.apply(SCHEMA, &scale_of(old)),
        }
    }
}

fn checked(scale: &Value, target: &Target) -> Result<i64, Status> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (text(&scale["kind"]), text(&scale["apiVersion"]));
    if !matches!(&*kind, "" | "Scale") || !matches!(&*api_version, "" | "autoscaling/v1") {
        return Err(Status::bad_request(format!(
            "{kind} in version {api_version:?} cannot be handled as a Scale: expected autoscaling/v1 Scale"
        )));
    }
    let name = text(&scale["metadata"]["name"]);
    if !name.is_empty() && name != target.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(Status::bad_request(message));
    }
    match &scale["spec"]["replicas"] {
        Value::Null => Ok(0),
        other => match other.as_i64() {
            Some(replicas) if (0..=i64::from(i32::MAX)).contains(&replicas) => Ok(replicas),
            Some(replicas) => {
                let detail = "must be greater than or equal to 0";
                let violation = Violation::invalid("spec.replicas", replicas, detail);
                Err(Status::invalid(&SCALE, &target.name, &[violation]))
            }
            None => Err(Status::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {other} into Go struct field ScaleSpec.spec.replicas of type int32"
            ))),
        },
    }
}

fn scale_of(object: &Value) -> Value {
    let meta = &object["metadata"];
    let selector = serde_json::from_value::<LabelSelector>(object["spec"]["selector"].clone()).unwrap_or_default();
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

/// The selector in its text form.
fn written(selector: &LabelSelector) -> String {
    let parts = selector.selector().0.into_iter().map(|it| match it {
        Requirement::In(key, values) => match &*values {
            [one] => format!("{key}={one}"),
            many => format!("{key} in ({})", many.join(",")),
        },
        Requirement::NotIn(key, values) => format!("{key} notin ({})", values.join(",")),
        Requirement::Exists(key) => key,
        Requirement::DoesNotExist(key) => format!("!{key}"),
        Requirement::GreaterThan(key, bound) => format!("{key}>{bound}"),
        Requirement::LessThan(key, bound) => format!("{key}<{bound}"),
    });
    parts.collect::<Vec<_>>().join(",")
}
