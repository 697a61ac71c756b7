//! What other servers answered, as long as it holds; and a while longer, for when they are silent (RFC 8767).
//!
//! Bounded by bytes: what ends first goes first.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{Question, Reading};

/// How long an answer is kept beyond its time, in seconds.
const STALE_SECONDS: u64 = 3600;
/// What keeping one takes besides itself: two keys and their nodes.
const OVERHEAD: usize = 2 * (size_of::<Question>() + 64);

/// Answers by question. Times are seconds of any clock that only goes forward.
pub struct Cache {
    bytes_max: usize,
    bytes: usize,
    answers: BTreeMap<Question, CachedReading>,
    by_end: BTreeSet<(u64, Question)>,
}

struct CachedReading {
    reading: Arc<Reading>,
    since: u64,
}

/// What is known.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedAnswer {
    pub reading: Arc<Reading>,
    /// In seconds.
    pub age: u32,
    /// It no longer holds, and is better than nothing.
    pub is_stale: bool,
}

impl Cache {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, answers: BTreeMap::new(), by_end: BTreeSet::new() }
    }

    pub fn find(&self, question: &Question, now: u64) -> Option<CachedAnswer> {
        let kept = self.answers.get(question)?;
        let age = now.saturating_sub(kept.since);
        let ttl = u64::from(kept.reading.ttl);
        if age >= ttl + STALE_SECONDS {
            return None;
        }
        let age = u32::try_from(age).unwrap_or(u32::MAX);
        Some(CachedAnswer { reading: kept.reading.clone(), age, is_stale: u64::from(age) >= ttl })
    }

    /// Keeps an answer in the place of the former one, if it holds for any time.
    pub fn keep(&mut self, question: &Question, reading: Arc<Reading>, now: u64) {
        if reading.ttl == 0 {
            return;
        }
        self.forget(question);
        self.bytes += reading.bytes_held() + OVERHEAD;
        self.by_end.insert((end(&reading, now), *question));
        self.answers.insert(*question, CachedReading { reading, since: now });
        while self.bytes > self.bytes_max
            && let Some((_, first)) = self.by_end.first()
        {
            let first = *first;
            self.forget(&first);
        }
    }

    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    fn forget(&mut self, question: &Question) {
        let Some(kept) = self.answers.remove(question) else { return };
        self.by_end.remove(&(end(&kept.reading, kept.since), *question));
        self.bytes -= kept.reading.bytes_held() + OVERHEAD;
    }
}

fn end(reading: &Reading, since: u64) -> u64 {
    since + u64::from(reading.ttl)
}

#[cfg(test)]
mod tests;
