//! The types of `io.k8s.api.apps.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CONTROLLER_REVISION: Type = Type {
    name: "io.k8s.api.apps.v1.ControllerRevision",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("data", Any).required().at(&[2]).always(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("revision", Int64).at(&[3]).always(),
    ],
    wire: &[3, 1, 4],
};

pub(super) static DAEMON_SET: Type = Type {
    name: "io.k8s.api.apps.v1.DaemonSet",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apps_v1::DAEMON_SET_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::apps_v1::DAEMON_SET_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static DAEMON_SET_CONDITION: Type = Type {
    name: "io.k8s.api.apps.v1.DaemonSetCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
        field("type", String).at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static DAEMON_SET_SPEC: Type = Type {
    name: "io.k8s.api.apps.v1.DaemonSetSpec",
    atomic: false,
    fields: &[
        field("minReadySeconds", Int32).omitted().at(&[4]).always(),
        field("revisionHistoryLimit", Int32).at(&[6]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).required().at(&[1]),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).zero().required().at(&[2]).always(),
        field("updateStrategy", Object(&super::apps_v1::DAEMON_SET_UPDATE_STRATEGY)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4, 0, 1],
};

pub(super) static DAEMON_SET_STATUS: Type = Type {
    name: "io.k8s.api.apps.v1.DaemonSetStatus",
    atomic: false,
    fields: &[
        field("collisionCount", Int32).at(&[9]),
        field("conditions", List(&Object(&super::apps_v1::DAEMON_SET_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[10]),
        field("currentNumberScheduled", Int32).zero().required().at(&[1]).always(),
        field("desiredNumberScheduled", Int32).zero().required().at(&[3]).always(),
        field("numberAvailable", Int32).omitted().at(&[7]).always(),
        field("numberMisscheduled", Int32).zero().required().at(&[2]).always(),
        field("numberReady", Int32).zero().required().at(&[4]).always(),
        field("numberUnavailable", Int32).omitted().at(&[8]).always(),
        field("observedGeneration", Int64).omitted().at(&[5]).always(),
        field("updatedNumberScheduled", Int32).omitted().at(&[6]).always(),
    ],
    wire: &[2, 5, 3, 6, 8, 9, 4, 7, 0, 1],
};

pub(super) static DAEMON_SET_UPDATE_STRATEGY: Type = Type {
    name: "io.k8s.api.apps.v1.DaemonSetUpdateStrategy",
    atomic: false,
    fields: &[
        field("rollingUpdate", Object(&super::apps_v1::ROLLING_UPDATE_DAEMON_SET)).at(&[2]),
        field("type", String).omitted().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static DEPLOYMENT: Type = Type {
    name: "io.k8s.api.apps.v1.Deployment",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apps_v1::DEPLOYMENT_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::apps_v1::DEPLOYMENT_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static DEPLOYMENT_CONDITION: Type = Type {
    name: "io.k8s.api.apps.v1.DeploymentCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[7]).always(),
        field("lastUpdateTime", Time).at(&[6]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
        field("type", String).at(&[1]).always(),
    ],
    wire: &[5, 4, 3, 2, 1, 0],
};

pub(super) static DEPLOYMENT_SPEC: Type = Type {
    name: "io.k8s.api.apps.v1.DeploymentSpec",
    atomic: false,
    fields: &[
        field("minReadySeconds", Int32).omitted().at(&[5]).always(),
        field("paused", Boolean).omitted().at(&[7]).always(),
        field("progressDeadlineSeconds", Int32).at(&[9]),
        field("replicas", Int32).at(&[1]),
        field("revisionHistoryLimit", Int32).at(&[6]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).required().at(&[2]),
        field("strategy", Object(&super::apps_v1::DEPLOYMENT_STRATEGY))
            .zero()
            .merged(&Merge { apply: Apply::Deep, patch: Patch::Deep, retain_keys: true })
            .at(&[4])
            .always(),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).zero().required().at(&[3]).always(),
    ],
    wire: &[3, 5, 7, 6, 0, 4, 1, 2],
};

pub(super) static DEPLOYMENT_STATUS: Type = Type {
    name: "io.k8s.api.apps.v1.DeploymentStatus",
    atomic: false,
    fields: &[
        field("availableReplicas", Int32).omitted().at(&[4]).always(),
        field("collisionCount", Int32).at(&[8]),
        field("conditions", List(&Object(&super::apps_v1::DEPLOYMENT_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[6]),
        field("observedGeneration", Int64).omitted().at(&[1]).always(),
        field("readyReplicas", Int32).omitted().at(&[7]).always(),
        field("replicas", Int32).omitted().at(&[2]).always(),
        field("terminatingReplicas", Int32).at(&[9]),
        field("unavailableReplicas", Int32).omitted().at(&[5]).always(),
        field("updatedReplicas", Int32).omitted().at(&[3]).always(),
    ],
    wire: &[3, 5, 8, 0, 7, 2, 4, 1, 6],
};

pub(super) static DEPLOYMENT_STRATEGY: Type = Type {
    name: "io.k8s.api.apps.v1.DeploymentStrategy",
    atomic: false,
    fields: &[
        field("rollingUpdate", Object(&super::apps_v1::ROLLING_UPDATE_DEPLOYMENT)).at(&[2]),
        field("type", String).omitted().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static REPLICA_SET: Type = Type {
    name: "io.k8s.api.apps.v1.ReplicaSet",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apps_v1::REPLICA_SET_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::apps_v1::REPLICA_SET_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static REPLICA_SET_CONDITION: Type = Type {
    name: "io.k8s.api.apps.v1.ReplicaSetCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
        field("type", String).at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static REPLICA_SET_SPEC: Type = Type {
    name: "io.k8s.api.apps.v1.ReplicaSetSpec",
    atomic: false,
    fields: &[
        field("minReadySeconds", Int32).omitted().at(&[4]).always(),
        field("replicas", Int32).at(&[1]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).required().at(&[2]),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).zero().at(&[3]).always(),
    ],
    wire: &[1, 2, 3, 0],
};

pub(super) static REPLICA_SET_STATUS: Type = Type {
    name: "io.k8s.api.apps.v1.ReplicaSetStatus",
    atomic: false,
    fields: &[
        field("availableReplicas", Int32).omitted().at(&[5]).always(),
        field("conditions", List(&Object(&super::apps_v1::REPLICA_SET_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[6]),
        field("fullyLabeledReplicas", Int32).omitted().at(&[2]).always(),
        field("observedGeneration", Int64).omitted().at(&[3]).always(),
        field("readyReplicas", Int32).omitted().at(&[4]).always(),
        field("replicas", Int32).zero().required().at(&[1]).always(),
        field("terminatingReplicas", Int32).at(&[7]),
    ],
    wire: &[5, 2, 3, 4, 0, 1, 6],
};

pub(super) static ROLLING_UPDATE_DAEMON_SET: Type = Type {
    name: "io.k8s.api.apps.v1.RollingUpdateDaemonSet",
    atomic: false,
    fields: &[field("maxSurge", IntOrString).at(&[2]), field("maxUnavailable", IntOrString).at(&[1])],
    wire: &[1, 0],
};

pub(super) static ROLLING_UPDATE_DEPLOYMENT: Type = Type {
    name: "io.k8s.api.apps.v1.RollingUpdateDeployment",
    atomic: false,
    fields: &[field("maxSurge", IntOrString).at(&[2]), field("maxUnavailable", IntOrString).at(&[1])],
    wire: &[1, 0],
};

pub(super) static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Type = Type {
    name: "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy",
    atomic: false,
    fields: &[field("maxUnavailable", IntOrString).at(&[2]), field("partition", Int32).at(&[1])],
    wire: &[1, 0],
};

pub(super) static STATEFUL_SET: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSet",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apps_v1::STATEFUL_SET_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::apps_v1::STATEFUL_SET_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static STATEFUL_SET_CONDITION: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSetCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
        field("type", String).at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static STATEFUL_SET_ORDINALS: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSetOrdinals",
    atomic: false,
    fields: &[field("start", Int32).zero().at(&[1]).always()],
    wire: &[0],
};

pub(super) static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
    atomic: false,
    fields: &[
        field("whenDeleted", String).omitted().at(&[1]).always(),
        field("whenScaled", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static STATEFUL_SET_SPEC: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSetSpec",
    atomic: false,
    fields: &[
        field("minReadySeconds", Int32).omitted().at(&[9]).always(),
        field("ordinals", Object(&super::apps_v1::STATEFUL_SET_ORDINALS)).at(&[11]),
        field(
            "persistentVolumeClaimRetentionPolicy",
            Object(&super::apps_v1::STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY),
        )
        .at(&[10]),
        field("podManagementPolicy", String).omitted().at(&[6]).always(),
        field("replicas", Int32).at(&[1]),
        field("revisionHistoryLimit", Int32).at(&[8]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).required().at(&[2]),
        field("serviceName", String).zero().at(&[5]).always(),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).zero().required().at(&[3]).always(),
        field("updateStrategy", Object(&super::apps_v1::STATEFUL_SET_UPDATE_STRATEGY)).zero().at(&[7]).always(),
        field("volumeClaimTemplates", List(&Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM))).at(&[4]),
    ],
    wire: &[4, 6, 8, 10, 7, 3, 9, 5, 0, 2, 1],
};

pub(super) static STATEFUL_SET_STATUS: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSetStatus",
    atomic: false,
    fields: &[
        field("availableReplicas", Int32).zero().at(&[11]).always(),
        field("collisionCount", Int32).at(&[9]),
        field("conditions", List(&Object(&super::apps_v1::STATEFUL_SET_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[10]),
        field("currentReplicas", Int32).omitted().at(&[4]).always(),
        field("currentRevision", String).omitted().at(&[6]).always(),
        field("observedGeneration", Int64).omitted().at(&[1]).always(),
        field("readyReplicas", Int32).omitted().at(&[3]).always(),
        field("replicas", Int32).zero().required().at(&[2]).always(),
        field("updateRevision", String).omitted().at(&[7]).always(),
        field("updatedReplicas", Int32).omitted().at(&[5]).always(),
    ],
    wire: &[5, 7, 6, 3, 9, 4, 8, 1, 2, 0],
};

pub(super) static STATEFUL_SET_UPDATE_STRATEGY: Type = Type {
    name: "io.k8s.api.apps.v1.StatefulSetUpdateStrategy",
    atomic: false,
    fields: &[
        field("rollingUpdate", Object(&super::apps_v1::ROLLING_UPDATE_STATEFUL_SET_STRATEGY)).at(&[2]),
        field("type", String).omitted().at(&[1]).always(),
    ],
    wire: &[1, 0],
};
