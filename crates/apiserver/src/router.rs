//! From what a request asks for to who does it: the last link of the chain.

use corten_access::tokens;
use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_cacher::{
    answer,
    apart::stepwise,
    body::Response,
    codec::{self, protobuf, yaml},
    watch_cache,
};
use corten_kinds::{Kind, KindRef, Subresource, Verb};
use corten_meta::Status;
use corten_routes::{Route, write_options};
use http::{HeaderMap, Method, header};

use crate::{
    connect,
    context::Context,
    debug_fairness, debug_flags, health, progress,
    verbs::{
        binding, component_status, connecting, create, delete, delete_collection, eviction, get, journal, list, patch,
        request_scope::RequestScope, reviews, scale, token, update, usage, watch, write,
    },
};

pub(crate) async fn answer(ctx: &mut Context) -> Response {
    if ctx.is_aggregated() {
        return answer::of(Box::pin(connect::aggregated(ctx)).await);
    }
    // What is asked of others is not ours to rewrite.
    let as_yaml = if ctx.info.proxied.is_some() { Ok(false) } else { yaml::wanted(&mut ctx.headers, ctx.info.verb) };
    let as_protobuf = wants_protobuf(ctx);
    ctx.protobuf = as_protobuf;
    let result = match &as_yaml {
        Ok(_) => dispatch(ctx).await,
        Err(status) => Err(status.clone()),
    };
    ctx.take_notes();
    let mut response = answer::of(result);
    if let Ok(true) = as_yaml {
        response = Box::pin(yaml::rewritten(response)).await;
    }
    if as_protobuf {
        response = Box::pin(protobuf::rewritten(response)).await;
    }
    for warning in ctx.warnings.headers() {
        response.headers_mut().append(http::header::WARNING, warning);
    }
    response
}

/// Of what protobuf has: objects of Kubernetes's own kinds, metadata of all, and the scale of all; groups and what is served of each.
fn wants_protobuf(ctx: &mut Context) -> bool {
    use Subresource as Sub;
    let objects = match &ctx.info.route {
        Route::Collection(kind, _) | Route::Object(kind, _) => protobuf::has(kind),
        Route::Subresource(_, Sub::Log | Sub::Exec | Sub::Attach | Sub::PortForward | Sub::Proxy, _) => return false,
        Route::Subresource(_, Sub::Scale, _) => true,
        Route::Subresource(kind, ..) => protobuf::has(kind),
        // The index of all paths has no form but JSON. All of discovery at once has its own (`Discovery::answer`).
        Route::NonResource if ctx.info.path.starts_with("/api") && !accepts_aggregated(&ctx.headers) => {
            ctx.served.discovery().has(&ctx.info.path)
        }
        _ => return false,
    };
    ctx.info.proxied.is_none() && protobuf::wanted(&mut ctx.headers, &ctx.info.query, objects)
}

fn accepts_aggregated(headers: &HeaderMap) -> bool {
    codec::header(headers, &header::ACCEPT).contains("as=APIGroupDiscoveryList")
}

async fn dispatch(ctx: &mut Context) -> Result<Response, Status> {
    let route = ctx.info.route.clone();
    if route.kind().is_some_and(|it| has_lost_its_definition(ctx, it)) {
        return Err(Status::no_such_path());
    }
    if let Some(deprecation) = route.kind().and_then(|it| corten_kinds::deprecation(it)) {
        ctx.state.metrics().requests.note_deprecated(&ctx.info, &deprecation.removed_release);
        ctx.warn(deprecation.warning);
    }
    let response = match route {
        Route::NonResource if ctx.info.path == debug_flags::PATH => return Box::pin(debug_flags::answer(ctx)).await,
        Route::NonResource => return elsewhere(ctx),
        Route::UnknownResource | Route::NoSuchPath(_) | Route::Aggregated { .. } => Err(Status::no_such_path()),
        Route::NoSuchMethod(kind) if ctx.method == Method::POST && ctx.info.name.is_empty() && is_leaving(&kind) => {
            Err(write::leaving(&kind.resource))
        }
        Route::NoSuchMethod(_) => Err(not_allowed()),
        Route::Collection(kind, verb) | Route::Object(kind, verb) if !watch_cache::is_stored(&kind.stored_row()) => {
            let KindRef::BuiltIn(kind) = kind else { return Err(Status::no_such_path()) };
            return Box::pin(made_for_asking(ctx, kind, verb)).await;
        }
        Route::Collection(kind, verb) => {
            let target = RequestScope::of(ctx, kind)?;
            // One that is named by nobody yet: what is large of it was sent.
            if verb == Verb::Create && target.is_large(ctx) {
                Box::pin(stepwise(collection(ctx, target, verb))).await
            } else {
                collection(ctx, target, verb).await
            }
        }
        Route::Object(kind, verb) => {
            let target = RequestScope::of(ctx, kind)?;
            if !ctx.method.is_safe() && target.is_large(ctx) {
                Box::pin(stepwise(object(ctx, target, verb))).await
            } else {
                object(ctx, target, verb).await
            }
        }
        Route::Subresource(kind, subresource, verb) => {
            let target = RequestScope::of(ctx, kind)?;
            let is_large = matches!(verb, Some(Verb::Update | Verb::Patch)) && target.is_large(ctx);
            let below_object = Box::pin(below_object(ctx, target, subresource, verb));
            if is_large { stepwise(below_object).await } else { below_object.await }
        }
    }?;
    connect::messages(ctx, response)
}

