//! What a plugin is: a row of functions over one pod and one node, each for one extension point.
//!
//! The points stand in the order they run. A plugin fills in those it has something to say at. Filters see one node at a
//! time: that is what lets a change of one node wake exactly the pods it helps. The few that must know what runs elsewhere
//! are filters `among`, and pods that such a filter turned down are woken by every change that may matter to them.

use std::borrow::Cow;

use corten_reconcile::Actor;

use crate::{
    PodInfo,
    among::Among,
    snapshot::{Row, Snapshot},
};

/// One plugin of the table [`crate::PLUGINS`].
pub struct Plugin {
    pub name: &'static str,
    /// May the pod enter the queue at all? The answer names what holds it back.
    pub(crate) pre_enqueue: Option<fn(&PodInfo) -> Option<String>>,
    /// Can the pod be placed at all? The answer says why it cannot, whatever the nodes are like.
    pub(crate) pre_filter: Option<fn(&PodInfo, &Snapshot) -> Option<Refusal>>,
    /// Can the node run the pod? Every reason against it goes into the list; none means yes.
    pub(crate) filter: Option<for<'p> fn(&'p PodInfo, &Row<'_>, &mut Vec<Reason<'p>>)>,
    /// As `filter`, knowing what runs on the other nodes.
    pub(crate) filter_among: Option<FilterAmong>,
    /// How far a node it turned down is from being taken, and what it would need; for `corten why`.
    pub(crate) gap: Option<Gap>,
    pub(crate) score: Option<Score>,
    /// Who must act where the filter turns every node down.
    pub(crate) actor: Actor,
    /// The stable name of its wait in the journal.
    pub(crate) wait: &'static str,
}

/// Why a pod cannot be placed, whatever the nodes are like.
pub(crate) struct Refusal {
    pub(crate) message: String,
    /// The claim that it waits for: of which kind, and its name.
    pub(crate) claim: Option<(&'static str, String)>,
}

pub(crate) type FilterAmong = for<'p> fn(&'p PodInfo, &Row<'_>, &Among<'_>, &mut Vec<Reason<'p>>);

pub(crate) struct Gap {
    /// Smaller is nearer.
    pub(crate) size: fn(&PodInfo, &Row<'_>) -> i64,
    pub(crate) text: fn(&PodInfo, &Row<'_>) -> String,
}

/// How well does a node suit a pod?
pub(crate) struct Score {
    pub(crate) weight: i64,
    pub(crate) raw: fn(&PodInfo, &Row<'_>) -> i64,
    pub(crate) normalize: Normalize,
}

/// What turns raw scores into 0 to 100, the range in which weights compare.
pub(crate) enum Normalize {
    /// They are in the range already.
    Keep,
    /// The largest becomes 100.
    ToMost,
    /// The largest becomes 0, and 0 becomes 100.
    ToLeast,
}

pub(crate) const SCORE_MAX: i64 = 100;

impl Plugin {
    pub(crate) const NONE: Self = Self {
        name: "",
        pre_enqueue: None,
        pre_filter: None,
        filter: None,
        filter_among: None,
        gap: None,
        score: None,
        actor: Actor::Operator,
        wait: "",
    };
}

/// One reason why a node cannot run a pod. Comparing and counting reasons allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason<'p> {
    Text(&'static str),
    /// The node has too little of the named resource left.
    Insufficient(&'p str),
}

impl Reason<'_> {
    pub(crate) fn text(self) -> Cow<'static, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Insufficient(resource) => Cow::Owned(format!("Insufficient {resource}")),
        }
    }
}
