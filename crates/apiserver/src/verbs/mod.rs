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
mod unstored;
mod update;
mod usage;
mod watch;
mod write;

use crate::{
    answer,
    codec::{Form, yaml},
    connect, discovery, health, openapi,
    request::{Context, Response},
    reviews, tokens, watch_cache,
};
use corten_kinds::{Kind, Subresource, Verb, routes::Route};
use corten_meta::Status;
pub(crate) use delete::returns_object;
pub(crate) use metadata::name_suffix;
use target::Target;

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
    for warning in ctx.warnings.headers() {
        response.headers_mut().append(http::header::WARNING, warning);
    }
    response
}

async fn dispatch(ctx: &mut Context) -> Result<Response, Status> {
    let route = ctx.info.route;
    if let Some(deprecation) = route.kind().and_then(|it| corten_kinds::deprecation(&it.resource)) {
        ctx.warn(deprecation);
    }
    let response = match route {
        Route::NonResource => return elsewhere(ctx),
        Route::UnknownResource | Route::NoSuchPath(_) => Err(Status::no_such_path()),
        Route::NoSuchMethod(_) => Err(not_allowed()),
        Route::Collection(kind, verb) | Route::Object(kind, verb) if !watch_cache::is_stored(kind.stored_row()) => {
            return made_for_asking(ctx, kind, verb).await;
        }
        Route::Collection(kind, verb) => collection(ctx, Target::of(&ctx.info, kind), verb).await,
        Route::Object(kind, verb) => object(ctx, Target::of(&ctx.info, kind), verb).await,
        Route::Subresource(kind, subresource, verb) => {
            below_object(ctx, Target::of(&ctx.info, kind), subresource, verb).await
        }
    }?;
    connect::messages(ctx, response)
}

/// Paths that are no resource.
fn elsewhere(ctx: &Context) -> Result<Response, Status> {
    let system = health::answer(ctx).or_else(|| tokens::discovery::answer(ctx));
    let system = system.or_else(|| discovery::answer(ctx)).or_else(|| openapi::answer(ctx));
    system.unwrap_or_else(|| Err(Status::no_such_path()))
}

async fn made_for_asking(ctx: &mut Context, kind: &'static Kind, verb: Verb) -> Result<Response, Status> {
    match (verb, &*kind.resource.plural) {
        (Verb::Create, "bindings") => binding::legacy(ctx).await,
        (Verb::Get, "componentstatuses") => component_status::get(ctx, kind).await,
        (Verb::List, "componentstatuses") => component_status::list(ctx, kind).await,
        (Verb::Get | Verb::List, _) if kind.resource.group == "metrics.k8s.io" => usage::answer(ctx, kind).await,
        (Verb::Create, _) => reviews::answer(ctx, kind).await,
        (Verb::Get, _) => journal::get(ctx, kind),
        (Verb::List, _) => journal::list(ctx, kind),
        _ => Err(not_allowed()),
    }
}

async fn collection(ctx: &mut Context, target: Target, verb: Verb) -> Result<Response, Status> {
    options::dry_run(ctx)?;
    let form = Form::of(ctx)?;
    match verb {
        Verb::List => list::list(ctx, &target, form).await,
        Verb::Watch => watch::watch(ctx, &target, form).await,
        Verb::Create => create::create(ctx, &target, form).await,
        Verb::DeleteCollection => delete_collection::delete_collection(ctx, &target, form).await,
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => Err(not_allowed()),
    }
}

async fn object(ctx: &mut Context, target: Target, verb: Verb) -> Result<Response, Status> {
    options::dry_run(ctx)?;
    let form = Form::of(ctx)?;
    match verb {
        Verb::Get => get::get(ctx, &target, form).await,
        Verb::Watch => watch::watch_one(ctx, &target, form).await,
        Verb::Update => update::update(ctx, &target, form).await,
        Verb::Patch => patch::patch(ctx, &target, form).await,
        Verb::Delete => delete::delete(ctx, &target, form).await,
        Verb::List | Verb::Create | Verb::DeleteCollection => Err(not_allowed()),
    }
}

async fn below_object(
    ctx: &mut Context,
    target: Target,
    subresource: Subresource,
    verb: Option<Verb>,
) -> Result<Response, Status> {
    use Subresource as Sub;
    if subresource == Sub::Proxy {
        return connect::proxy(ctx).await;
    }
    let Some(verb) = verb else { return Err(not_allowed()) };
    options::dry_run(ctx)?;
    let form = Form::of(ctx);
    match (subresource, verb) {
        (Sub::Log | Sub::Exec | Sub::Attach | Sub::PortForward, _) => connect::answer(ctx, subresource).await,
        (Sub::Scale, Verb::Get) => scale::get(ctx, &target),
        (Sub::Scale, _) => scale::change_scale(ctx, &target).await,
        (Sub::Binding, _) => binding::bind(ctx, &target).await,
        (Sub::Token, _) => token::request(ctx, &target).await,
        (Sub::Eviction, _) => eviction::evict(ctx, &target).await,
        (_, Verb::Get) => get::get(ctx, &target, form?).await,
        (_, Verb::Update) => update::update(ctx, &target, form?).await,
        (_, Verb::Patch) => patch::patch(ctx, &target, form?).await,
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Status {
    let mut status =
        Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    status.details = Some(corten_meta::Details::default());
    status
}
