//! `/metrics/state` and `/metrics/resources`: what objects are like, in the words of kube-state-metrics and of kube-scheduler,
//! written while it is sent.
//!
//! All samples of a family stand together, so the objects of a kind are gone through once for every family; for as many families at a
//! time as there is room to keep what comes after the first of them. A small cluster is gone through once.

use std::sync::Arc;

use async_stream::stream;
use corten_cacher::{
    body::Response,
    watch_cache::{Caches, Snapshot},
};
use corten_meta::Status;
use corten_state_metrics::StateMetrics;
use futures_util::Stream;
use tokio::sync::Semaphore;

use crate::{context::Context, metrics};

/// What is kept of the families that come after the one that is being sent.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is sent at once.
const PIECE_BYTES: usize = 64 * 1024;
/// After so many objects others get their turn.
const OBJECTS_AT_ONCE: usize = 50;
/// So many are answered at once: each goes through all objects. Prometheus comes in pairs, to two paths, and a person may look
/// beside them.
const SCRAPES_MAX: usize = 6;
static SCRAPES: Semaphore = Semaphore::const_new(SCRAPES_MAX);

/// # Errors
/// 429 where as many are being answered already as may be.
pub(crate) fn answer(ctx: &Context, kinds: &[&'static dyn StateMetrics]) -> Result<Response, Status> {
    let place = SCRAPES
        .try_acquire()
        .map_err(|_| Status::too_many_requests("the state of all objects is being sent to as many as may be", 1))?;
    let kinds = snapshots(ctx.state.caches(), kinds);
    Ok(metrics::exposition(
        ctx,
        stream! {
            let _place = place;
            for await piece in pieces(kinds, KEPT_BYTES_MAX) {
                yield piece;
            }
        },
    ))
}

/// The objects of a kind, at one revision.
struct KindState {
    kind: &'static dyn StateMetrics,
    snapshot: Arc<Snapshot>,
}

fn snapshots(caches: &Caches, kinds: &[&'static dyn StateMetrics]) -> Vec<KindState> {
    let of = |kind: &&'static dyn StateMetrics| {
        Some(KindState { kind: *kind, snapshot: caches.get(kind.resource())?.snapshot() })
    };
    kinds.iter().filter_map(of).collect()
}

/// The text, piece by piece; empty ones where much was read and nothing is ready yet.
fn pieces(kinds: Vec<KindState>, kept_bytes_max: usize) -> impl Stream<Item = Vec<u8>> + Send {
    stream! {
        let mut whole = Vec::new();
        for KindState { kind, snapshot } in kinds {
            let mut next = 0;
            while let Some(mut pass) = Pass::begin(kind, next) {
                for (nth, object) in snapshot.iter().enumerate() {
                    whole.clear();
                    object.write(&mut whole);
                    pass.take(&whole);
                    pass.shed(kept_bytes_max);
                    if pass.is_piece() {
                        yield pass.piece();
                    }
                    if nth % OBJECTS_AT_ONCE == OBJECTS_AT_ONCE - 1 {
                        tokio::task::yield_now().await;
                    }
                }
                next = pass.end();
                for text in pass.texts {
                    yield text;
                }
            }
        }
    }
}

/// One time through the objects of a kind.
struct Pass {
    kind: &'static dyn StateMetrics,
    first: usize,
    /// Of the families from the first on, for those for which there is room.
    texts: Vec<Vec<u8>>,
}

impl Pass {
    /// `None` where no family is left.
    fn begin(kind: &'static dyn StateMetrics, first: usize) -> Option<Self> {
        let texts: Vec<_> = kind.families().iter().skip(first).map(|it| it.head().into_bytes()).collect();
        (!texts.is_empty()).then_some(Self { kind, first, texts })
    }

    fn take(&mut self, object: &[u8]) {
        self.kind.write(object, self.first..self.end(), &mut self.texts);
    }

    /// Leaves the last families to the next time, until the others have room.
    fn shed(&mut self, bytes_max: usize) {
        while self.texts.len() > 1 && self.texts[1..].iter().map(Vec::len).sum::<usize>() > bytes_max {
            self.texts.pop();
        }
    }

    fn is_piece(&self) -> bool {
        self.texts[0].len() >= PIECE_BYTES
    }

    fn piece(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.texts[0])
    }

    /// The first family that is left to the next time.
    fn end(&self) -> usize {
        self.first + self.texts.len()
    }
}

#[cfg(test)]
mod tests;
