//! Server-side apply of a Scale: who owns the replicas of the object is shown as who owns those of its Scale, and back.

use corten_cacher::{answer, body::Response, codec};
use corten_kinds::scale_form::{self, place_of, scale_of, set_replicas};
use corten_meta::{Status, depth};
use corten_schema::apply::{self, OneView, Operation, Owner, Owners, Set, Write};
use http::StatusCode;
use serde_json::Value;

use super::{
    apply::{identified, refusal},
    managed::{self, Author, Tracked},
    request_scope::RequestScope,
    scale::{SCALE, SCHEMA, checked},
    update::{MakeOwned, Part, change_owned},
};
use crate::context::Context;

const VERSION: &str = "autoscaling/v1";
const REPLICAS: &[&str] = &["spec", "replicas"];

pub(super) async fn apply(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    managed::check_options(ctx, true)?;
    let body = ctx.read_body().await?;
    let configuration = codec::configuration(&body)?.value;
    identified(&SCALE, &configuration)?;
    let make: MakeOwned<'_> = &mut |ctx, old| {
        scale_form::check(&target.asked, old).map_err(Status::internal)?;
        let (new, tracked) = applied(ctx, target, &configuration, old)?;
        Ok((new, Some(tracked)))
    };
    let json = change_owned(ctx, target, Part::Main, make).await?;
    let object = depth::read(&json).map_err(Status::internal)?.value;
    Ok(answer::json(StatusCode::OK, &scale_of(&target.asked, &object)))
}

fn applied(
    ctx: &Context,
    target: &RequestScope,
    configuration: &Value,
    old: &Value,
) -> Result<(Value, Tracked), Status> {
    let of = corten_schema::find(SCHEMA).ok_or_else(|| Status::internal("a Scale has no schema"))?;
    let (author, now) = (managed::author(ctx), ctx.state.now().to_string());
    let by = Author { name: &author, operation: Operation::Apply };
    let reset = Set::of_fields(&[&["status"]]);
    let write = Write { of: of.into(), by: by.owner(target, VERSION), now: &now, reset: &reset, views: &OneView };
    let text = managed::text_of(old);
    let parents = Owners::read(text).unwrap_or_default();
    let replicas_at = place_of(&target.asked);
    let live = pruned(scale_of(&target.asked, old));
    let result = apply::apply(
        &write,
        Some(&live),
        configuration,
        of_scale(&parents, &replicas_at),
        ctx.info.query.is_set("force"),
    )
    .map_err(|it| refusal(&SCALE, configuration, &it))?;
    let scale = result.object.as_ref().unwrap_or(&live);
    let replicas = checked(scale, target)?;
    let mut new = old.clone();
    set_replicas(&target.asked, &mut new, replicas).map_err(Status::internal)?;
    for name in ["resourceVersion", "uid"] {
        new["metadata"][name] = scale["metadata"][name].clone();
    }
    let version = target.asked.resource.api_version();
    let tracked = Tracked {
        same: result.owned.same,
        text: of_object(parents, &result.owned.owners, &version, &replicas_at).write(),
    };
    Ok((new, tracked))
}

/// Without the nulls of what the object does not have.
fn pruned(mut scale: Value) -> Value {
    corten_schema::prune(SCHEMA, &mut scale);
    scale
}

/// As an owner of the Scale's replicas, if it owns the object's.
fn in_scale<'a>(owner: &Owner<'a>, at: &[&str]) -> Option<Owner<'a>> {
    let mut owner = owner.set().has(at).then(|| owner.clone().with(Set::of_fields(&[REPLICAS])))?;
    owner.api_version = VERSION.into();
    Some(owner)
}

fn of_scale<'a>(parents: &Owners<'a>, at: &[&str]) -> Owners<'a> {
    Owners(parents.0.iter().filter_map(|it| in_scale(it, at)).collect())
}

/// Owners of the object who lost its replicas through the Scale lose them here, and those who gained them come in.
fn of_object<'a>(parents: Owners<'a>, scales: &Owners<'a>, version: &'a str, at: &[&'a str]) -> Owners<'a> {
    let replicas = || Set::of_fields(&[at]);
    let in_object = |it: &Owner<'a>| it.clone().with(replicas());
    let mut gained: Vec<Owner<'a>> = scales.0.iter().filter(|it| it.set().has(REPLICAS)).map(in_object).collect();
    let mut owners = Vec::new();
    for owner in parents.0 {
        match in_scale(&owner, at).map(|seen| gained.iter().position(|it| it.is(&seen))) {
            None => owners.push(owner),
            Some(Some(at)) => {
                gained.remove(at);
                owners.push(owner);
            }
            Some(None) => {
                let left = owner.set().into_owned().difference(&replicas());
                if !left.is_empty() {
                    owners.push(owner.with(left));
                }
            }
        }
    }
    for mut owner in gained {
        owner.api_version = version.into();
        owners.push(owner);
    }
    Owners(owners)
}
