//! The fields of objects that controllers read.

mod claim;
mod controller_revision;
mod cron_job;
mod daemon_set;
mod disruption_budget;
mod job;
mod node;
mod pod;
mod reachable;
mod service;
mod stateful_set;
mod zoned_node;

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{LabelSelector, MicroTime, Named, ObjectMeta, Resource, Selector, Time};
use corten_reconcile::{Wake, Watch};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub(crate) use corten_reconcile::{
    Condition, bare, is_zero, or_default, projection, reference,
    served::{ApiGroup, ApiService, ApiVersion, Definition, defined, not_known_yet},
};

pub(crate) use claim::PersistentVolumeClaim;
pub(crate) use controller_revision::ControllerRevision;
pub(crate) use cron_job::{CronJob, CronJobStatus};
pub(crate) use daemon_set::{DaemonNode, DaemonSet, DaemonSetStatus};
pub(crate) use disruption_budget::*;
pub(crate) use job::*;
pub(crate) use node::*;
pub(crate) use pod::{ContainerStatus, NamedPorts, Pod, PodClaimStatus, Toleration};
pub(crate) use reachable::{Frontend, Ingress, ReachableService};
pub(crate) use service::*;
pub(crate) use stateful_set::{StatefulSet, StatefulSetStatus};
pub(crate) use zoned_node::ZonedNode;

/// Any object, as far as its identity, owners and end go. Labels and annotations, most of most objects' metadata, are
/// left out: some controllers hold every object of the cluster this way.
#[derive(Deserialize)]
pub(crate) struct Bare {
    #[serde(deserialize_with = "bare")]
    pub(crate) metadata: ObjectMeta,
}

/// A watch of objects of any kind, of which only the metadata is looked at. Pods are held anyway, and not twice.
pub(crate) fn any(resource: &Resource, wake: Wake) -> Watch {
    if *resource == resources::PODS {
        return Watch::of::<Pod>(resource.clone(), wake);
    }
    if *resource == resources::CUSTOM_RESOURCE_DEFINITIONS {
        return Watch::of::<Definition>(resource.clone(), wake);
    }
    if *resource == resources::API_SERVICES {
        return Watch::of::<ApiService>(resource.clone(), wake);
    }
    let watch = Watch::of::<Bare>(resource.clone(), wake);
    // A conversion webhook that fails holds up nobody who looks at metadata.
    if corten_kinds::by_path(&resource.group, &resource.version, &resource.plural).is_some() {
        return watch;
    }
    watch.of_metadata()
}

impl Named for Bare {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

#[derive(Deserialize)]
pub(crate) struct Deployment {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: DeploymentSpec,
    #[serde(default)]
    pub(crate) status: DeploymentStatus,
}
projection!(Deployment, resources::DEPLOYMENTS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeploymentSpec {
    #[serde(default = "one")]
    pub(crate) replicas: i64,
    pub(crate) selector: Selecting,
    pub(crate) template: Value,
    #[serde(default)]
    pub(crate) strategy: Strategy,
    #[serde(default)]
    pub(crate) min_ready_seconds: i64,
    #[serde(default)]
    pub(crate) revision_history_limit: Option<i64>,
    #[serde(default)]
    pub(crate) paused: bool,
    #[serde(default)]
    pub(crate) progress_deadline_seconds: Option<i64>,
}

pub(crate) fn one() -> i64 {
    1
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Strategy {
    pub(crate) r#type: String,
    pub(crate) rolling_update: RollingUpdate,
}

/// Numbers of pods, or percentages such as `"25%"`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RollingUpdate {
    pub(crate) max_surge: Value,
    pub(crate) max_unavailable: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeploymentStatus {
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) updated_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) ready_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) available_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) unavailable_replicas: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating_replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collision_count: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Deserialize)]
pub(crate) struct ReplicaSet {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ReplicaSetSpec,
    #[serde(default)]
    pub(crate) status: ReplicaSetStatus,
}
projection!(ReplicaSet, resources::REPLICA_SETS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSetSpec {
    #[serde(default = "one")]
    pub(crate) replicas: i64,
    pub(crate) selector: Selector,
    #[serde(default)]
    pub(crate) template: Value,
    #[serde(default)]
    pub(crate) min_ready_seconds: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplicaSetStatus {
    pub(crate) replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) fully_labeled_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) ready_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) available_replicas: i64,
    /// Only replica sets have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating_replicas: Option<i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Deserialize)]
pub(crate) struct ReplicationController {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ReplicationControllerSpec,
    #[serde(default)]
    pub(crate) status: ReplicaSetStatus,
}
projection!(ReplicationController, resources::REPLICATION_CONTROLLERS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicationControllerSpec {
    #[serde(default = "one")]
    pub(crate) replicas: i64,
    #[serde(default, deserialize_with = "equalities")]
    pub(crate) selector: Selector,
    #[serde(default)]
    pub(crate) template: Value,
    #[serde(default)]
    pub(crate) min_ready_seconds: i64,
}

/// The older form of a selector: labels alone.
fn equalities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Selector, D::Error> {
    let match_labels = BTreeMap::deserialize(deserializer)?;
    Ok(LabelSelector { match_labels, ..LabelSelector::default() }.selector())
}

/// A selector as it is written, and ready to be asked: it may name thousands of values, and is asked for each object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selecting {
    pub(crate) written: LabelSelector,
    pub(crate) selector: Selector,
}

impl<'de> Deserialize<'de> for Selecting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = LabelSelector::deserialize(deserializer)?;
        Ok(Self { selector: written.selector(), written })
    }
}

#[derive(Deserialize)]
pub(crate) struct Namespace {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: NamespaceSpec,
    #[serde(default)]
    pub(crate) status: NamespaceStatus,
}
projection!(Namespace, resources::NAMESPACES);

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamespaceSpec {
    pub(crate) finalizers: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NamespaceStatus {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) phase: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Deserialize)]
pub(crate) struct ServiceAccount {
    pub(crate) metadata: ObjectMeta,
}
projection!(ServiceAccount, resources::SERVICE_ACCOUNTS);

/// An Event, as far as its age goes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) last_timestamp: Option<Time>,
    #[serde(default)]
    pub(crate) event_time: Option<MicroTime>,
    #[serde(default)]
    pub(crate) series: Option<EventSeries>,
}
projection!(Event, resources::EVENTS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventSeries {
    #[serde(default)]
    pub(crate) last_observed_time: Option<MicroTime>,
}
