//! The account of one object: its state, its named steps, and the causes it waits for.

use crate::why::fields::{items, one_line, time};

use std::rc::Rc;

use corten_meta::Time;
use corten_reconcile::{Actor, Step, StepState, Wait};
use serde::Serialize;
use serde_json::Value;

/// What became of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum State {
    /// It is what its spec wants.
    Fine,
    /// It ended well and will not run again.
    Finished,
    /// It goes on by itself.
    Progressing,
    /// It is being deleted.
    Terminating,
    /// It ended badly and will not go on by itself.
    Failed,
    /// It cannot go on until somebody acts.
    Blocked,
}

/// Everything `corten why` says of one object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    /// `pod/web-1`.
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) state: State,
    /// One line: the heart of the matter.
    pub(crate) summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    /// Failures of the loops themselves: a refused write, for example.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    /// The newest warnings about the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<String>,
    /// What is worth knowing besides; an [`super::Explanation`] tells it.
    #[serde(skip)]
    pub(super) notices: Vec<String>,
    /// A loop fails again and again, and not just once.
    #[serde(skip)]
    pub(super) keeps_failing: bool,
    #[serde(skip)]
    pub(super) object: Rc<Value>,
}

/// One wait, and the account of what it waits for.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cause {
    pub(crate) by: String,
    #[serde(flatten)]
    pub(crate) wait: Wait,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) because: Option<Box<Account>>,
}

/// The cause at the end of the chain.
#[derive(Clone, Debug)]
pub(crate) struct Root<'a> {
    /// From what was asked about down to what the cause is about, at least one.
    pub(crate) path: Vec<&'a Account>,
    pub(crate) by: &'a str,
    pub(crate) step: Option<&'a Step>,
    pub(crate) wait: &'a Wait,
    /// Since when, as far as it is known: else since when what was asked about waits for it.
    pub(crate) since: Option<Time>,
    /// It keeps what is to go, not what is to come.
    is_aside: bool,
}

impl<'a> Root<'a> {
    pub(crate) fn at(&self) -> &'a Account {
        self.path.last().expect("a path begins with what was asked about")
    }

    /// What it is about, where that is another object than was asked about, and nothing that a controller made.
    pub(crate) fn elsewhere(&self) -> Option<&'a Account> {
        let at = self.at();
        let is_made = items(&at.object, "/metadata/ownerReferences").iter().any(|it| it["controller"] == true);
        (self.path.len() > 1 && !is_made).then_some(at)
    }

    /// The container its step is about: `user` of `container user`.
    pub(crate) fn container(&self) -> Option<&'a str> {
        self.step?.name.split_once(' ').map(|it| it.1)
    }
}

/// Waits that tell what follows from another wait of the same object, and so never are the heart of the matter.
const FOLLOWS: [&str; 11] = [
    "AllNodesDisrupted",
    "ZoneDisrupted",
    "NearestNode",
    "PodsMissing",
    "PodsSurplus",
    "ProgressDeadlineExceeded",
    "NodeNotReady",
    "PodsTolerateTaints",
    "RequestsRefused",
    "FailedCreate",
    "NotDue",
];

pub(super) trait Follows {
    /// Is it said by another wait of the same object already, and better?
    fn follows(&self) -> bool;
    /// A probe that gets no answer in time: what holds its container back comes first.
    fn is_about_time(&self) -> bool;
}

impl Follows for Wait {
    fn follows(&self) -> bool {
        FOLLOWS.contains(&&*self.reason)
    }

    fn is_about_time(&self) -> bool {
        let message = self.message.to_lowercase();
        let says = ["timed out", "timeout", "deadline exceeded", "within"];
        self.reason == "Unhealthy" && says.iter().any(|it| message.contains(it))
    }
}

