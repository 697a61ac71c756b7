//! `/progress`: how far the cluster has come, for who puts the streams of many resources together.
//!
//! ```text
//! {"type":"BOOKMARK","object":{"revision":"105","changed":{"pods":"105","replicasets.apps":"103"}}}
//! ```
//! A line says that everything up to `revision` can be seen, and of each resource that changed since the line before its
//! newest change; the first line names all. A watch that has told that change has nothing more to tell up to `revision`. One
//! such stream stands for a bookmark in every watch after every commit.
//!
//! It ends after a minute, so that the right to it is asked for again.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use async_stream::stream;
use bytes::Bytes;
use corten_cacher::{
    answer,
    body::{BoxError, Response},
    watch_cache::{Caches, is_stored},
};
use corten_kinds::KINDS;
use corten_meta::{Resource, Status};
use corten_store::Revision;
use futures_util::Stream;
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{context::Context, state::State};
use corten_fairness::Permit;

const LIFETIME: Duration = corten_access::EVERY;
/// Between two lines.
const REST: Duration = Duration::from_millis(2);

/// `None` where the path is another.
pub(crate) fn answer(ctx: &Context) -> Option<Result<Response, Status>> {
    (ctx.info.path == "/progress").then(|| begin(ctx))
}

fn begin(ctx: &Context) -> Result<Response, Status> {
    if ctx.method != Method::GET {
        let message = "the server does not allow this method on the requested resource";
        return Err(Status::failure(405, "MethodNotAllowed", message));
    }
    let place = ctx.peer.is_some().then(|| ctx.state.room().for_watch(ctx.party(), 0)).transpose()?;
    let mut response = answer::json_bytes(StatusCode::OK, Bytes::new());
    *response.body_mut() = StreamBody::new(lines(ctx.state.clone(), place)).boxed_unsync();
    Ok(response)
}

fn lines(state: State, place: Option<Permit>) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send {
    stream! {
        let _place = place;
        let end = Instant::now() + LIFETIME;
        let (mut stopping, mut told) = (state.stopping(), Reported::default());
        loop {
            let line = told.line(state.caches());
            yield Ok(Frame::data(line));
            sleep(REST).await;
            let moved = state.caches().until(|| (state.caches().applied() > told.revision).then_some(()));
            tokio::select! {
                biased;
                _ = stopping.wait_for(|it| *it) => break,
                moved = timeout_at(end, moved) => if moved.is_err() { break },
            }
        }
    }
}

#[derive(Default)]
struct Reported {
    revision: Revision,
    /// Prefixes of resources in the store, in the order of the caches: custom ones come and go behind the built-in ones.
    changed: Vec<(String, Revision)>,
}

impl Reported {
    fn line(&mut self, caches: &Caches) -> Bytes {
        // Read before the caches: they then hold all of it, and perhaps more.
        self.revision = caches.applied();
        let mut changed = serde_json::Map::new();
        let mut n_caches = 0;
        for (at, cache) in caches.iter().enumerate() {
            n_caches = at + 1;
            let revision = cache.snapshot_revision();
            match self.changed.get_mut(at).filter(|it| it.0 == cache.prefix()) {
                Some(told) if told.1 == revision => continue,
                Some(told) => told.1 = revision,
                None => {
                    // What stood here is told again where it stands now: it does no harm.
                    self.changed.truncate(at);
                    self.changed.push((cache.prefix().to_owned(), revision));
                }
            }
            let resource = &cache.kind().resource;
            let names = NAMES.get(resource).cloned().unwrap_or_else(|| vec![resource.qualified()]);
            changed.extend(names.into_iter().map(|it| (it, revision.to_string().into())));
        }
        self.changed.truncate(n_caches);
        let object = json!({ "revision": self.revision.to_string(), "changed": changed });
        format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into()
    }
}

/// The names, with their groups, by which the objects of each stored resource are asked for.
static NAMES: LazyLock<HashMap<Resource, Vec<String>>> = LazyLock::new(|| {
    let mut names: HashMap<Resource, Vec<String>> = HashMap::new();
    for kind in KINDS.iter().filter(|it| is_stored(it.stored_row())) {
        let of_stored = names.entry(kind.stored_row().resource.clone()).or_default();
        let name = kind.resource.qualified();
        if !of_stored.contains(&name) {
            of_stored.push(name);
        }
    }
    names
});
