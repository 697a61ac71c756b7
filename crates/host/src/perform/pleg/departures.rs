//! Who has ended while the runtime still shows him running.
//!
//! containerd tells of an end at once, but CRI shows it only after it is written down, some milliseconds later, and tells
//! nobody then. So the runtime is asked again: soon, and then ever less often.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

/// About what containerd takes to write down an end.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(super) struct Departures {
    ids: BTreeSet<String>,
    /// When the last of them was told.
    newest: Option<Instant>,
}

impl Departures {
    pub(super) fn add(&mut self, id: String, now: Instant) {
        self.ids.insert(id);
        self.newest = Some(now);
    }

    /// After a look at the runtime: only who is still shown running must be looked for again.
    pub(super) fn retain(&mut self, is_shown: impl Fn(&str) -> bool) {
        self.ids.retain(|it| is_shown(it));
    }

    /// How long to wait for the next look: as long as was waited for so far, however many looks that were.
    pub(super) fn pause(&self, now: Instant, longest: Duration) -> Duration {
        match self.newest {
            Some(newest) if !self.ids.is_empty() => now.duration_since(newest).clamp(FIRST_LOOK, longest),
            _ => longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(2);

    #[test]
    fn looks_again_until_the_end_is_shown() {
        let (begin, mut departures) = (Instant::now(), Departures::default());
        assert_eq!(departures.pause(begin, LONGEST), LONGEST);
        departures.add("a".into(), begin);
        let mut now = begin;
        for factor in [1, 1, 2, 4, 8] {
            departures.retain(|_| true);
            // Asking twice at one time, as whoever is woken for something else, changes nothing.
            for _ in 0..2 {
                assert_eq!(departures.pause(now, LONGEST), FIRST_LOOK * factor);
            }
            now += FIRST_LOOK * factor;
        }
        departures.add("b".into(), now);
        departures.retain(|it| it == "b");
        assert_eq!(departures.pause(now, LONGEST), FIRST_LOOK);
        departures.retain(|_| false);
        assert_eq!(departures.pause(now, LONGEST), LONGEST);
    }

    #[test]
    fn one_that_is_shown_for_ever_costs_no_more_than_none() {
        let (begin, mut departures) = (Instant::now(), Departures::default());
        departures.add("a".into(), begin);
        assert_eq!(departures.pause(begin + LONGEST * 10, LONGEST), LONGEST);
    }
}
