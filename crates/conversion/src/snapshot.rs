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

/// What of a snapshot is wanted.
pub struct SnapshotQuery<'a> {
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
        wanted: &SnapshotQuery<'_>,
    ) -> Result<Snapshot, Status> {
        let SnapshotQuery { snapshot, matcher, after, limit } = wanted;
        let before = matcher.before_conversion();
        let candidates: Vec<Arc<Stored>> =
            snapshot.range(&matcher.namespace, *after).filter(|it| before.matches(it)).cloned().collect();
        let wanted = limit.map_or(usize::MAX, |it| it.saturating_add(1));
        let (mut found, mut n_matching, mut room) = (Vec::new(), 0, AnswerBudget::of(self.0.list_bytes_max));
        // Without selectors each candidate matches.
        let objects_max = if matcher.is_selective() { STEP } else { wanted.min(STEP) };
        let mut rest = &candidates[..];
        while !rest.is_empty() && n_matching < wanted {
            let (step, later) = rest.split_at(step(rest, objects_max));
            rest = later;
            for (stored, it) in step.iter().zip(self.all_stored(row, cache, step).await?) {
                // What is sent as it is stored is in memory anyway.
                if !Arc::ptr_eq(stored, &it) {
                    room.take(it.value().len())?;
                }
                n_matching += usize::from(matcher.matches(&it));
                found.push(it);
            }
        }
        Ok(Snapshot::of(snapshot.revision, found))
    }
}

/// How many bytes of an answer may still be in memory.
struct AnswerBudget {
    all: usize,
    left: usize,
}

impl AnswerBudget {
    const fn of(all: usize) -> Self {
        Self { all, left: all }
    }

    /// # Errors
    /// 413 where there is no room for so many more.
    fn take(&mut self, n_bytes: usize) -> Result<(), Status> {
        self.left = self.left.checked_sub(n_bytes).ok_or_else(|| {
            let all = self.all;
            Status::too_large(format!(
                "the list is larger than {all} bytes in another version than it is stored in: ask for pages (limit)"
            ))
        })?;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_as_large_as_it_may_be_is_given_and_one_byte_more_is_refused() {
        const ALL: usize = 256 << 20;
        let mut room = AnswerBudget::of(ALL);
        for n in 0..128 {
            assert!(room.take(2 << 20).is_ok(), "{n}");
        }
        let refused = room.take(1).expect_err("it is full");
        assert_eq!((refused.code, &*refused.reason), (413, "RequestEntityTooLarge"));
        assert!(refused.message.contains("268435456 bytes") && refused.message.contains("limit"), "{refused}");
        assert!(AnswerBudget::of(ALL).take(usize::MAX).is_err());
    }
}
