//! What is told of StatefulSets.

use corten_api::resources::STATEFUL_SETS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;
use serde_json::Value;

use crate::family::{Family, Identity, KindMetrics};

static STATEFUL_SETS_AT: Resource = RESOURCE;

pub(crate) static STATEFUL_SETS: KindMetrics<StatefulSet> = KindMetrics {
    resource: &STATEFUL_SETS_AT,
    labels: &["namespace", "statefulset"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSet {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    replicas: Option<i32>,
    pod_management_policy: String,
    update_strategy: UpdateStrategy,
    ordinals: Option<Ordinals>,
    persistent_volume_claim_retention_policy: Option<Retention>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpdateStrategy {
    r#type: String,
    rolling_update: Option<RollingUpdate>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RollingUpdate {
    max_unavailable: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ordinals {
    start: i32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Retention {
    when_deleted: String,
    when_scaled: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    available_replicas: i32,
    current_replicas: i32,
    current_revision: String,
    observed_generation: i64,
    ready_replicas: i32,
    replicas: i32,
    update_revision: String,
    updated_replicas: i32,
}

impl StatefulSet {
    fn wanted(&self) -> i64 {
        self.spec.replicas.map_or(1, i64::from)
    }

    /// How many Pods an update may take away at once; nothing where none does.
    fn max_unavailable(&self) -> Option<i64> {
        let strategy = &self.spec.update_strategy;
        let rule = strategy.rolling_update.as_ref().map(|it| &it.max_unavailable);
        let share = |text: &str| text.strip_suffix('%')?.parse::<i64>().ok();
        let number = match rule {
            Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
            Some(Value::String(text)) => share(text).unwrap_or(0).saturating_mul(self.wanted()) / 100,
            _ => 1,
        };
        (strategy.r#type != "OnDelete").then(|| number.max(1))
    }

    fn unavailable(&self) -> Option<i64> {
        let number = (self.wanted() - i64::from(self.status.available_replicas)).max(0);
        (self.spec.update_strategy.r#type != "OnDelete").then_some(number)
    }
}

/// As kube-controller-manager names it.
const CONTROLLED: Identity<StatefulSet> =
    (&["statefulset_namespace", "statefulset_name", "pod_management_policy"], |it| {
        vec![&it.metadata.namespace, &it.metadata.name, &it.spec.pod_management_policy]
    });

const FAMILIES: &[Family<StatefulSet>] = &[
    Family::gauge("kube_statefulset_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_statefulset_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_statefulset_metadata_generation",
        "Sequence number representing a specific generation of the desired state for the StatefulSet.",
        &[],
        |it, out| out.one(it.metadata.generation),
    ),
    Family::gauge("kube_statefulset_ordinals_start", "Start ordinal of the StatefulSet.", &[], |it, out| {
        out.one(it.spec.ordinals.as_ref().map(|it| it.start))
    }),
    Family::gauge(
        "kube_statefulset_persistentvolumeclaim_retention_policy",
        "Count of retention policy for StatefulSet template PVCs",
        &["when_deleted", "when_scaled"],
        |it, out| {
            if let Some(policy) = &it.spec.persistent_volume_claim_retention_policy {
                out.add(&[&policy.when_deleted, &policy.when_scaled], 1.0);
            }
        },
    ),
    Family::gauge("kube_statefulset_replicas", "Number of desired pods for a StatefulSet.", &[], |it, out| {
        out.one(it.spec.replicas)
    }),
    Family::gauge(
        "kube_statefulset_status_current_revision",
        "Indicates the version of the StatefulSet used to generate Pods in the sequence [0,currentReplicas).",
        &["revision"],
        |it, out| out.add(&[&it.status.current_revision], 1.0),
    ),
    Family::gauge(
        "kube_statefulset_status_observed_generation",
        "The generation observed by the StatefulSet controller.",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge("kube_statefulset_status_replicas", "The number of replicas per StatefulSet.", &[], |it, out| {
        out.one(it.status.replicas)
    }),
    Family::gauge(
        "kube_statefulset_status_replicas_available",
        "The number of available replicas per StatefulSet.",
        &[],
        |it, out| out.one(it.status.available_replicas),
    ),
    Family::gauge(
        "kube_statefulset_status_replicas_current",
        "The number of current replicas per StatefulSet.",
        &[],
        |it, out| out.one(it.status.current_replicas),
    ),
    Family::gauge(
        "kube_statefulset_status_replicas_ready",
        "The number of ready replicas per StatefulSet.",
        &[],
        |it, out| out.one(it.status.ready_replicas),
    ),
    Family::gauge(
        "kube_statefulset_status_replicas_updated",
        "The number of updated replicas per StatefulSet.",
        &[],
        |it, out| out.one(it.status.updated_replicas),
    ),
    Family::gauge(
        "kube_statefulset_status_update_revision",
        "Indicates the version of the StatefulSet used to generate Pods in the sequence [replicas-updatedReplicas,replicas)",
        &["revision"],
        |it, out| out.add(&[&it.status.update_revision], 1.0),
    ),
    Family::gauge(
        "statefulset_controller_statefulset_max_unavailable",
        "Maximum number of unavailable pods allowed during StatefulSet rolling updates",
        &[],
        |it: &StatefulSet, out| out.one(it.max_unavailable()),
    )
    .identified_by(CONTROLLED),
    Family::gauge(
        "statefulset_controller_statefulset_unavailable_replicas",
        "Current number of unavailable pods in StatefulSet",
        &[],
        |it: &StatefulSet, out| out.one(it.unavailable()),
    )
    .identified_by(CONTROLLED),
];
