//! What the plugins read of a pod, worked out once.

mod affinity_term;
mod claim;
mod device_claim;
mod extended_resources;
mod host_port;
mod spread_constraint;

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{Key, ObjectReference};

use crate::{
    Pod,
    projections::{NodeAffinity, Toleration},
    requests::{self, Amounts},
};

pub(crate) use affinity_term::{Namespaces, Term};
pub(crate) use claim::Claim;
pub(crate) use device_claim::DeviceClaimRef;
pub(crate) use extended_resources::{ExtendedRequest, ExtendedResources};
pub(crate) use host_port::HostPort;
pub(crate) use spread_constraint::Constraint;

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
    /// Its claims for devices.
    pub(crate) device_claims: Vec<DeviceClaimRef>,
    /// What its containers ask for of extended resources.
    pub(crate) extended: Vec<ExtendedResources>,
    /// Its status names a claim for those.
    pub(crate) names_extended_claim: bool,
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
            claims: claim::claims(&pod.metadata.name, spec),
            device_claims: DeviceClaimRef::all(pod),
            extended: ExtendedResources::all(spec),
            names_extended_claim: pod.status.extended_resource_claim_status.is_some(),
        }
    }

    fn shares_claim(&self, other: &Self) -> bool {
        if self.claims.is_empty() || other.claims.is_empty() || self.key.namespace != other.key.namespace {
            return false;
        }
        let names: BTreeSet<&str> = other.claims.iter().map(Claim::name).collect();
        self.claims.iter().any(|it| names.contains(it.name()))
    }

    pub(crate) fn claim_key(&self, claim: &Claim) -> Key {
        Key::new(&*self.key.namespace, claim.name())
    }

    /// The claims that its volumes are.
    pub(crate) fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.claims.iter().map(|it| self.claim_key(it))
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

    /// Can it be that it is given devices before it is bound?
    pub(crate) fn may_be_given_devices(&self) -> bool {
        !self.device_claims.is_empty() || !self.extended.is_empty()
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
            || self.shares_claim(placed)
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
