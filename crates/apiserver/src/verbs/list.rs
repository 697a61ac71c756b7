//! LIST: a snapshot's bytes, strung together while they are sent. Pages of one list are read from one snapshot.

use std::sync::Arc;

use corten_cacher::{
    answer,
    body::Response,
    codec::{
        Form, gzip,
        items::{Items, Position},
        protobuf,
    },
    watch_cache::{Matcher, ResourceCache, Snapshot, feed},
};
use corten_conversion::SnapshotQuery;
use corten_meta::{Status, shortened};
use corten_routes::{
    continue_token,
    list_options::{self, ListOptions},
};
use corten_store::Revision;
use futures_util::stream;
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};

use super::request_scope::RequestScope;
use crate::context::Context;

pub(crate) async fn list(ctx: &Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    let mut items = items(ctx, target, form).await?;
    if ctx.protobuf {
        let mut list = protobuf::list(&items).await;
        let first = list.next().unwrap_or_default();
        let is_all = list.is_done();
        return Ok(send(ctx, protobuf::PROTOBUF, first, is_all, list));
    }
    let first = items.next().unwrap_or_default();
    let is_all = items.place == Position::Done;
    Ok(send(ctx, "application/json", first, is_all, items))
}

/// What the request asks for, still to be written.
pub(crate) async fn items(ctx: &Context, target: &RequestScope, form: Form) -> Result<Items, Status> {
    let options = list_options::list(&ctx.info.query)?;
    let matcher = matcher(ctx, target)?;
    let cache = target.cache(ctx);
    let start = start(ctx, cache, &options).await?;
    whole(&start.snapshot, &matcher)?;
    let converter = target.converter(form, &matcher);
    let (page, shown) = match converter {
        // Who matches is known only then.
        Some(cache) if matcher.is_selective() => {
            let shown = converted(ctx, target, cache, &start, &matcher, options.limit).await?;
            (page(&shown, &start, &matcher, options.limit), shown)
        }
        Some(cache) => {
            let page = page(&start.snapshot, &start, &matcher, options.limit);
            (page, converted(ctx, target, cache, &start, &matcher, options.limit).await?)
        }
        None => (page(&start.snapshot, &start, &matcher, options.limit), start.snapshot.clone()),
    };
    let token = page.last.as_ref().filter(|_| page.more).map(|last| {
        cache.keep(&start.snapshot, start.revision);
        Token::after(start.token_revision(), last).encode()
    });
    Ok(Items {
        kind: target.asked.clone(),
        form,
        matcher,
        revision: start.revision,
        now: ctx.state.now(),
        after: start.after,
        last: page.last,
        token,
        remaining: page.remaining,
        snapshot: shown,
        place: Position::Head,
    })
}

async fn converted(
    ctx: &Context,
    target: &RequestScope,
    cache: &Arc<ResourceCache>,
    start: &Start,
    matcher: &Matcher,
    limit: Option<usize>,
) -> Result<Arc<Snapshot>, Status> {
    let wanted = SnapshotQuery { snapshot: &start.snapshot, matcher, after: start.after.as_deref(), limit };
    ctx.state.conversion().snapshot(&target.asked, cache, &wanted).await.map(Arc::new)
}

/// `labelSelector` and `fieldSelector`, as they were sent.
pub(super) fn selectors(ctx: &Context) -> [&str; 2] {
    ["labelSelector", "fieldSelector"].map(|it| ctx.info.query.get(it).unwrap_or_default())
}

pub(crate) fn matcher(ctx: &Context, target: &RequestScope) -> Result<Matcher, Status> {
    let [labels, fields] = selectors(ctx);
    let recorded = &target.cache(ctx).kind().selectable_fields;
    Matcher::reading(&target.asked, recorded, &target.namespace, labels, fields)
}

/// # Errors
/// 500 where an object that would be in the list cannot be read: without it the list would say that it is not there.
pub(crate) fn whole(snapshot: &Snapshot, matcher: &Matcher) -> Result<(), Status> {
    snapshot.gap(matcher).map_or(Ok(()), |it| Err(Status::internal(it)))
}

/// The state a page is read from, and where in it the page begins.
struct Start {
    snapshot: Arc<Snapshot>,
    revision: Revision,
    after: Option<Arc<str>>,
    /// The client chose to go on although its first pages are from an older state.
    inconsistent: bool,
}

impl Start {
    fn token_revision(&self) -> i64 {
        if self.inconsistent { -1 } else { i64::try_from(self.revision).unwrap_or(-1) }
    }
}

