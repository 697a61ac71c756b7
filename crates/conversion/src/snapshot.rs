//! A part of a snapshot in another version: what a list is written from.

use std::sync::Arc;

use corten_cacher::watch_cache::{Matcher, ResourceCache, Snapshot, Stored};
use corten_kinds::KindRef;
use corten_meta::Status;

use crate::Conversion;

/// Converted at once where nobody knows yet how many of them match.
const STEP: usize = 500;
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
        let step = limit.map_or(candidates.len(), |_| if matcher.is_selective() { STEP } else { wanted }).max(1);
        for candidates in candidates.chunks(step) {
            let converted = self.all_stored(row, cache, candidates).await?;
            n_matching += converted.iter().filter(|it| matcher.matches(it)).count();
            bytes += converted.iter().map(|it| it.value().len()).sum::<usize>();
            found.extend(converted);
            if bytes > ANSWER_BYTES_MAX {
                return Err(Status::too_large(format!(
                    "the list is larger than {ANSWER_BYTES_MAX} bytes in another version than it is stored in: ask for pages (limit)"
                )));
            }
            if n_matching >= wanted {
                break;
            }
        }
        Ok(Snapshot::of(snapshot.revision, found))
    }
}
