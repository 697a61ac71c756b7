//! The types of `io.k8s.api.batch.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CRON_JOB: Type = Type {
    name: "io.k8s.api.batch.v1.CronJob",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::batch_v1::CRON_JOB_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::batch_v1::CRON_JOB_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static CRON_JOB_SPEC: Type = Type {
    name: "io.k8s.api.batch.v1.CronJobSpec",
    atomic: false,
    fields: &[
        field("concurrencyPolicy", String).omitted().at(&[3]).always(),
        field("failedJobsHistoryLimit", Int32).at(&[7]),
        field("jobTemplate", Object(&super::batch_v1::JOB_TEMPLATE_SPEC)).zero().required().at(&[5]).always(),
        field("schedule", String).zero().required().at(&[1]).always(),
        field("startingDeadlineSeconds", Int64).at(&[2]),
        field("successfulJobsHistoryLimit", Int32).at(&[6]),
        field("suspend", Boolean).at(&[4]),
        field("timeZone", String).at(&[8]),
    ],
    wire: &[3, 4, 0, 6, 2, 5, 1, 7],
};

pub(super) static CRON_JOB_STATUS: Type = Type {
    name: "io.k8s.api.batch.v1.CronJobStatus",
    atomic: false,
    fields: &[
        field("active", List(&Object(&super::core_v1::OBJECT_REFERENCE))).at(&[1]),
        field("lastScheduleTime", Time).at(&[4]),
        field("lastSuccessfulTime", Time).at(&[5]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static JOB: Type = Type {
    name: "io.k8s.api.batch.v1.Job",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::batch_v1::JOB_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::batch_v1::JOB_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static JOB_CONDITION: Type = Type {
    name: "io.k8s.api.batch.v1.JobCondition",
    atomic: false,
    fields: &[
        field("lastProbeTime", Time).at(&[3]).always(),
        field("lastTransitionTime", Time).at(&[4]).always(),
        field("message", String).omitted().at(&[6]).always(),
        field("reason", String).omitted().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 0, 1, 3, 2],
};

pub(super) static JOB_SCHEDULING_CONFIGURATION: Type = Type {
    name: "io.k8s.api.batch.v1.JobSchedulingConfiguration",
    atomic: false,
    fields: &[
        field("disruptionMode", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_DISRUPTION_MODE)).at(&[3]),
        field("resourceClaims", List(&Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_RESOURCE_CLAIM))).at(&[4]),
        field("schedulingConstraints", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_SCHEDULING_CONSTRAINTS))
            .at(&[2]),
        field("schedulingPolicy", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_SCHEDULING_POLICY)).at(&[1]),
    ],
    wire: &[3, 2, 0, 1],
};

pub(super) static JOB_SPEC: Type = Type {
    name: "io.k8s.api.batch.v1.JobSpec",
    atomic: false,
    fields: &[
        field("activeDeadlineSeconds", Int64).at(&[3]),
        field("backoffLimit", Int32).at(&[7]),
        field("backoffLimitPerIndex", Int32).at(&[12]),
        field("completionMode", String).at(&[9]),
        field("completions", Int32).at(&[2]),
        field("managedBy", String).at(&[15]),
        field("manualSelector", Boolean).at(&[5]),
        field("maxFailedIndexes", Int32).at(&[13]),
        field("parallelism", Int32).at(&[1]),
        field("podFailurePolicy", Object(&super::batch_v1::POD_FAILURE_POLICY)).at(&[11]),
        field("podReplacementPolicy", String).at(&[14]),
        field("scheduling", Object(&super::batch_v1::JOB_SCHEDULING_CONFIGURATION)).at(&[17]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[4]),
        field("successPolicy", Object(&super::batch_v1::SUCCESS_POLICY)).at(&[16]),
        field("suspend", Boolean).at(&[10]),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).zero().required().at(&[6]).always(),
        field("ttlSecondsAfterFinished", Int32).at(&[8]),
    ],
    wire: &[8, 4, 0, 12, 6, 15, 1, 16, 3, 14, 9, 2, 7, 10, 5, 13, 11],
};

pub(super) static JOB_STATUS: Type = Type {
    name: "io.k8s.api.batch.v1.JobStatus",
    atomic: false,
    fields: &[
        field("active", Int32).omitted().at(&[4]).always(),
        field("completedIndexes", String).omitted().at(&[7]).always(),
        field("completionTime", Time).at(&[3]),
        field("conditions", List(&Object(&super::batch_v1::JOB_CONDITION)))
            .merged(&Merge { apply: Atomic, patch: ByKey("type"), retain_keys: false })
            .at(&[1]),
        field("failed", Int32).omitted().at(&[6]).always(),
        field("failedIndexes", String).at(&[10]),
        field("ready", Int32).at(&[9]),
        field("startTime", Time).at(&[2]),
        field("succeeded", Int32).omitted().at(&[5]).always(),
        field("terminating", Int32).at(&[11]),
        field("uncountedTerminatedPods", Object(&super::batch_v1::UNCOUNTED_TERMINATED_PODS)).at(&[8]),
    ],
    wire: &[3, 7, 2, 0, 8, 4, 1, 10, 6, 5, 9],
};

pub(super) static JOB_TEMPLATE_SPEC: Type = Type {
    name: "io.k8s.api.batch.v1.JobTemplateSpec",
    atomic: false,
    fields: &[
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().at(&[1]).always(),
        field("spec", Object(&super::batch_v1::JOB_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static POD_FAILURE_POLICY: Type = Type {
    name: "io.k8s.api.batch.v1.PodFailurePolicy",
    atomic: false,
    fields: &[field("rules", List(&Object(&super::batch_v1::POD_FAILURE_POLICY_RULE))).required().at(&[1])],
    wire: &[0],
};

pub(super) static POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Type = Type {
    name: "io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement",
    atomic: false,
    fields: &[
        field("containerName", String).at(&[1]),
        field("operator", String).zero().required().at(&[2]).always(),
        field("values", List(&Int32))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Type = Type {
    name: "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern",
    atomic: false,
    fields: &[
        field("status", String).zero().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static POD_FAILURE_POLICY_RULE: Type = Type {
    name: "io.k8s.api.batch.v1.PodFailurePolicyRule",
    atomic: false,
    fields: &[
        field("action", String).zero().required().at(&[1]).always(),
        field("onExitCodes", Object(&super::batch_v1::POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT)).at(&[2]),
        field("onPodConditions", List(&Object(&super::batch_v1::POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN)))
            .at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static SUCCESS_POLICY: Type = Type {
    name: "io.k8s.api.batch.v1.SuccessPolicy",
    atomic: false,
    fields: &[field("rules", List(&Object(&super::batch_v1::SUCCESS_POLICY_RULE))).required().at(&[1])],
    wire: &[0],
};

pub(super) static SUCCESS_POLICY_RULE: Type = Type {
    name: "io.k8s.api.batch.v1.SuccessPolicyRule",
    atomic: false,
    fields: &[field("succeededCount", Int32).at(&[2]), field("succeededIndexes", String).at(&[1])],
    wire: &[1, 0],
};

pub(super) static UNCOUNTED_TERMINATED_PODS: Type = Type {
    name: "io.k8s.api.batch.v1.UncountedTerminatedPods",
    atomic: false,
    fields: &[
        field("failed", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[2]),
        field("succeeded", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[1]),
    ],
    wire: &[1, 0],
};
