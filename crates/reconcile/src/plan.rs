//! What a mind answers: effects to carry out now, waits with names, and when to be asked again.

use corten_meta::{Key, Resource, Time};
use serde::{Deserialize, Serialize};

use crate::{CountedLook, Effect, Failure};

/// How many creates or deletes one plan holds at most: enough for speed, few enough that other keys get their turn.
pub const EFFECTS_MAX: usize = 500;

#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Carried out in order; the first failure stops what has not begun, and the key is asked again after a back-off. What
    /// is alike and follows each other goes side by side: creates of one resource, deletes, changes of owners, strategic
    /// patches of different objects, sequences.
    pub effects: Vec<Effect>,
    /// Why the object is not yet what its spec wants. Empty: nothing is waited for.
    pub waits: Vec<Wait>,
    /// Ask again at this time even if nothing changes.
    pub wake_at: Option<Time>,
    /// As what the look that came to this plan is counted, where its loop counts looks of its own.
    pub look: Option<CountedLook>,
}

/// One thing that something waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// CamelCase and stable, for programs: `ReplicaSetPodsNotReady`, `ImagePullBackOff`.
    pub reason: String,
    /// A sentence for people, lower case, no full stop: what is missing.
    pub message: String,
    /// What it waits for, as `kind/name`, where that is an object: `corten why` goes on there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    pub actor: Actor,
    /// Filled in by whoever keeps the journal: when this reason was first seen in an unbroken row of plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// Who must act for a wait to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Actor {
    /// The cluster itself: it goes on by itself.
    Cluster,
    /// Whoever wrote the object: its spec must change.
    Author,
    /// Whoever runs the cluster: a node, an image store, a quota, a permission.
    Operator,
    /// A program outside the cluster.
    External,
}

impl Actor {
    /// As it is written in a journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Author => "Author",
            Self::Operator => "Operator",
            Self::External => "External",
        }
    }
}

impl Wait {
    pub fn new(reason: &str, message: impl Into<String>, actor: Actor) -> Self {
        Self { reason: reason.into(), message: message.into(), on: None, actor, since: None }
    }

    #[must_use]
    pub fn on(mut self, kind: &str, name: &str) -> Self {
        self.on = Some(format!("{}/{name}", kind.to_lowercase()));
        self
    }
}

/// Begins with the effects behind the one that failed the last time: one object that cannot be made or deleted must not keep
/// all that come after it.
pub fn go_on_after_failed(effects: &mut [Effect], failure: Option<&Failure>) {
    let Some(failed) = failure.and_then(|it| target(&it.effect)) else { return };
    let is_it = |it: &Effect| it.parts().iter().any(|it| target(it).as_ref() == Some(&failed));
    if let Some(at) = effects.iter().position(is_it) {
        let is_told = |it: &&Effect| matches!(it, Effect::Event { .. } | Effect::Count(_));
        let n_told = effects[at + 1..].iter().take_while(is_told).count();
        effects.rotate_left(at + 1 + n_told);
    }
}

fn target(effect: &Effect) -> Option<(&Resource, Key)> {
    match effect {
        Effect::Create { resource, object } => {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            Some((resource, Key::new(text("namespace"), text("name"))))
        }
        Effect::Patch { resource, key, .. }
        | Effect::StrategicPatch { resource, key, .. }
        | Effect::Delete { resource, key, .. } => Some((resource, key.clone())),
        Effect::Event { .. }
        | Effect::Ask { .. }
        | Effect::AskAccess { .. }
        | Effect::Fetch(_)
        | Effect::FetchForAll(_)
        | Effect::Remember { .. }
        | Effect::Count(_)
        | Effect::Sequence(_) => None,
    }
}
