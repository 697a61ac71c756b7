//! `scale`: the one number autoscalers and `kubectl scale` write, as `autoscaling/v1 Scale`, over any kind with replicas.

use bytes::Bytes;
use corten_cacher::{answer, body::Response, watch_cache::versions};
use corten_kinds::Schema;
use corten_kinds::scale_form::{self, place_of, scale_of, set_replicas, walked};
use corten_meta::{Resource, Status, Violation, depth};
use http::StatusCode;
use serde_json::Value;

use super::{
    body, managed,
    patch::{self, Patch},
    request_scope::RequestScope,
    scale_apply,
    update::{Part, change},
};
use crate::context::Context;

pub(crate) const SCALE: Resource = Resource::namespaced("autoscaling", "v1", "Scale", "scales");
pub(crate) const SCHEMA: &str = "io.k8s.api.autoscaling.v1.Scale";

pub(crate) async fn get(ctx: &Context, target: &RequestScope) -> Result<Response, Status> {
    let stored = target.current(ctx)?;
    let mut object = target.converted(ctx, stored).await?.draft();
    if target.kind.is_custom() {
        versions::from_stored(&target.kind, &mut object);
    }
    scale_form::check(&target.asked, &object).map_err(Status::internal)?;
    let at = place_of(&target.asked);
    // Of the built-in kinds, all have it or its default.
    if target.kind.is_custom() && walked(&object, &at).is_none() {
        let message = format!("the spec replicas field {:?} does not exist", format!(".{}", at.join(".")));
        return Err(Status::internal(message));
    }
    Ok(answer::json(StatusCode::OK, &scale_of(&target.asked, &object)))
}

pub(crate) async fn change_by(
    ctx: &mut Context,
    target: &RequestScope,
    scale_change: &ScaleChange,
) -> Result<Bytes, Status> {
    change(ctx, target, Part::Main, &mut |ctx, old| {
        scale_form::check(&target.asked, old).map_err(Status::internal)?;
        let asked = scale_change.apply(ctx, target, old)?;
        let replicas = checked(&asked, target)?;
        let mut new = old.clone();
        set_replicas(&target.asked, &mut new, replicas).map_err(Status::internal)?;
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

pub(crate) async fn change_scale(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    let is_patch = ctx.info.verb == "patch";
    if is_patch && patch::media_type(ctx) == patch::APPLY {
        return scale_apply::apply(ctx, target).await;
    }
    managed::check_options(ctx, false)?;
    let scale_change = if is_patch {
        ScaleChange::Patch(Patch::read(ctx).await?)
    } else {
        ScaleChange::Whole(body::part(ctx, "Scale", &["autoscaling/v1"], SCHEMA).await?)
    };
    let json = change_by(ctx, target, &scale_change).await?;
    let object = depth::read(&json).map_err(Status::internal)?.value;
    Ok(answer::json(StatusCode::OK, &scale_of(&target.asked, &object)))
}

/// How the client said what it wants.
pub(crate) enum ScaleChange {
    Whole(Value),
    Patch(Patch),
}

impl ScaleChange {
    fn apply(&self, ctx: &mut Context, target: &RequestScope, old: &Value) -> Result<Value, Status> {
        let patch = match self {
            Self::Whole(scale) => return Ok(scale.clone()),
            Self::Patch(patch) => patch,
        };
        let schema = Schema::Table(SCHEMA);
        let mut scale = patch.apply(&schema, &scale_of(&target.asked, old))?;
        patch.decode(ctx, &schema, &mut scale)?;
        Ok(scale)
    }
}

pub(crate) fn checked(scale: &Value, target: &RequestScope) -> Result<i64, Status> {
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
