//! What a plugin is: a row of functions over one pod and one node, each for one extension point.
//!
//! The points stand in the order they run. A plugin fills in those it has something to say at. Filters see one node at a
//! time: that is what lets a change of one node wake exactly the pods it helps. The few that must know what runs elsewhere
//! are filters `among`, and pods that such a filter turned down are woken by every change that may matter to them.

use std::borrow::Cow;

use std::collections::BTreeMap;

use corten_meta::{Key, ObjectReference};
use corten_reconcile::Actor;

use crate::{
    Pod, Snapshot,
    plugins::{
        inter_pod_affinity::{self, Term},
        node_ports::HostPort,
        pod_topology_spread::{self, Constraint},
        volume_binding::{self, Claim},
    },
    requests::{self, Amounts},
    seen::{NodeAffinity, Toleration},
    snapshot::Row,
};

/// One plugin of the table [`crate::PLUGINS`].
pub struct Plugin {
    pub name: &'static str,
    /// May the pod enter the queue at all? The answer names what holds it back.
    pub(crate) pre_enqueue: Option<fn(&PodInfo) -> Option<String>>,
    /// Can the pod be placed at all? The answer says why it cannot, whatever the nodes are like.
    pub(crate) pre_filter: Option<fn(&PodInfo) -> Option<String>>,
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

/// What of all that runs in the cluster bears on one pod. Worked out once for each try.
pub(crate) struct Among<'a> {
    pub(crate) affinity: inter_pod_affinity::Neighbours<'a>,
    pub(crate) spread: Vec<pod_topology_spread::Domains<'a>>,
}

impl<'a> Among<'a> {
    pub(crate) fn of(pod: &'a PodInfo, snapshot: &'a Snapshot) -> Self {
        Self {
            affinity: inter_pod_affinity::neighbours(pod, snapshot),
            spread: pod_topology_spread::domains(pod, snapshot),
        }
    }
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

/// What the plugins read of a pod, worked out once. Two equal ones are placed alike.
#[derive(Clone, Debug, PartialEq)]
pub struct PodInfo {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) scheduler_name: String,
    pub(crate) priority: i32,
    pub(crate) gates: Vec<String>,
    pub(crate) node_name: String,
    pub(crate) requested: Amounts,
    pub(crate) guessed: Amounts,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) node_selector: Vec<(String, String)>,
    pub(crate) affinity: NodeAffinity,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) deleting: bool,
    pub(crate) pod_affinity: Vec<Term>,
    pub(crate) pod_anti_affinity: Vec<Term>,
    pub(crate) spread: Vec<Constraint>,
    pub(crate) claims: Vec<Claim>,
    /// The names of its `resourceClaims`.
    pub(crate) resource_claims: Vec<String>,
}

impl PodInfo {
    pub(crate) fn new(pod: &Pod) -> Self {
        let spec = &pod.spec;
        let scheduler_name = if spec.scheduler_name.is_empty() { "default-scheduler" } else { &spec.scheduler_name };
        Self {
            key: pod.metadata.key(),
            uid: pod.metadata.uid.clone(),
            generation: pod.metadata.generation,
            scheduler_name: scheduler_name.to_owned(),
            priority: spec.priority,
            gates: spec.scheduling_gates.iter().map(|it| it.name.clone()).collect(),
            node_name: spec.node_name.clone(),
            requested: requests::requested(spec),
            guessed: requests::guessed(spec),
            ports: HostPort::of(spec),
            tolerations: spec.tolerations.clone(),
            node_selector: spec.node_selector.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            affinity: spec.affinity.node_affinity.clone(),
            labels: pod.metadata.labels.clone(),
            deleting: pod.metadata.is_deleting(),
            pod_affinity: Term::all(&spec.affinity.pod_affinity.required, &pod.metadata),
            pod_anti_affinity: Term::all(&spec.affinity.pod_anti_affinity.required, &pod.metadata),
            spread: Constraint::all(&spec.topology_spread_constraints, &pod.metadata.labels),
            claims: volume_binding::claims(&pod.metadata.name, spec),
            resource_claims: spec.resource_claims.iter().map(|it| it.name.clone()).collect(),
        }
    }

    /// Does it take the same of a node, and look the same to other pods?
    pub(crate) fn uses_same(&self, other: &Self) -> bool {
        self.requested == other.requested
            && self.guessed == other.guessed
            && self.ports == other.ports
            && self.labels == other.labels
            && self.deleting == other.deleting
            && self.pod_anti_affinity == other.pod_anti_affinity
    }

    /// Does its place depend on what runs on other nodes?
    pub(crate) fn looks_beyond_its_node(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.pod_anti_affinity.is_empty() || !self.spread.is_empty()
    }

    /// May the coming, going or change of a placed pod decide where this one can go?
    pub(crate) fn is_concerned_by(&self, placed: &Self) -> bool {
        let terms = self.pod_affinity.iter().chain(&self.pod_anti_affinity);
        terms.into_iter().any(|it| it.matches(placed))
            || placed.pod_anti_affinity.iter().any(|it| it.matches(self))
            || (self.key.namespace == placed.key.namespace && self.spread.iter().any(|it| it.selects(&placed.labels)))
    }

    pub(crate) fn reference(&self) -> ObjectReference {
        ObjectReference {
            kind: "Pod".into(),
            api_version: "v1".into(),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}
