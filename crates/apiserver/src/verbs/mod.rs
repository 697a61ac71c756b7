//! The verbs, written once for all kinds. What a kind does differently is in its row and its policy.

mod binding;
mod create;
mod delete;
mod delete_collection;
mod eviction;
mod get;
mod journal;
mod list;
mod metadata;
mod options;
mod patch;
mod respond;
mod scale;
mod target;
mod update;
mod watch;
mod write;

use corten_kinds::{Kind, Subresource, Verb};
use corten_meta::Status;
use http::HeaderValue;

use crate::{
    answer,
    codec::Form,
    connect, discovery, health, openapi,
    request::{Context, Response},
    reviews, watch_cache,
};
use target::Target;

/// As upstream: what warnings may take of an answer's headers.
const WARNING_BYTES_MAX: usize = 4096;

/// The last link of the chain.
pub(crate) async fn answer(ctx: &mut Context) -> Response {
    let result = dispatch(ctx).await;
    let mut response = answer::of(result);
    let mut room = WARNING_BYTES_MAX;
    for warning in &ctx.warnings {
        room = room.saturating_sub(warning.len());
        if room == 0 {
            break;
        }
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}

async fn dispatch(ctx: &mut Context) -> Result<Response, Status> {
    if !ctx.info.is_resource {
        return elsewhere(ctx);
    }
    if ctx.info.kind.is_none() && ctx.info.group.is_empty() && ctx.info.plural == "bindings" {
        return binding::legacy(ctx).await;
    }
    let Some(kind) = ctx.info.kind else { return Err(Status::no_such_path()) };
    if !watch_cache::is_stored(kind) {
        return unstored(ctx, kind).await;
    }
    let target = Target::of(ctx, kind)?;
    match target.subresource {
        None => object(ctx, target).await,
        Some(subresource) => below_object(ctx, target, subresource).await,
    }
}

/// Paths that are no resource.
fn elsewhere(ctx: &Context) -> Result<Response, Status> {
    let system = health::answer(ctx).or_else(|| discovery::answer(ctx)).or_else(|| openapi::answer(ctx));
    system.unwrap_or_else(|| Err(Status::no_such_path()))
}

async fn unstored(ctx: &mut Context, kind: &'static Kind) -> Result<Response, Status> {
    match ctx.info.verb {
        "create" if kind.verbs.contains(&Verb::Create) => reviews::answer(ctx).await,
        "get" if kind.verbs.contains(&Verb::Get) => journal::get(ctx),
        _ => Err(not_allowed()),
    }
}

async fn object(ctx: &mut Context, target: Target) -> Result<Response, Status> {
    options::dry_run(ctx)?;
    let verb = target.kind.verbs.iter().find(|it| it.as_str() == ctx.info.verb);
    let form = Form::of(ctx)?;
    match verb {
        Some(Verb::Get) => get::get(ctx, &target, form).await,
        Some(Verb::List) => list::list(ctx, &target, form).await,
        Some(Verb::Watch) => watch::watch(ctx, &target, form).await,
        Some(Verb::Create) if target.name.is_empty() => create::create(ctx, &target, form).await,
        Some(Verb::Update) if !target.name.is_empty() => update::update(ctx, &target, form).await,
        Some(Verb::Patch) if !target.name.is_empty() => patch::patch(ctx, &target, form).await,
        Some(Verb::Delete) => delete::delete(ctx, &target, form).await,
        Some(Verb::DeleteCollection) => delete_collection::delete_collection(ctx, &target, form).await,
        _ => Err(not_allowed()),
    }
}

async fn below_object(ctx: &mut Context, target: Target, subresource: Subresource) -> Result<Response, Status> {
    use Subresource as Sub;
    options::dry_run(ctx)?;
    let form = Form::of(ctx);
    match (subresource, ctx.info.verb) {
        (Sub::Log | Sub::Exec | Sub::Attach | Sub::PortForward, _) => connect::answer(ctx, subresource).await,
        (Sub::Status, "get") => get::get(ctx, &target, form?).await,
        (Sub::Status | Sub::Finalize, "update") => update::update(ctx, &target, form?).await,
        (Sub::Status, "patch") => patch::patch(ctx, &target, form?).await,
        (Sub::Scale, "get") => scale::get(ctx, &target),
        (Sub::Scale, "update" | "patch") => scale::change_scale(ctx, &target).await,
        (Sub::Binding, "create") => binding::bind(ctx, &target).await,
        (Sub::Eviction, "create") => eviction::evict(ctx, &target).await,
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Status {
    let mut status =
        Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    status.details = Some(corten_meta::Details::default());
    status
}
