//! The types of `io.k8s.api.policy.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static EVICTION: Type = Type {
    name: "io.k8s.api.policy.v1.Eviction",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("deleteOptions", Object(&super::meta_v1::DELETE_OPTIONS)).at(&[2]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 1],
};

pub(super) static POD_DISRUPTION_BUDGET: Type = Type {
    name: "io.k8s.api.policy.v1.PodDisruptionBudget",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::policy_v1::POD_DISRUPTION_BUDGET_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::policy_v1::POD_DISRUPTION_BUDGET_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static POD_DISRUPTION_BUDGET_SPEC: Type = Type {
    name: "io.k8s.api.policy.v1.PodDisruptionBudgetSpec",
    atomic: false,
    fields: &[
        field("maxUnavailable", IntOrString).at(&[3]),
        field("minAvailable", IntOrString).at(&[1]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR))
            .merged(&Merge { apply: Apply::Deep, patch: Replace, retain_keys: false })
            .at(&[2]),
        field("unhealthyPodEvictionPolicy", String).at(&[4]),
    ],
    wire: &[1, 2, 0, 3],
};

pub(super) static POD_DISRUPTION_BUDGET_STATUS: Type = Type {
    name: "io.k8s.api.policy.v1.PodDisruptionBudgetStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[7]),
        field("currentHealthy", Int32).zero().at(&[4]).always(),
        field("desiredHealthy", Int32).zero().at(&[5]).always(),
        field("disruptedPods", Map(&Time)).at(&[2]),
        field("disruptionsAllowed", Int32).zero().at(&[3]).always(),
        field("expectedPods", Int32).zero().at(&[6]).always(),
        field("observedGeneration", Int64).omitted().at(&[1]).always(),
    ],
    wire: &[6, 3, 4, 1, 2, 5, 0],
};
