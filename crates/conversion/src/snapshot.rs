//! A part of a snapshot in another version: what a list is written from.

use std::sync::Arc;

use corten_cacher::watch_cache::{Matcher, ResourceCache, Snapshot, Stored};
use corten_kinds::KindRef;
use corten_meta::Status;

use crate::Conversion;

/// So many are converted at once, so that an answer that becomes too large is given up before all of it is in memory.
const STEP: usize = 500;
/// And no more than this, as it is stored.
const STEP_BYTES_MAX: usize = 4 << 20;
/// Of one answer: as long as it is being sent it is in memory. Who wants more asks for pages.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// What of a snapshot is wanted.
pub struct Wanted<'a> {
    pub snapshot: &'a Snapshot,
    pub matcher: &'a Matcher,
    /// The key of the object before the first.
    pub after: Option<&'a str>,
    /// No more than these match; one more is converted, for who must know whether there is more.
    pub limit: Option<usize>,
}

impl Conversion {
    /// The objects that match once they are converted, and perhaps others.
    ///
    /// # Errors
    /// 500 where the webhook does not convert one of them, 413 where they are too many for one answer.
    pub async fn snapshot(
        &self,
        row: &KindRef,
        cache: &Arc<ResourceCache>,
        wanted: &Wanted<'_>,
    ) -> Result<Snapshot, Status> {
        let Wanted { snapshot, matcher, after, limit } = wanted;
        let before = matcher.before_conversion();
        let candidates: Vec<Arc<Stored>> =
            snapshot.range(&matcher.namespace, *after).filter(|it| before.matches(it)).cloned().collect();
        let wanted = limit.map_or(usize::MAX, |it| it.saturating_add(1));
        let (mut found, mut n_matching, mut bytes) = (Vec::new(), 0, 0);
        // Without selectors each candidate matches.
        let objects_max = if matcher.is_selective() { STEP } else { wanted.min(STEP) };
        let mut rest = &candidates[..];
        while !rest.is_empty() && n_matching < wanted {
            let (step, later) = rest.split_at(step(rest, objects_max));
            rest = later;
            for it in self.all_stored(row, cache, step).await? {
                bytes += it.value().len();
                n_matching += usize::from(matcher.matches(&it));
                found.push(it);
            }
            if bytes > ANSWER_BYTES_MAX {
                return Err(Status::too_large(format!(
                    "the list is larger than {ANSWER_BYTES_MAX} bytes in another version than it is stored in: ask for pages (limit)"
                )));
            }
        }
        Ok(Snapshot::of(snapshot.revision, found))
    }
}

/// How many of them are converted at once: at least one.
fn step(objects: &[Arc<Stored>], objects_max: usize) -> usize {
    let mut bytes = 0;
    let fits = |it: &&Arc<Stored>| {
        bytes += it.value().len();
        bytes <= STEP_BYTES_MAX
    };
    objects.iter().take(objects_max).take_while(fits).count().max(1)
}
