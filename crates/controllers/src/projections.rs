//! The fields of objects that controllers read.

mod api_service;
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

use std::collections::BTreeMap;

use corten_api::{resources, snapshots::APP_MANAGED_BY};
use corten_meta::{
    LabelSelector, MicroTime, Named, ObjectMeta, ObjectReference, OwnerReference, Resource, Selector, Time,
};
use corten_reconcile::{Projection, View, Wake, Watch};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub(crate) use api_service::{ApiGroup, ApiService, ApiVersion};
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

macro_rules! projection {
    ($type:ident, $resource:expr) => {
        impl Named for $type {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
        }
        impl Projection for $type {
            const RESOURCE: Resource = $resource;
        }
    };
}
pub(crate) use projection;

/// Any object, as far as its identity, owners and end go. Labels and annotations, most of most objects' metadata, are
/// left out: some controllers hold every object of the cluster this way.
#[derive(Deserialize)]
pub(crate) struct Bare {
    #[serde(deserialize_with = "bare")]
    pub(crate) metadata: ObjectMeta,
}

pub(crate) fn bare<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Fields {
        name: String,
        namespace: String,
        uid: String,
        resource_version: String,
        deletion_timestamp: Option<Time>,
        owner_references: Vec<OwnerReference>,
        finalizers: Vec<String>,
    }
    let fields = Fields::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: fields.name,
        namespace: fields.namespace,
        uid: fields.uid,
        resource_version: fields.resource_version,
        deletion_timestamp: fields.deletion_timestamp,
        owner_references: fields.owner_references,
        finalizers: fields.finalizers,
        ..ObjectMeta::default()
    })
}

/// The same, with the label that says who looks after it.
fn bare_and_managed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = ObjectMeta::deserialize(deserializer)?;
    let labels = meta.labels.into_iter().filter(|it| it.0 == APP_MANAGED_BY).collect();
    Ok(ObjectMeta { labels, annotations: BTreeMap::new(), ..meta })
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

/// A definition, as far as it says which resource its objects are.
#[derive(Deserialize)]
pub(crate) struct Definition {
    #[serde(deserialize_with = "bare_and_managed")]
    pub(crate) metadata: ObjectMeta,
    spec: DefinitionSpec,
    #[serde(default)]
    status: DefinitionStatus,
}
projection!(Definition, resources::CUSTOM_RESOURCE_DEFINITIONS);

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    scope: String,
    versions: Vec<DefinedVersion>,
}

#[derive(Deserialize)]
struct DefinedVersion {
    name: String,
    served: bool,
    storage: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DefinitionStatus {
    conditions: Vec<DefinitionCondition>,
    accepted_names: AcceptedNames,
}

#[derive(Deserialize)]
struct DefinitionCondition {
    r#type: String,
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AcceptedNames {
    plural: String,
    kind: String,
}

/// What a definition says of objects that may be stored.
enum Described {
    /// They are watched.
    Served(Resource),
    /// Its names are accepted, and objects may be made from now on; that it is established is not seen yet, and they are not
    /// watched. That none is seen says nothing.
    NotYet(Resource),
    /// It has no objects.
    Nothing,
}

impl Definition {
    fn holds(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|it| it.r#type == kind && it.status == "True")
    }

    /// What is known of its objects.
    fn described(&self) -> Described {
        match self.resource() {
            Some(it) if self.holds("Established") => Described::Served(it),
            Some(it) if self.holds("NamesAccepted") => Described::NotYet(it),
            _ => Described::Nothing,
        }
    }

    /// The resource of its objects in the version that is stored, where that is served.
    fn resource(&self) -> Option<Resource> {
        let served = || self.spec.versions.iter().filter(|it| it.served);
        let version = served().find(|it| it.storage).or_else(|| served().next())?;
        Some(Resource {
            group: self.spec.group.clone().into(),
            version: version.name.clone().into(),
            kind: self.status.accepted_names.kind.clone().into(),
            plural: self.status.accepted_names.plural.clone().into(),
            namespaced: self.spec.scope == "Namespaced",
        })
    }
}

/// The resources that definitions in the view describe.
pub(crate) fn defined(view: &View) -> impl Iterator<Item = Resource> {
    view.list::<Definition>().filter_map(|it| match it.described() {
        Described::Served(resource) => Some(resource),
        Described::NotYet(_) | Described::Nothing => None,
    })
}

/// The resources of which objects may be stored that are not in the view: who lets something go, or counts, waits for them.
pub(crate) fn not_known_yet(view: &View) -> impl Iterator<Item = Resource> {
    view.list::<Definition>().filter_map(|it| match it.described() {
        Described::NotYet(resource) => Some(resource),
        Described::Served(_) | Described::Nothing => None,
    })
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

/// The condition of all kinds that are few. Deployments use `lastUpdateTime`, jobs `lastProbeTime`, nodes
/// `lastHeartbeatTime`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    pub(crate) r#type: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_probe_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_heartbeat_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_update_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
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

/// What an event about an object points at.
pub(crate) fn reference<T: Projection>(object: &T) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        kind: T::RESOURCE.kind.to_string(),
        api_version: T::RESOURCE.api_version(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(crate) fn is_zero(number: &i64) -> bool {
    *number == 0
}

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

/// A list that stands as `null` is empty.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
