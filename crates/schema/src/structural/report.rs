//! What validation found, in the words of kube-openapi's validator, and how well a value fitted: of alternatives that all
//! fail, the one that fitted best is told.

use corten_meta::{Rule, Violation};

/// What is kept of one object.
const FOUND_MAX: usize = Violation::MOST + 1;

#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) found: Vec<Violation>,
    /// How many checks were made and held: kube-openapi's `Result.MatchCount`, by which `oneOf` and `anyOf` choose what to report.
    pub(super) matches: u64,
}

impl Report {
    pub(super) fn is_valid(&self) -> bool {
        self.found.is_empty()
    }

    /// Says nothing twice.
    pub(super) fn add(&mut self, violation: Violation) {
        if self.found.len() < FOUND_MAX && !self.found.contains(&violation) {
            self.found.push(violation);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches = self.matches.saturating_add(other.matches);
        other.found.into_iter().for_each(|it| self.add(it));
    }

    pub(super) fn matched(&mut self) {
        self.matches = self.matches.saturating_add(1);
    }

    /// Of a combination of rules: it names its path itself, and its cause has none.
    pub(super) fn combination(&mut self, message: String) {
        self.without_path(message);
    }

    pub(super) fn without_path(&mut self, message: String) {
        let message = format!("Invalid value: \"\": {message}");
        self.add(Violation { path: "<nil>".into(), rule: Rule::Invalid, message }.bounded());
    }
}
