//! The verbs, written once for all kinds. What a kind does differently is in its row and its policy.

mod apply;
mod binding;
mod component_status;
mod create;
mod delete;
mod delete_collection;
mod delete_options;
mod eviction;
mod get;
mod journal;
mod list;
mod managed;
mod metadata;
mod options;
mod patch;
mod respond;
mod scale;
mod scale_apply;
mod target;
mod token;
mod update;
mod usage;
mod watch;
mod write;

use corten_kinds::{Kind, Subresource, Verb};
use corten_meta::Status;
use http::HeaderValue;

use crate::{
    answer,
    codec::{Form, yaml},
    connect, discovery, health, openapi,
    request::{Context, Response},
    reviews, tokens, watch_cache,
};
pub(crate) use delete::returns_object;
pub(crate) use metadata::name_suffix;
use target::Target;

/// As upstream: what warnings may take of an answer's headers.
const WARNING_BYTES_MAX: usize = 4096;

/// The last link of the chain.
pub(crate) async fn answer(ctx: &mut Context) -> Response {
    // What is asked of others is not ours to rewrite.
    let as_yaml = if ctx.info.proxied.is_some() { Ok(false) } else { yaml::wanted(ctx) };
    let result = match &as_yaml {
        Ok(_) => dispatch(ctx).await,
        Err(status) => Err(status.clone()),
    };
    ctx.take_notes();
    let mut response = answer::of(result);
    if let Ok(true) = as_yaml {
        response = yaml::rewritten(response).await;
    }
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
    let Some(kind) = ctx.info.kind else { return Err(Status::no_such_path()) };
    if let Some(deprecation) = corten_kinds::deprecation(&kind.resource) {
        ctx.warn(deprecation);
    }
    if !watch_cache::is_stored(kind.stored_row()) {
        return unstored(ctx, kind).await;
    }
    let target = Target::of(ctx, kind)?;
    let subresource = target.subresource;
    let response = match subresource {
        None => object(ctx, target).await,
        Some(subresource) => below_object(ctx, target, subresource).await,
    }?;
    connect::messages(ctx, subresource, response)
}

/// Paths that are no resource.
fn elsewhere(ctx: &Context) -> Result<Response, Status> {
    let system = health::answer(ctx).or_else(|| tokens::discovery::answer(ctx));
    let system = system.or_else(|| discovery::answer(ctx)).or_else(|| openapi::answer(ctx));
    system.unwrap_or_else(|| Err(Status::no_such_path()))
}

async fn unstored(ctx: &mut Context, kind: &'static Kind) -> Result<Response, Status> {
    match (ctx.info.verb, &*kind.resource.plural) {
        ("create", "bindings") => binding::legacy(ctx).await,
        ("get", "componentstatuses") => component_status::get(ctx, kind).await,
        ("list", "componentstatuses") => component_status::list(ctx, kind).await,
        ("get" | "list", _) if kind.resource.group == "metrics.k8s.io" => usage::answer(ctx, kind).await,
        ("create", _) if kind.verbs.contains(&Verb::Create) => reviews::answer(ctx).await,
        ("get", _) if kind.verbs.contains(&Verb::Get) => journal::get(ctx),
        _ => Err(not_allowed()),
    }
}

async fn object(ctx: &mut Context, target: Target) -> Result<Response, Status> {
    options::dry_run(ctx)?;
    let verb = target.asked.verbs.iter().find(|it| it.as_str() == ctx.info.verb);
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
    if subresource == Sub::Proxy {
        return connect::proxy(ctx).await;
    }
    options::dry_run(ctx)?;
    let form = Form::of(ctx);
    match (subresource, ctx.info.verb) {
        (Sub::Log | Sub::Exec | Sub::Attach | Sub::PortForward, _) => connect::answer(ctx, subresource).await,
        (Sub::Status | Sub::Approval, "get") => get::get(ctx, &target, form?).await,
        (Sub::Status | Sub::Finalize | Sub::Approval, "update") => update::update(ctx, &target, form?).await,
        (Sub::Status | Sub::Approval, "patch") => patch::patch(ctx, &target, form?).await,
        (Sub::Scale, "get") => scale::get(ctx, &target),
        (Sub::Scale, "update" | "patch") => scale::change_scale(ctx, &target).await,
        (Sub::Binding, "create") => binding::bind(ctx, &target).await,
        (Sub::Token, "create") => token::request(ctx, &target).await,
        (Sub::Eviction, "create") => eviction::evict(ctx, &target).await,
        (Sub::EphemeralContainers | Sub::Resize, "get") => get::get(ctx, &target, form?).await,
        (Sub::EphemeralContainers | Sub::Resize, "update") => update::update(ctx, &target, form?).await,
        (Sub::EphemeralContainers | Sub::Resize, "patch") => patch::patch(ctx, &target, form?).await,
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Status {
    let mut status =
        Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    status.details = Some(corten_meta::Details::default());
    status
}
