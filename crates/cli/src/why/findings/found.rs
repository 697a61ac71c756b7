//! What was found of one object.

use corten_meta::Time;
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

    /// Says since when all those after the first so many are waited for.
    pub(super) fn begun(&mut self, n_before: usize, since: Option<Time>) {
        self.waits[n_before..].iter_mut().for_each(|(_, wait)| wait.since = wait.since.or(since));
    }

    /// Several places of one object may name the same.
    pub(super) fn add_once(&mut self, wait: Wait) {
        // Since when may be told of one and not yet of the other.
        let is_same = |it: &Wait| (&it.reason, &it.message, &it.on) == (&wait.reason, &wait.message, &wait.on);
        if !self.waits.iter().any(|(_, it)| is_same(it)) {
            self.wait(wait);
        }
    }
}