async fn start(ctx: &Context, cache: &ResourceCache, options: &ListOptions) -> Result<Start, Status> {
    if let Some(token) = &options.token {
        return continued(ctx, cache, Token::decode(token)?).await;
    }
    if let Some(revision) = options.revision {
        ctx.state.caches().reach(revision).await?;
        if options.exact {
            let too_old = |_| Status::expired("The resourceVersion for the provided list is too old.");
            let snapshot = exactly(ctx, cache, revision).await.map_err(too_old)?;
            return Ok(Start { snapshot, revision, after: None, inconsistent: false });
        }
    }
    let (snapshot, revision) = newest(ctx, cache);
    Ok(Start { snapshot, revision, after: None, inconsistent: false })
}

/// The newest state and the revision it is said to be of: the snapshot holds every change up to `applied`, so it is the
/// state there, unless it is newer still.
fn newest(ctx: &Context, cache: &ResourceCache) -> (Arc<Snapshot>, Revision) {
    let applied = ctx.state.caches().applied();
    let snapshot = cache.snapshot();
    let revision = applied.max(snapshot.revision);
    (snapshot, revision)
}

async fn exactly(
    ctx: &Context,
    cache: &ResourceCache,
    revision: Revision,
) -> Result<Arc<Snapshot>, corten_store::Error> {
    if let Some(snapshot) = cache.at(revision, ctx.state.caches().applied()) {
        return Ok(snapshot);
    }
    feed::read_at(&*ctx.state.config().store, cache, revision).await.map(Arc::new)
}

async fn continued(ctx: &Context, cache: &ResourceCache, token: Token) -> Result<Start, Status> {
    let after: Option<Arc<str>> = Some(token.key().into());
    let Ok(revision) = Revision::try_from(token.rv) else {
        let (snapshot, revision) = newest(ctx, cache);
        return Ok(Start { snapshot, revision, after, inconsistent: true });
    };
    match exactly(ctx, cache, revision).await {
        Ok(snapshot) => Ok(Start { snapshot, revision, after, inconsistent: false }),
        Err(_) => {
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
            );
            let token = Token::after(-1, token.key()).encode();
            status.metadata.insert("continue".into(), token.into());
            Err(status)
        }
    }
}

struct Page {
    last: Option<Arc<str>>,
    more: bool,
    remaining: Option<usize>,
}

/// Finds where a page of `limit` objects ends.
fn page(snapshot: &Snapshot, start: &Start, matcher: &Matcher, limit: Option<usize>) -> Page {
    let Some(limit) = limit else { return Page { last: None, more: false, remaining: None } };
    let range = snapshot.range(&matcher.namespace, start.after.as_deref());
    let mut matching = range.filter(|it| matcher.matches(it));
    let last = matching.by_ref().take(limit).last().map(|it| it.key.clone());
    // As in etcd3's `GetList`: what remains is told only where no selector makes it a guess.
    if matcher.is_everything() {
        let remaining = matching.count();
        return Page { last, more: remaining > 0, remaining: Some(remaining).filter(|it| *it > 0) };
    }
    Page { last, more: matching.next().is_some(), remaining: None }
}

/// What `continue` says: which state, and after which object.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

impl Token {
    const VERSION: &str = "meta.k8s.io/v1";

    fn after(rv: i64, key: &str) -> Self {
        Self { v: Self::VERSION.into(), rv, start: format!("{key}\0") }
    }

    fn key(&self) -> &str {
        self.start.trim_end_matches('\0')
    }

    fn encode(&self) -> String {
        continue_token::encode(self)
    }

    fn decode(text: &str) -> Result<Self, Status> {
        let token: Self = continue_token::decode(text)?;
        let of_version = format!("(version {})", Self::VERSION);
        if token.v != Self::VERSION {
            let reason = format!("server does not recognize this encoded version {:?}", shortened(&token.v));
            return Err(continue_token::wrong(&reason));
        }
        if token.rv == 0 {
            return Err(continue_token::wrong(&format!("incorrect encoded start resourceVersion {of_version}")));
        }
        if !token.start.ends_with('\0') {
            return Err(continue_token::wrong(&format!("encoded start key empty {of_version}")));
        }
        Ok(token)
    }
}

/// A short list goes out whole; a long one piece by piece, compressed where the client takes that.
fn send(
    ctx: &Context,
    media_type: &'static str,
    first: Vec<u8>,
    is_all: bool,
    rest: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> Response {
    let long = !is_all || first.len() >= gzip::THRESHOLD_BYTES;
    let accepted_encodings = if long { ctx.header(header::ACCEPT_ENCODING) } else { "" };
    if is_all && !gzip::accepted(accepted_encodings) {
        return answer::with_type(StatusCode::OK, media_type, first);
    }
    gzip::in_pieces(media_type, accepted_encodings, stream::iter(std::iter::once(first).chain(rest)))
}
