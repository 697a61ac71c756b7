//! Who has ended while the runtime still shows him running.
//!
//! containerd tells of an end at once, but CRI shows it only after it is written down, some milliseconds later, and tells
//! nobody then. So the runtime is asked again: soon, and then ever less often.

use std::{collections::BTreeSet, time::Duration};

/// About what containerd takes to write down an end.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(super) struct Departures {
    ids: BTreeSet<String>,
    pause: Duration,
}

impl Departures {
    pub(super) fn add(&mut self, id: String) {
        self.ids.insert(id);
        self.pause = FIRST_LOOK;
    }

    /// After a look at the runtime: only who is still shown running must be looked for again.
    pub(super) fn retain(&mut self, is_shown: impl Fn(&str) -> bool) {
        self.ids.retain(|it| is_shown(it));
    }

    /// How long to wait for the next look; twice as long after each that showed nothing new.
    pub(super) fn pause(&mut self, longest: Duration) -> Duration {
        if self.ids.is_empty() {
            return longest;
        }
        let pause = self.pause.min(longest);
        self.pause = pause * 2;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(2);

    #[test]
    fn looks_again_until_the_end_is_shown() {
        let mut departures = Departures::default();
        assert_eq!(departures.pause(LONGEST), LONGEST);
        departures.add("a".into());
        for factor in [1, 2, 4, 8] {
            departures.retain(|_| true);
            assert_eq!(departures.pause(LONGEST), FIRST_LOOK * factor);
        }
        departures.add("b".into());
        departures.retain(|it| it == "b");
        assert_eq!(departures.pause(LONGEST), FIRST_LOOK);
        departures.retain(|_| false);
        assert_eq!(departures.pause(LONGEST), LONGEST);
    }

    #[test]
    fn one_that_is_shown_for_ever_costs_no_more_than_none() {
        let mut departures = Departures::default();
        departures.add("a".into());
        let pauses: Vec<_> = (0..20).map(|_| departures.pause(LONGEST)).collect();
        assert!(pauses.is_sorted());
        assert_eq!(pauses[10..], [LONGEST; 10]);
    }
}
