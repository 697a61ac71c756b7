//! What validation found, in the words of kube-openapi's validator, and how well a value fitted: of alternatives that all
//! fail, the one that fitted best is told.

use corten_cel::is_spent;
use corten_meta::{Rule, Violation};

/// What is kept of one object.
const FOUND_MAX: usize = Violation::MOST + 1;

#[derive(Debug)]
pub(super) struct Report {
    pub(super) found: Vec<Violation>,
    /// Is the value told what it breaks? Of an alternative that is only tried, yes or no counts.
    is_told: bool,
    is_broken: bool,
    /// How many checks were made and held: kube-openapi's `Result.MatchCount`, by which `oneOf` and `anyOf` choose what to report.
    pub(super) matches: u64,
}

impl Report {
    /// Keeps what is found.
    pub(super) fn told() -> Self {
        Self { found: Vec::new(), is_told: true, is_broken: false, matches: 0 }
    }

    /// Keeps only whether anything is found.
    pub(super) fn untold() -> Self {
        Self { is_told: false, ..Self::told() }
    }

    pub(super) fn is_valid(&self) -> bool {
        !self.is_broken
    }

    /// Would it keep anything that is found from here on?
    pub(super) fn keeps(&self) -> bool {
        self.is_told && self.found.len() < FOUND_MAX
    }

    /// Is all found that it was asked for? What is only tried counts checks until its end.
    pub(super) fn is_full(&self) -> bool {
        self.is_told && !self.keeps()
    }

    /// Says nothing twice, makes nothing that is not kept, and keeps nothing that is found once the fuel is spent.
    pub(super) fn add(&mut self, violation: impl FnOnce() -> Violation) {
        self.is_broken = true;
        if self.keeps() && !is_spent() {
            let violation = violation();
            if !self.found.contains(&violation) {
                self.found.push(violation);
            }
        }
    }

    /// What `look` adds; is it nothing?
    pub(super) fn is_valid_within(&mut self, look: impl FnOnce(&mut Self)) -> bool {
        let before = std::mem::take(&mut self.is_broken);
        look(self);
        let is_valid = self.is_valid();
        self.is_broken |= before;
        is_valid
    }

    pub(super) fn matched(&mut self) {
        self.count(1);
    }

    pub(super) fn count(&mut self, matches: u64) {
        self.matches = self.matches.saturating_add(matches);
    }

    /// Of a combination of rules, which names its path itself, and of other causes that have none.
    pub(super) fn without_path(&mut self, message: impl FnOnce() -> String) {
        self.add(|| {
            let message = format!("Invalid value: \"\": {}", message());
            Violation { path: "<nil>".into(), rule: Rule::Invalid, message }.bounded()
        });
    }
}