/// Paths that are no resource.
fn elsewhere(ctx: &Context) -> Result<Response, Status> {
    let system = health::answer(ctx).or_else(|| debug_fairness::answer(ctx).map(Ok));
    let system = system.or_else(|| progress::answer(ctx)).or_else(|| {
        let keys = ctx.state.access().authenticator().pki().token_keys();
        tokens::discovery::answer(&ctx.info.path, &ctx.method, &keys)
    });
    let system = system
        .or_else(|| ctx.served.discovery().answer(&ctx.info, &ctx.method, &ctx.headers))
        .or_else(|| corten_openapi::answer(&ctx.served, &ctx.info, &ctx.method, &ctx.headers));
    system.unwrap_or_else(|| Err(Status::no_such_path()))
}

async fn made_for_asking(ctx: &mut Context, kind: &'static Kind, verb: Verb) -> Result<Response, Status> {
    match (verb, &*kind.resource.plural) {
        (Verb::Create, "bindings") => binding::legacy(ctx, kind).await,
        (Verb::Get, "componentstatuses") => component_status::get(ctx, kind).await,
        (Verb::List, "componentstatuses") => component_status::list(ctx, kind).await,
        (Verb::Get | Verb::List, _) if kind.resource.group == "metrics.k8s.io" => usage::answer(ctx, kind).await,
        (Verb::Create, _) => reviews::answer(ctx, kind).await,
        (Verb::Get, _) => journal::get(ctx, kind).await,
        (Verb::List, _) => journal::list(ctx, kind).await,
        _ => Err(not_allowed()),
    }
}

async fn collection(ctx: &mut Context, target: RequestScope, verb: Verb) -> Result<Response, Status> {
    write_options::dry_run(&ctx.info.query, ctx.info.verb)?;
    let form = ctx.form()?;
    match verb {
        Verb::List => Box::pin(list::list(ctx, &target, form)).await,
        Verb::Watch => Box::pin(watch::watch(ctx, &target, form)).await,
        Verb::Create => Box::pin(create::create(ctx, &target, form)).await,
        Verb::DeleteCollection => Box::pin(delete_collection::delete_collection(ctx, &target, form)).await,
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => Err(not_allowed()),
    }
}

async fn object(ctx: &mut Context, target: RequestScope, verb: Verb) -> Result<Response, Status> {
    write_options::dry_run(&ctx.info.query, ctx.info.verb)?;
    let form = ctx.form()?;
    match verb {
        Verb::Get => get::get(ctx, &target, form).await,
        Verb::Watch => Box::pin(watch::watch_one(ctx, &target, form)).await,
        Verb::Update => Box::pin(update::update(ctx, &target, form)).await,
        Verb::Patch => Box::pin(patch::patch(ctx, &target, form)).await,
        Verb::Delete => Box::pin(delete::delete(ctx, &target, form)).await,
        Verb::List | Verb::Create | Verb::DeleteCollection => Err(not_allowed()),
    }
}

async fn below_object(
    ctx: &mut Context,
    target: RequestScope,
    subresource: Subresource,
    verb: Option<Verb>,
) -> Result<Response, Status> {
    use Subresource as Sub;
    connecting::admit(ctx, &target).await?;
    if subresource == Sub::Proxy {
        return Box::pin(connect::proxy(ctx)).await;
    }
    let Some(verb) = verb else { return Err(not_allowed()) };
    write_options::dry_run(&ctx.info.query, ctx.info.verb)?;
    let form = ctx.form();
    match (subresource, verb) {
        (Sub::Log | Sub::Exec | Sub::Attach | Sub::PortForward, _) => Box::pin(connect::answer(ctx, subresource)).await,
        (Sub::Scale, Verb::Get) => scale::get(ctx, &target).await,
        (Sub::Scale, _) => Box::pin(scale::change_scale(ctx, &target)).await,
        (Sub::Binding, _) => Box::pin(binding::bind(ctx, &target)).await,
        (Sub::Token, _) => Box::pin(token::request(ctx, &target)).await,
        (Sub::Eviction, _) => Box::pin(eviction::evict(ctx, &target)).await,
        (_, Verb::Get) => get::get(ctx, &target, form?).await,
        (_, Verb::Update) => Box::pin(update::update(ctx, &target, form?)).await,
        (_, Verb::Patch) => Box::pin(patch::patch(ctx, &target, form?)).await,
        _ => Err(not_allowed()),
    }
}

/// Whoever is told that a definition is gone finds nothing of its kind, though the loop that takes its rows away may not have come to
/// that yet.
fn has_lost_its_definition(ctx: &Context, kind: &KindRef) -> bool {
    let definitions = ctx.state.caches().get(&CUSTOM_RESOURCE_DEFINITIONS).filter(|_| kind.is_custom());
    definitions.is_some_and(|it| it.get("", &kind.resource.qualified()).is_none())
}

/// Is the definition of custom resources being deleted?
fn is_leaving(kind: &Kind) -> bool {
    kind.is_custom() && !kind.allows(Verb::Create)
}

fn not_allowed() -> Status {
    let mut status =
        Status::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    status.details = Some(corten_meta::Details::default());
    status
}
