//! A pod as the workload controllers see it: one projection, so that all of them share one cache.
//!
//! It is held once for every pod of the cluster, so it has no field that one of them does not read.

mod parts;

use corten_api::resources;
use corten_meta::{Key, Named, ObjectMeta, Resource, Time};
use corten_reconcile::{Projection, View};
use serde::{Deserialize, Deserializer};

pub(crate) use parts::{Claim, NamedPort, NamedPorts, Toleration, Tolerations};

use super::Condition;

#[derive(Deserialize)]
pub(crate) struct Pod {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: PodSpec,
    #[serde(default)]
    pub(crate) status: PodStatus,
}

impl Named for Pod {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn found_by(&self) -> Option<&str> {
        Some(&*self.spec.node_name).filter(|it| !it.is_empty())
    }
}

impl Pod {
    /// Whom a change of a pod wakes in a loop that is about some pods only: nearly all pods are never looked at there. One that took
    /// the place of another is, as that may have been of interest.
    pub(crate) fn wakes(view: &View, pod: &ObjectMeta, is_of_interest: impl FnOnce(&Self) -> bool) -> Vec<Key> {
        let key = pod.key();
        let is = |it: &Self| it.metadata.uid != pod.uid || is_of_interest(it);
        let wakes = view.get::<Self>(&key).is_some_and(is);
        Vec::from_iter(wakes.then_some(key))
    }
}

impl Projection for Pod {
    const RESOURCE: Resource = resources::PODS;
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
    /// The only node it may run on by its node affinity: where a daemon pod belongs before it is bound.
    #[serde(rename = "affinity", deserialize_with = "only_node")]
    pub(crate) only_node: Option<Box<str>>,
    pub(crate) hostname: Box<str>,
    pub(crate) subdomain: Box<str>,
    #[serde(rename = "containers", deserialize_with = "parts::named_ports")]
    pub(crate) named_ports: Box<[NamedPort]>,
    #[serde(rename = "initContainers", deserialize_with = "parts::sidecars_named_ports")]
    pub(crate) sidecars_named_ports: Box<[NamedPort]>,
    #[serde(rename = "volumes", deserialize_with = "parts::claims")]
    pub(crate) claims: Box<[Claim]>,
    pub(crate) resource_claims: Box<[PodClaim]>,
    #[serde(deserialize_with = "parts::of_no_execute")]
    pub(crate) tolerations: Tolerations,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
    #[serde(rename = "ephemeralContainerStatuses", deserialize_with = "parts::any_runs")]
    pub(crate) runs_ephemeral: bool,
    #[serde(rename = "podIP")]
    pub(crate) pod_ip: Box<str>,
    #[serde(rename = "podIPs", deserialize_with = "parts::ips")]
    pub(crate) pod_ips: Box<[Box<str>]>,
    pub(crate) resource_claim_statuses: Box<[PodClaimStatus]>,
    pub(crate) reason: Box<str>,
    pub(crate) start_time: Option<Time>,
}

/// A claim for devices.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodClaim {
    pub(crate) name: String,
    pub(crate) resource_claim_name: Option<String>,
    pub(crate) resource_claim_template_name: Option<String>,
}

/// The claim that was made for one of a template.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodClaimStatus {
    pub(crate) name: String,
    pub(crate) resource_claim_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    pub(crate) name: Box<str>,
    pub(crate) restart_count: i64,
    pub(crate) state: ContainerState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub(crate) terminated: Option<Box<Terminated>>,
    #[serde(rename = "waiting", deserialize_with = "parts::is_there")]
    pub(crate) is_waiting: bool,
}

impl ContainerState {
    /// One of which nothing is said does, as upstream takes it.
    pub(crate) fn runs(&self) -> bool {
        self.terminated.is_none() && !self.is_waiting
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Terminated {
    #[serde(default)]
    pub(crate) exit_code: i64,
    #[serde(default)]
    pub(crate) finished_at: Option<Time>,
}

fn only_node<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<str>>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Affinity {
        node_affinity: Option<NodeAffinity>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct NodeAffinity {
        required_during_scheduling_ignored_during_execution: Terms,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Terms {
        node_selector_terms: Vec<Term>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Term {
        match_fields: Vec<Field>,
    }
    #[derive(Deserialize)]
    struct Field {
        key: String,
        operator: String,
        #[serde(default)]
        values: Vec<Box<str>>,
    }
    let affinity = Option::<Affinity>::deserialize(deserializer)?.unwrap_or_default();
    let terms = affinity.node_affinity.unwrap_or_default().required_during_scheduling_ignored_during_execution;
    let mut fields = terms.node_selector_terms.into_iter().flat_map(|it| it.match_fields);
    let named = fields.find(|it| it.key == "metadata.name" && it.operator == "In" && it.values.len() == 1);
    Ok(named.and_then(|it| it.values.into_iter().next()))
}

impl Pod {
    /// Has it run to its end?
    pub(crate) fn is_finished(&self) -> bool {
        is_final(&self.status.phase)
    }

    /// Neither finished nor on its way out.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_finished() && !self.metadata.is_deleting()
    }

    /// On its way out, but not yet finished.
    pub(crate) fn is_terminating(&self) -> bool {
        !self.is_finished() && self.metadata.is_deleting()
    }

    /// Nothing of it runs any more, or will: finished, or on its way out with no container that runs (`IsPodTerminated`).
    pub(crate) fn has_ended(&self) -> bool {
        let status = &self.status;
        let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses);
        let runs = status.runs_ephemeral || containers.any(|it| it.state.runs());
        self.is_finished() || (self.metadata.is_deleting() && !runs)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.status.phase == "Failed"
    }

    pub(crate) fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready_condition().is_some()
    }

    /// Since when it has been ready, if it is.
    pub(crate) fn ready_since(&self) -> Option<Time> {
        self.ready_condition()?.last_transition_time
    }

    fn ready_condition(&self) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.r#type == "Ready" && it.status == "True")
    }

    /// Has it been ready for as long as its owner asks for?
    pub(crate) fn is_available(&self, min_ready_seconds: i64, now: Time) -> bool {
        self.is_ready() && (min_ready_seconds <= 0 || self.available_at(min_ready_seconds).is_some_and(|it| it <= now))
    }

    /// When a ready pod has been ready long enough, where there is such a rule.
    pub(crate) fn available_at(&self, min_ready_seconds: i64) -> Option<Time> {
        let seconds = u64::try_from(min_ready_seconds).ok().filter(|it| *it > 0)?;
        Some(self.ready_since()?.after(std::time::Duration::from_secs(seconds)))
    }

    pub(crate) fn restarts_most(&self) -> i64 {
        self.status.container_statuses.iter().map(|it| it.restart_count).max().unwrap_or(0)
    }
}

fn is_final(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}
