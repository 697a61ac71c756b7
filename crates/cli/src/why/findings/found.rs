//! What was found of one object.

use corten_reconcile::{Actor, Wait};

use crate::why::account::State;

/// Who says what is in no journal: the object's own status, and those beside it.
pub(super) const READ: &str = "status";

/// What was found.
#[derive(Default)]
pub(crate) struct Findings {
    /// Who says so, and the wait.
    pub(crate) waits: Vec<(String, Wait)>,
    /// The state where it is plain to see, and the line that says it.
    pub(crate) verdict: Option<(State, String)>,
    /// Reasons of the journal that a finding here says better.
    pub(crate) explains: Vec<&'static str>,
    /// What is worth knowing, and nothing waits for.
    pub(crate) notices: Vec<String>,
}

impl Findings {
    pub(super) fn wait(&mut self, wait: Wait) {
        self.waits.push((READ.into(), wait));
    }

    pub(super) fn add(&mut self, reason: &str, message: impl Into<String>, actor: Actor) {
        self.wait(Wait::new(reason, message, actor));
    }

    /// Several places of one object may name the same.
    pub(super) fn add_once(&mut self, wait: Wait) {
        if !self.waits.iter().any(|(_, it)| *it == wait) {
            self.wait(wait);
        }
    }
}
