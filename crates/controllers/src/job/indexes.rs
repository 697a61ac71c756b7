//! Sets of completion indexes as the status writes them: `0-3,5,7-9`.

use std::{collections::BTreeSet, fmt};

/// Runs of indexes, in order, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i64, i64)>);

impl Indexes {
    /// Those below `end`; what cannot be read is left out.
    pub(super) fn parse(text: &str, end: i64) -> Self {
        let mut indexes = Self::default();
        for run in text.split(',') {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) else { continue };
            if (0..end).contains(&first) && first <= last {
                indexes.insert(first, last.min(end - 1));
            }
        }
        indexes
    }

    /// Adds a run that begins behind the beginning of the last one.
    fn insert(&mut self, first: i64, last: i64) {
        match self.0.last_mut() {
            Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
            _ => self.0.push((first, last)),
        }
    }

    pub(super) fn with(&self, other: &Self) -> Self {
        let mut runs: Vec<_> = self.0.iter().chain(&other.0).copied().collect();
        runs.sort_unstable();
        let mut merged = Self::default();
        runs.into_iter().for_each(|(first, last)| merged.insert(first, last));
        merged
    }

    pub(super) fn len(&self) -> i64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, index: i64) -> bool {
        let at = self.0.partition_point(|it| it.1 < index);
        self.0.get(at).is_some_and(|it| it.0 <= index)
    }

    /// How many are in both. Looks at each run once: there may be a hundred thousand in either.
    pub(super) fn overlap(&self, other: &Self) -> i64 {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut n_common = 0;
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            n_common += (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
            if a.1 <= b.1 {
                ours.next()
            } else {
                theirs.next()
            };
        }
        n_common
    }

    /// The lowest `count` indexes below `end` that are not in it.
    pub(super) fn missing(&self, end: i64, count: usize) -> Vec<i64> {
        let mut missing = Vec::new();
        let mut next = 0;
        for (first, last) in self.0.iter().copied().chain([(end, end)]) {
            missing.extend((next..first.min(end)).take(count - missing.len()));
            if missing.len() == count {
                break;
            }
            next = next.max(last + 1);
        }
        missing
    }
}

impl From<BTreeSet<i64>> for Indexes {
    fn from(set: BTreeSet<i64>) -> Self {
        let mut indexes = Self::default();
        set.into_iter().for_each(|it| indexes.insert(it, it));
        indexes
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match last - first {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_joined_and_written() {
        for (text, end, written, len) in [
            ("", 5, "", 0),
            ("0", 5, "0", 1),
            ("0,1,2", 5, "0-2", 3),
            ("0-3,5,7-9", 8, "0-3,5,7", 6),
            ("1,2,4", 9, "1,2,4", 3),
            ("nonsense,3", 9, "3", 1),
            ("0-9223372036854775807", 5, "0-4", 5),
            ("3-1,4", 9, "4", 1),
            ("9223372036854775807", i64::MAX, "", 0),
            ("6-9", 5, "", 0),
        ] {
            let indexes = Indexes::parse(text, end);
            assert_eq!((&*indexes.to_string(), indexes.len()), (written, len), "{text}");
        }
        let (a, b) = (Indexes::parse("0-2,8", 10), Indexes::parse("3,5-6", 10));
        assert_eq!(a.with(&b).to_string(), "0-3,5,6,8");
        assert_eq!(a.with(&b).missing(10, 9), [4, 7, 9]);
        assert_eq!(a.with(&b).missing(10, 2), [4, 7]);
        assert_eq!(Indexes::default().missing(3, 9), [0, 1, 2]);
        assert_eq!(a.overlap(&Indexes::parse("1-8", 10)), 3);
        assert!(a.has(2) && !a.has(3) && a.has(8) && !a.has(9));
    }
}
