//! `pods/NAME/eviction`: a delete that a disruption budget may refuse.
//!
//! The budget pays before the Pod goes: of two evictions that see the last allowed disruption one is refused.

use std::sync::Arc;

use corten_api::resources::POD_DISRUPTION_BUDGETS;
use corten_cacher::{answer, body::Response, watch_cache::Stored};
use corten_kinds::Kind;
use corten_meta::Status;
use corten_policies::eviction;
use corten_routes::DeleteOptions;
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    body, delete,
    request_scope::RequestScope,
    update::{Make, Part, change},
    write_request::WriteRequest,
};
use crate::context::Context;

const VERSIONS: &[&str] = &["policy/v1", "policy/v1beta1"];
const SCHEMA: &str = "io.k8s.api.policy.v1.Eviction";
/// How often a budget that others take from at the same time is asked again; each time one of them got on.
const ATTEMPTS: usize = 20;

pub(crate) async fn evict(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    let mut eviction = body::part(ctx, "Eviction", VERSIONS, SCHEMA).await?;
    names(&eviction, target)?;
    super::metadata::place(&mut eviction, target, "")?;
    let asked = WriteRequest::create(ctx, target);
    asked.admit(&mut eviction).await?;
    names(&eviction, target)?;
    asked.validate(&eviction).await?;
    let mut options = DeleteOptions::of(&eviction["deleteOptions"])?;
    options.dry_run |= ctx.dry_run();
    remove(ctx, target, &options).await?;
    let mut status = Status::success();
    status.code = 201;
    Ok(answer::json(StatusCode::CREATED, &status))
}

fn names(eviction: &Value, target: &RequestScope) -> Result<(), Status> {
    if eviction["metadata"]["name"].as_str() != Some(&target.name) {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    Ok(())
}

async fn remove(ctx: &mut Context, target: &RequestScope, options: &DeleteOptions) -> Result<(), Status> {
    let mut conflict = Status::stale(target.resource(), &target.name);
    for _ in 0..ATTEMPTS {
        let stored = target.current(ctx)?;
        let pod = stored.parse();
        if !eviction::disrupts_nobody(&pod) {
            return remove_guarded(ctx, target, options, &stored, &pod).await;
        }
        // A Pod that may yet become ready goes only as it was seen.
        let enforced = if eviction::has_ended(&pod) || options.names_revision() {
            options.clone()
        } else {
            options.at(stored.revision)
        };
        match mark_and_delete(ctx, target, &enforced).await {
            Err(status) if status.is_conflict() && !options.names_revision() => conflict = status,
            other => return other,
        }
    }
    Err(conflict)
}

async fn remove_guarded(
    ctx: &mut Context,
    target: &RequestScope,
    options: &DeleteOptions,
    stored: &Stored,
    pod: &Value,
) -> Result<(), Status> {
    let budgets = guarding(ctx, target, pod);
    let budget = match &*budgets {
        [] => return mark_and_delete(ctx, target, options).await,
        [one] => one,
        _ => {
            let message =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::failure(500, "", message));
        }
    };
    if !eviction::minds_not(&budget.parse(), pod) {
        pay(ctx, target, budget.name(), options).await?;
        return mark_and_delete(ctx, target, options).await;
    }
    let removed = mark_and_delete(ctx, target, &options.at(stored.revision)).await;
    removed.map_err(|status| match status.is_conflict() && !options.names_revision() {
        // It may be healthy by now.
        true => eviction::still_processed(budget.name()),
        false => status,
    })
}

fn budgets_kind() -> &'static Kind {
    let resource = POD_DISRUPTION_BUDGETS;
    corten_kinds::by_path(&resource.group, &resource.version, &resource.plural).expect("budgets are a row of the table")
}

fn guarding(ctx: &Context, target: &RequestScope, pod: &Value) -> Vec<Arc<Stored>> {
    let budgets = ctx.state.cache(budgets_kind()).snapshot();
    let in_namespace = budgets.range(&target.namespace, None);
    in_namespace.filter(|it| eviction::guards(&it.parse(), pod)).cloned().collect()
}

/// Takes one disruption from the budget, as it is when the write is made.
async fn pay(ctx: &mut Context, pod: &RequestScope, budget: &str, options: &DeleteOptions) -> Result<(), Status> {
    let target = RequestScope::built_in(budgets_kind(), pod.namespace.clone(), budget.to_owned(), None);
    let now = ctx.state.now();
    if options.dry_run {
        return eviction::take(&mut target.current(ctx)?.parse(), &pod.name, now);
    }
    for _ in 0..ATTEMPTS {
        let make: Make<'_> = &mut |_, old| {
            let mut new = old.clone();
            eviction::take(&mut new, &pod.name, now)?;
            Ok(new)
        };
        match change(ctx, &target, Part::Own, make).await {
            Err(status) if status.is_conflict() => {}
            other => return other.map(drop),
        }
    }
    Err(Status::timeout(format!("couldn't update PodDisruptionBudget {budget:?} due to conflicts")))
}

/// Says in the Pod's status why it goes, then deletes it.
async fn mark_and_delete(ctx: &mut Context, target: &RequestScope, options: &DeleteOptions) -> Result<(), Status> {
    let mut options = options.clone();
    if !options.dry_run {
        let checked = options.clone();
        change(ctx, target, Part::Own, &mut |ctx, old| {
            let current = target.current(ctx)?;
            checked.check(target.resource(), &target.name, current.uid(), current.revision)?;
            Ok(marked(ctx, old))
        })
        .await?;
        if options.names_revision() {
            // The mark is a change of our own.
            options = options.at(target.current(ctx)?.revision);
        }
    }
    delete::remove(ctx, target, &options).await.map(drop)
}

fn marked(ctx: &Context, pod: &Value) -> Value {
    let mut pod = pod.clone();
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().position(|it| it["type"] == "DisruptionTarget");
    let same = before.map(|at| &conditions[at]).filter(|it| it["status"] == "True");
    let since = same.map_or_else(|| json!(ctx.state.now().to_string()), |it| it["lastTransitionTime"].clone());
    let condition = json!({
        "type": "DisruptionTarget", "observedGeneration": pod["metadata"]["generation"], "status": "True",
        "lastProbeTime": null, "lastTransitionTime": since,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    match before {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    pod["status"]["conditions"] = conditions.into();
    pod
}