impl Account {
    /// The deepest cause that somebody other than the cluster must end, else the deepest cause at all. Where room is being made, why there
    /// was none is no longer waited for.
    pub(crate) fn root(&self) -> Option<Root<'_>> {
        let mut all = Vec::new();
        self.causes_below(&mut Vec::new(), false, None, &mut all);
        let is_held_back = all.iter().any(|it| it.wait.reason == "CPUThrottled");
        // A stable sort: of several equally deep ones that somebody must end, the first step's comes first.
        all.sort_by_key(|it| {
            (
                it.wait.reason != "Preempting",
                it.wait.actor == Actor::Cluster,
                it.is_aside,
                it.wait.follows() || is_held_back && it.wait.is_about_time(),
                std::cmp::Reverse(it.path.len()),
            )
        });
        all.into_iter().next()
    }

    fn causes_below<'a>(
        &'a self,
        path: &mut Vec<&'a Self>,
        is_aside: bool,
        waited_since: Option<Time>,
        all: &mut Vec<Root<'a>>,
    ) {
        path.push(self);
        for step in &self.steps {
            let Some(wait) = &step.wait else { continue };
            let by = if step.name == "scheduled" { "scheduler" } else { "kubelet" };
            let since = wait.since.or(waited_since);
            all.push(Root { path: path.clone(), by, step: Some(step), wait, since, is_aside });
        }
        for cause in &self.causes {
            let n_before = all.len();
            let since = cause.wait.since.or(waited_since);
            let is_aside = is_aside || cause.wait.reason == "OldPodsRemain";
            if let Some(because) = &cause.because {
                because.causes_below(path, is_aside, since, all);
            }
            // What explains a wait stands for it.
            if all.len() == n_before {
                all.push(Root { path: path.clone(), by: &cause.by, step: None, wait: &cause.wait, since, is_aside });
            }
        }
        path.pop();
    }

    /// Judges what was gathered: the state, and the line that says it.
    pub(super) fn judge(&mut self, verdict: Option<(State, String)>) {
        self.state = verdict.as_ref().map_or_else(|| self.own_state(), |it| it.0);
        self.summary = verdict.map_or_else(|| self.own_summary(), |it| it.1);
        if matches!(self.state, State::Fine | State::Finished) {
            self.events.clear();
        }
    }

    /// Since when it is what it is, where its own fields say so: what it waits for may be older.
    pub(crate) fn since(&self) -> Option<Time> {
        let metadata = &self.object["metadata"];
        let deleted = time(&metadata["deletionTimestamp"]).filter(|_| self.state == State::Terminating)?;
        let grace_seconds = metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or_default();
        Some(deleted.before(std::time::Duration::from_secs(grace_seconds)))
    }

    fn own_state(&self) -> State {
        let object = &self.object;
        if object["metadata"]["deletionTimestamp"].is_string() {
            return State::Terminating;
        }
        let blocked = self.steps.iter().any(|it| matches!(it.state, StepState::Blocked | StepState::Failed));
        if blocked || self.keeps_failing || self.root().is_some_and(|it| it.wait.actor != Actor::Cluster) {
            return State::Blocked;
        }
        let unfinished = self.steps.iter().any(|it| it.state != StepState::Done);
        let waits = self.causes.iter().any(|it| it.wait.reason != "NotDue");
        if unfinished || waits || !self.errors.is_empty() { State::Progressing } else { State::Fine }
    }

    fn own_summary(&self) -> String {
        let root = self.root().map(|it| format!("{}: {}", it.wait.reason, one_line(&it.wait.message)));
        match self.state {
            State::Fine => {
                let started = super::pod_steps::how_it_started(&self.steps);
                root.or(started).unwrap_or_else(|| "nothing is waited for".into())
            }
            State::Terminating => root.unwrap_or_else(|| "it is being deleted".into()),
            State::Progressing | State::Blocked | State::Failed | State::Finished => {
                let step = self.steps.iter().find(|it| it.state == StepState::Running);
                root.or_else(|| self.errors.first().cloned())
                    .or_else(|| step.map(|it| format!("{} is under way", it.name)))
                    .unwrap_or_else(|| "its next step has not begun".into())
            }
        }
    }

    /// Must somebody act?
    pub(crate) fn needs_somebody(&self) -> bool {
        match self.state {
            State::Fine | State::Finished | State::Progressing => false,
            State::Terminating => self.root().is_some_and(|it| it.wait.actor != Actor::Cluster),
            State::Failed | State::Blocked => true,
        }
    }
}
