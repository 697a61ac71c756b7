//! A request is answered when it has its seats; until then it waits in its priority level (`WithPriorityAndFairness`). One that is
//! wide is answered where no other waits behind it.

use std::time::Duration;

use corten_access::identity::ANONYMOUS;
use corten_cacher::{body::Response, watch_cache::ResourceCache};
use corten_fairness::{Classified, DescribedRequest, RequestWords};
use corten_flowcontrol::{RequestDigest, RequestedResource, width_of_list};
use http::HeaderValue;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::{authorize, next::Rest};
use crate::{context::Context, verbs::request_scope::LARGE_BYTES};

/// How long a request waits for a seat: a quarter of the time it has until it is answered (`getRequestWaitContext`).
const PATIENCE: Duration = Duration::from_secs(15);

const SELECTORS: [&str; 2] = ["labelSelector", "fieldSelector"];
/// To read so much takes less time than to answer.
const SHORT_SELECTOR_BYTES: usize = 4096;

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let width = width(ctx);
    let is_wide = is_wide(ctx, width);
    let wide = match ctx.placement() {
        Some(placement) => placement.take_place(is_wide).await,
        None => None,
    };
    let response = when_seated(ctx, rest, width).await;
    match wide {
        Some(wide) => response.map(|it| wide.with(it).boxed_unsync()),
        None => response,
    }
}

/// A list of many objects keeps a core busy, and so does reading a selector of thousands of requirements; whoever asks for it: also those
/// who are exempt, and wait for no seat.
fn is_wide(ctx: &Context, width: u32) -> bool {
    let selectors = SELECTORS.iter().filter_map(|it| ctx.info.query.get(it));
    ctx.info.verb == "list" && (width > 1 || selectors.map(str::len).sum::<usize>() > SHORT_SELECTOR_BYTES)
}

async fn when_seated(ctx: &mut Context, rest: Rest, width: u32) -> Response {
    if ctx.holds_no_seats() {
        return rest.run(ctx).await;
    }
    // Who sends slowly holds no seat meanwhile. Nobody's body is received before it is known whether they may send one.
    if is_write(ctx.info.verb) && ctx.asker_now().user != ANONYMOUS && authorize::is_allowed(ctx).await {
        ctx.receive_body().await;
        // Who waits for room holds no seat either.
        let bytes = n_worked_on(ctx);
        if bytes > LARGE_BYTES
            && let Err(status) = ctx.take_work_room(bytes).await
        {
            return super::measure::terminated(ctx, &status);
        }
    }
    let classified = {
        let asked = asked(ctx);
        ctx.state.fairness().classify(ctx.state.caches(), &asked)
    };
    if let Some(n_watchers) = n_watchers(ctx) {
        classified.watched(n_watchers);
    }
    let width = if classified.is_exempt() { 1 } else { width.min(classified.width_max()) };
    let came = Instant::now();
    let begun = classified.begin(width, PATIENCE, described(ctx, &classified)).await;
    ctx.seat_wait = came.elapsed();
    let mut response = match begun {
        Ok(underway) => {
            ctx.seats = Some(underway);
            rest.run(ctx).await
        }
        Err(status) => super::measure::terminated(ctx, &status),
    };
    let uids = [
        ("x-kubernetes-pf-flowschema-uid", classified.schema_uid()),
        ("x-kubernetes-pf-prioritylevel-uid", classified.level_uid()),
    ];
    for (name, uid) in uids {
        if let Ok(uid) = HeaderValue::from_str(uid) {
            response.headers_mut().insert(name, uid);
        }
    }
    response
}

fn is_write(verb: &str) -> bool {
    matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection")
}

fn asked(ctx: &Context) -> RequestDigest<'_> {
    let who = ctx.asker_now();
    let info = &ctx.info;
    let resource = info.is_resource().then_some(RequestedResource {
        group: &info.group,
        plural: &info.plural,
        subresource: &info.subresource,
        namespace: &info.namespace,
    });
    RequestDigest { user: &who.user, groups: &who.groups, verb: info.verb, resource, path: &info.path }
}

/// For who looks while it waits or is answered.
fn described(ctx: &Context, classified: &Classified) -> DescribedRequest {
    let (asked, info) = (asked(ctx), &ctx.info);
    let (flow_schema, distinguisher) = classified.flow_of(&asked);
    let words = RequestWords {
        flow_schema,
        distinguisher,
        user: asked.user,
        verb: info.verb,
        path: ctx.uri.path(),
        namespace: &info.namespace,
        name: &info.name,
        api_group: &info.group,
        api_version: &info.version,
        resource: &info.plural,
        subresource: &info.subresource,
    };
    DescribedRequest::new(ctx.state.now(), &words)
}

/// Of one object that is to be written.
fn n_watchers(ctx: &Context) -> Option<usize> {
    let info = &ctx.info;
    let is_of_one = matches!(info.verb, "create" | "update" | "patch" | "delete");
    in_cache(ctx, |it| is_of_one.then(|| it.n_watchers(&info.namespace, &info.name)))?
}

/// How large the object is that is to be written, as it is stored or as it was sent; 0 where nothing reads it here.
fn n_worked_on(ctx: &Context) -> usize {
    let info = &ctx.info;
    if info.kind().is_none() {
        return 0;
    }
    let stored = in_cache(ctx, |it| it.get(&info.namespace, &info.name).map(|it| it.value().len()));
    stored.flatten().unwrap_or_default().max(ctx.weight_received())
}

/// What the cache of the objects says, in whichever version they are asked for.
fn in_cache<T>(ctx: &Context, look: impl FnOnce(&ResourceCache) -> T) -> Option<T> {
    let (caches, kind) = (ctx.state.caches(), ctx.info.kind()?);
    if kind.is_custom() {
        caches.custom(kind).map(|it| look(&it))
    } else {
        caches.get(kind.storage_resource()).map(look)
    }
}

fn width(ctx: &Context) -> u32 {
    let info = &ctx.info;
    let is_resumed = info.verb == "watch" && info.query.get("resourceVersion").is_some_and(|it| it != "0");
    if !matches!(info.verb, "list" | "watch") || is_resumed {
        return 1;
    }
    let Some(n_objects) = in_cache(ctx, |it| it.snapshot().len()) else { return 1 };
    let limit = info.query.get("limit").and_then(|it| it.parse().ok()).unwrap_or(0);
    let is_selected = SELECTORS.iter().any(|it| info.query.get(it).is_some());
    width_of_list(n_objects, limit, is_selected)
}
