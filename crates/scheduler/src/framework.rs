//! What a plugin is: a row of functions over one pod and one node, each for one extension point.
//!
//! The points stand in the order they run. A plugin fills in those it has something to say at. Filters see one node at a
//! time: that is what lets a change of one node wake exactly the pods it helps. The few that must know what runs elsewhere
//! are filters `among`, and pods that such a filter turned down are woken by every change that may matter to them.

use std::{borrow::Cow, collections::BTreeSet};

use corten_reconcile::Actor;

use crate::{
    PodInfo,
    among::Among,
    arguments::Arguments,
    pod_groups::PodGroups,
    snapshot::{Row, Snapshot},
};

/// One plugin of the table [`crate::PLUGINS`].
pub struct Plugin {
    pub name: &'static str,
    /// May the pod enter the queue at all? The answer names what holds it back.
    pub(crate) pre_enqueue: Option<fn(&PodInfo, &PodGroups) -> Option<String>>,
    /// Can the pod be placed at all? The answer says why it cannot, whatever the nodes are like.
    pub(crate) pre_filter: Option<fn(&PodInfo, &Snapshot) -> Option<Refusal>>,
    /// Can the node run the pod? Every reason against it goes into the rejection; none means yes.
    pub(crate) filter: Option<Filter>,
    /// The only nodes that `filter` may let the pod run on, where it can name them (`PreFilterResult`).
    pub(crate) only_nodes: Option<OnlyNodes>,
    /// As `filter`, knowing what runs on the other nodes.
    pub(crate) filter_among: Option<FilterAmong>,
    /// Do its filters turn no node down for this pod, as things are (a `PreFilter` that answers `Skip`)?
    pub(crate) skips: Option<fn(&PodInfo, &Snapshot, &Arguments) -> bool>,
    /// How far a node it turned down is from being taken, and what it would need; for `corten why`.
    pub(crate) shortfall: Option<Shortfall>,
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

pub(crate) type Filter = for<'p> fn(&'p PodInfo, &Row<'_>, &Arguments, &mut Rejection<'p>);
pub(crate) type OnlyNodes = fn(&PodInfo) -> Option<BTreeSet<&str>>;
pub(crate) type FilterAmong = for<'a> fn(&'a PodInfo, &Row<'_>, &Among<'a>, &mut Rejection<'a>);

/// Why a node cannot run a pod.
#[derive(Default)]
pub(crate) struct Rejection<'p> {
    reasons: Vec<Reason<'p>>,
    is_final: bool,
}

impl<'p> Rejection<'p> {
    /// `Unschedulable`: were there fewer pods on the node, it might run this one.
    pub(crate) fn because(&mut self, reason: Reason<'p>) {
        self.reasons.push(reason);
    }

    /// `UnschedulableAndUnresolvable`: whatever pods leave the node, it cannot run this one.
    pub(crate) fn finally_because(&mut self, reason: Reason<'p>) {
        self.is_final = true;
        self.reasons.push(reason);
    }

    pub(crate) fn clear(&mut self) {
        self.is_final = false;
        self.reasons.clear();
    }

    pub(crate) fn reasons(&self) -> &[Reason<'p>] {
        &self.reasons
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }
}

pub(crate) struct Shortfall {
    /// Smaller is nearer.
    pub(crate) size: fn(&PodInfo, &Row<'_>, &Arguments) -> i64,
    pub(crate) text: fn(&PodInfo, &Row<'_>, &Arguments) -> String,
}

/// How well does a node suit a pod?
pub(crate) struct Score {
    /// Where the configuration does not say otherwise.
    pub(crate) weight: i64,
    pub(crate) points: Points,
}

/// Nothing where it has no say (a `PreScore` that answers `Skip`).
pub(crate) type PointsOfAll = fn(&Scoring<'_>) -> Option<Vec<i64>>;

pub(crate) enum Points {
    /// Each node by itself.
    Each { raw: fn(&PodInfo, &Row<'_>, &Arguments) -> i64, normalize: Normalize },
    /// All nodes that can run the pod together, as numbers from 0 to 100.
    All(PointsOfAll),
}

/// What scores of all nodes together are made of.
#[derive(Clone, Copy)]
pub(crate) struct Scoring<'a> {
    pub(crate) pod: &'a PodInfo,
    pub(crate) snapshot: &'a Snapshot,
    /// The nodes that can run the pod: there is one score for each.
    pub(crate) feasible: &'a [usize],
    pub(crate) arguments: &'a Arguments,
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

/// Converts a score or an amount: shares of them are computed in floating point.
#[expect(clippy::cast_precision_loss, reason = "upstream reckons so: float64 of an int64")]
pub(crate) fn real(number: i64) -> f64 {
    number as f64
}

/// Cut off.
#[expect(
    clippy::cast_possible_truncation,
    reason = "upstream reckons so: int64 of a float64; what is too large stays at the end"
)]
pub(crate) fn whole(number: f64) -> i64 {
    number as i64
}

impl Plugin {
    pub(crate) const NONE: Self = Self {
        name: "",
        pre_enqueue: None,
        pre_filter: None,
        filter: None,
        only_nodes: None,
        filter_among: None,
        skips: None,
        shortfall: None,
        score: None,
        actor: Actor::Operator,
        wait: "",
    };

    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some() || self.filter_among.is_some()
    }
}

/// One reason why a node cannot run a pod. Comparing and counting reasons allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason<'p> {
    Text(&'static str),
    /// The node has too little of the named resource left.
    Insufficient(&'p str),
    /// The node does not have the CSI driver, without which its volumes are not to come there.
    NoDriver(&'p str),
    /// The plugin names other nodes.
    Unnamed(&'static str),
}

impl Reason<'_> {
    /// The same for all pods that ask the same: nothing where it names what only this pod names.
    pub(crate) fn lasting(self) -> Option<Reason<'static>> {
        match self {
            Self::Text(text) => Some(Reason::Text(text)),
            Self::Insufficient("cpu") => Some(Reason::Insufficient("cpu")),
            Self::Insufficient("memory") => Some(Reason::Insufficient("memory")),
            Self::Insufficient("ephemeral-storage") => Some(Reason::Insufficient("ephemeral-storage")),
            Self::Insufficient(_) | Self::NoDriver(_) => None,
            Self::Unnamed(plugin) => Some(Reason::Unnamed(plugin)),
        }
    }

    pub(crate) fn text(self) -> Cow<'static, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Insufficient(resource) => Cow::Owned(format!("Insufficient {resource}")),
            Self::NoDriver(driver) => Cow::Owned(format!("{driver} CSI driver is not installed on the node")),
            Self::Unnamed(plugin) => Cow::Owned(format!("node(s) didn't satisfy plugin(s) [{plugin}]")),
        }
    }
}
