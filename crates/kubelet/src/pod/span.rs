//! When a step of a pod began and ended, and the line of the journal that says so.

use corten_meta::Time;
use corten_reconcile::{Step, StepState};

/// When something began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) started: Option<Time>,
    pub(crate) finished: Option<Time>,
}

pub(crate) fn step(name: &str, state: StepState, span: Span) -> Step {
    let finished = span.finished.filter(|_| state == StepState::Done);
    Step {
        name: name.into(),
        state,
        started: span.started,
        finished,
        message: String::new(),
        log: Vec::new(),
        wait: None,
    }
}
