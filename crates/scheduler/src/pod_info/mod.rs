//! What the plugins read of a pod, worked out once.

mod affinity_term;
mod claim;
mod device_claim;
mod extended_resources;
mod host_port;
mod owner;
mod spread_constraint;

use std::collections::{BTreeMap, BTreeSet};

use corten_api::declared_features::{RESTART_ALL, RESTART_ALL_ACTION};
use corten_meta::{Key, ObjectReference};

use crate::{
    Pod, images, labelled_group,
    namespaces::NamespaceLabels,
    projections::{NodeAffinity, PodSpec, Toleration},
    requests::{self, Amounts},
};

pub(crate) use affinity_term::{Term, WeightedTerm};
pub(crate) use claim::Claim;
pub(crate) use device_claim::DeviceClaimRef;
pub(crate) use extended_resources::{ExtendedRequest, ExtendedResources};
pub(crate) use host_port::HostPort;
pub(crate) use owner::{Owner, Workload};
pub(crate) use spread_constraint::Constraint;

/// What the plugins read of a pod, worked out once. Two equal ones are placed alike.
#[derive(Clone, Debug, PartialEq)]
pub struct PodInfo {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) scheduler_name: String,
    pub(crate) priority: i32,
    /// Its `preemptionPolicy` is not `Never`.
    pub(crate) may_preempt: bool,
    pub(crate) gates: Vec<String>,
    /// The PodGroup that it names, or its label.
    pub(crate) group: Option<Key>,
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
    pub(crate) preferred_affinity: Vec<WeightedTerm>,
    pub(crate) preferred_anti_affinity: Vec<WeightedTerm>,
    /// The spread constraints that say `DoNotSchedule`, and those that say `ScheduleAnyway`.
    pub(crate) spread: Vec<Constraint>,
    pub(crate) soft_spread: Vec<Constraint>,
    pub(crate) owner: Option<Owner>,
    /// Those of its containers and volumes.
    pub(crate) images: Vec<String>,
    pub(crate) n_containers: usize,
    pub(crate) claims: Vec<Claim>,
    /// Its claims for devices.
    pub(crate) device_claims: Vec<DeviceClaimRef>,
    /// What its containers ask for of extended resources.
    pub(crate) extended: Vec<ExtendedResources>,
    /// Its status names a claim for those.
    pub(crate) names_extended_claim: bool,
    /// What its node must have declared, in the order of names.
    pub(crate) features: Vec<&'static str>,
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
            may_preempt: spec.preemption_policy != "Never",
            gates: spec.scheduling_gates.iter().map(|it| it.name.clone()).collect(),
            group: group(pod),
            node_name: spec.node_name.clone(),
            requested: requests::requested(pod),
            guessed: requests::guessed(pod),
            ports: HostPort::of(pod),
            tolerations: spec.tolerations.clone(),
            node_selector: spec.node_selector.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            affinity: spec.affinity.node_affinity.clone(),
            labels: pod.metadata.labels.clone(),
            deleting: pod.metadata.is_deleting(),
            pod_affinity: Term::all(&spec.affinity.pod_affinity.required, &pod.metadata),
            pod_anti_affinity: Term::all(&spec.affinity.pod_anti_affinity.required, &pod.metadata),
            preferred_affinity: WeightedTerm::all(&spec.affinity.pod_affinity.preferred, &pod.metadata),
            preferred_anti_affinity: WeightedTerm::all(&spec.affinity.pod_anti_affinity.preferred, &pod.metadata),
            spread: Constraint::hard(&spec.topology_spread_constraints, &pod.metadata.labels),
            soft_spread: Constraint::soft(&spec.topology_spread_constraints, &pod.metadata.labels),
            owner: Owner::of(&pod.metadata),
            images: images(spec),
            n_containers: spec.init_containers.len() + spec.containers.len(),
            claims: claim::claims(&pod.metadata.name, spec),
            device_claims: DeviceClaimRef::all(pod),
            extended: ExtendedResources::all(spec),
            names_extended_claim: pod.status.extended_resource_claim_status.is_some(),
            features: features(spec),
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

    /// Does it take the same of a node, and has it the same signature for other pods?
    pub(crate) fn uses_same(&self, other: &Self) -> bool {
        self.requested == other.requested
            && self.guessed == other.guessed
            && self.ports == other.ports
            && self.labels == other.labels
            && self.deleting == other.deleting
            && self.priority == other.priority
            && self.pod_affinity == other.pod_affinity
            && self.pod_anti_affinity == other.pod_anti_affinity
            && self.preferred_affinity == other.preferred_affinity
            && self.preferred_anti_affinity == other.preferred_anti_affinity
    }

    /// Are both placed alike? They may have other names, and be of other generations.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        // Whoever adds a field decides whether it matters here.
        #[rustfmt::skip]
        let Self {
            key, uid: _, generation: _, scheduler_name: _, node_name: _, requested: _, guessed: _, ports: _, tolerations: _,
            node_selector: _, affinity: _, priority, may_preempt, gates, group, labels, deleting, pod_affinity,
            pod_anti_affinity, preferred_affinity, preferred_anti_affinity, spread, soft_spread, owner, images, n_containers,
            claims, device_claims, extended, names_extended_claim, features: _,
        } = self;
        key.namespace == other.key.namespace
            && (*priority, *may_preempt, *deleting) == (other.priority, other.may_preempt, other.deleting)
            && self.asks_same_of_a_node(other)
            && (gates, group, labels, owner) == (&other.gates, &other.group, &other.labels, &other.owner)
            && (pod_affinity, pod_anti_affinity) == (&other.pod_affinity, &other.pod_anti_affinity)
            && *preferred_affinity == other.preferred_affinity
            && *preferred_anti_affinity == other.preferred_anti_affinity
            && (spread, soft_spread) == (&other.spread, &other.soft_spread)
            && (images, n_containers) == (&other.images, &other.n_containers)
            && (claims, device_claims) == (&other.claims, &other.device_claims)
            && (extended, names_extended_claim) == (&other.extended, &other.names_extended_claim)
    }

    /// Do the plugins that look at one node only say the same of it and of the other?
    pub(crate) fn asks_same_of_a_node(&self, other: &Self) -> bool {
        self.requested == other.requested
            && self.guessed == other.guessed
            && self.scheduler_name == other.scheduler_name
            && self.node_name == other.node_name
            && self.ports == other.ports
            && self.tolerations == other.tolerations
            && self.node_selector == other.node_selector
            && self.affinity == other.affinity
            && self.features == other.features
    }

    /// Apart from its labels and from how much it asks for, may it run where the other may? (Filters know nothing else of it.)
    pub(crate) fn is_constrained_alike(&self, other: &Self) -> bool {
        // Whoever adds a field decides whether it matters here.
        #[rustfmt::skip]
        let Self {
            key: _, uid: _, generation: _, scheduler_name: _, node_name: _, requested: _, guessed: _, labels: _, images: _,
            n_containers: _, preferred_affinity: _, preferred_anti_affinity: _, soft_spread: _, deleting: _, priority,
            may_preempt, gates, group, ports, tolerations, node_selector, affinity, pod_affinity, pod_anti_affinity, spread,
            owner, claims, device_claims, extended, names_extended_claim, features,
        } = self;
        (*priority, *may_preempt) == (other.priority, other.may_preempt)
            && (gates, group, owner) == (&other.gates, &other.group, &other.owner)
            && (ports, tolerations) == (&other.ports, &other.tolerations)
            && (node_selector, affinity) == (&other.node_selector, &other.affinity)
            && (pod_affinity, pod_anti_affinity, spread)
                == (&other.pod_affinity, &other.pod_anti_affinity, &other.spread)
            && (claims, device_claims) == (&other.claims, &other.device_claims)
            && (extended, names_extended_claim, features)
                == (&other.extended, &other.names_extended_claim, &other.features)
    }

    /// Are labels and affinity equal, so that other pods' affinity and spread constraints cannot tell them apart?
    pub(crate) fn has_same_signature(&self, other: &Self) -> bool {
        self.key.namespace == other.key.namespace
            && self.labels == other.labels
            && self.deleting == other.deleting
            && self.pod_affinity == other.pod_affinity
            && self.pod_anti_affinity == other.pod_anti_affinity
            && self.preferred_affinity == other.preferred_affinity
            && self.preferred_anti_affinity == other.preferred_anti_affinity
    }

    /// The labels of nodes that its terms name.
    pub(crate) fn keys_of_terms(&self) -> impl Iterator<Item = &str> {
        let required = self.pod_affinity.iter().chain(&self.pod_anti_affinity);
        let preferred = self.preferred_affinity.iter().chain(&self.preferred_anti_affinity).map(|it| &it.term);
        required.chain(preferred).map(|it| &*it.topology_key)
    }

    /// May it, once it is placed, draw others to itself or keep them away?
    pub(crate) fn has_affinity(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.preferred_affinity.is_empty() || !self.preferred_anti_affinity.is_empty()
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
    pub(crate) fn is_concerned_by(&self, placed: &Self, namespaces: &NamespaceLabels) -> bool {
        let terms = self.pod_affinity.iter().chain(&self.pod_anti_affinity);
        terms.into_iter().any(|it| it.matches(placed, namespaces))
            || placed.pod_anti_affinity.iter().any(|it| it.matches(self, namespaces))
            || self.shares_claim(placed)
            || (self.key.namespace == placed.key.namespace && self.spread.iter().any(|it| it.selects(&placed.labels)))
    }

    /// May the labels of a namespace decide where it can go?
    pub(crate) fn selects_namespaces(&self) -> bool {
        self.pod_affinity.iter().chain(&self.pod_anti_affinity).any(Term::selects_namespaces)
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

fn group(pod: &Pod) -> Option<Key> {
    let named = pod.spec.scheduling_group.as_ref().filter(|it| !it.pod_group_name.is_empty());
    let named = named.map(|it| Key::new(&*pod.metadata.namespace, &*it.pod_group_name));
    named.or_else(|| labelled_group::named_by(&pod.metadata))
}

/// As in `InferForPodScheduling`: the other features matter to who is bound already.
fn features(spec: &PodSpec) -> Vec<&'static str> {
    let mut rules = spec.init_containers.iter().chain(&spec.containers).flat_map(|it| &it.restart_policy_rules);
    let restarts_all = rules.any(|it| it.action == RESTART_ALL_ACTION);
    restarts_all.then_some(RESTART_ALL).into_iter().collect()
}

/// The images of its containers, and those that are mounted as volumes.
fn images(spec: &PodSpec) -> Vec<String> {
    let containers = spec.init_containers.iter().chain(&spec.containers).map(|it| &it.image);
    let volumes = spec.volumes.iter().filter_map(|it| it.image.as_ref()).map(|it| &it.reference);
    containers.chain(volumes).filter(|it| !it.is_empty()).map(|it| images::normalized(it)).collect()
}
