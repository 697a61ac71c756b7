//! The types of `io.k8s.api.flowcontrol.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static EXEMPT_PRIORITY_LEVEL_CONFIGURATION: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration",
    atomic: false,
    fields: &[field("lendablePercent", Int32).at(&[2]), field("nominalConcurrencyShares", Int32).at(&[1])],
    wire: &[1, 0],
};

pub(super) static FLOW_DISTINGUISHER_METHOD: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.FlowDistinguisherMethod",
    atomic: false,
    fields: &[field("type", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static FLOW_SCHEMA: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.FlowSchema",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::flowcontrol_v1::FLOW_SCHEMA_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::flowcontrol_v1::FLOW_SCHEMA_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static FLOW_SCHEMA_CONDITION: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.FlowSchemaCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static FLOW_SCHEMA_SPEC: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.FlowSchemaSpec",
    atomic: false,
    fields: &[
        field("distinguisherMethod", Object(&super::flowcontrol_v1::FLOW_DISTINGUISHER_METHOD)).at(&[3]),
        field("matchingPrecedence", Int32).zero().at(&[2]).always(),
        field("priorityLevelConfiguration", Object(&super::flowcontrol_v1::PRIORITY_LEVEL_CONFIGURATION_REFERENCE))
            .zero()
            .required()
            .at(&[1])
            .always(),
        field("rules", List(&Object(&super::flowcontrol_v1::POLICY_RULES_WITH_SUBJECTS))).at(&[4]),
    ],
    wire: &[2, 1, 0, 3],
};

pub(super) static FLOW_SCHEMA_STATUS: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.FlowSchemaStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::flowcontrol_v1::FLOW_SCHEMA_CONDITION)))
        .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
        .at(&[1])],
    wire: &[0],
};

pub(super) static GROUP_SUBJECT: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.GroupSubject",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static LIMIT_RESPONSE: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.LimitResponse",
    atomic: false,
    fields: &[
        field("queuing", Object(&super::flowcontrol_v1::QUEUING_CONFIGURATION)).at(&[2]),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static LIMITED_PRIORITY_LEVEL_CONFIGURATION: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration",
    atomic: false,
    fields: &[
        field("borrowingLimitPercent", Int32).at(&[4]),
        field("lendablePercent", Int32).at(&[3]),
        field("limitResponse", Object(&super::flowcontrol_v1::LIMIT_RESPONSE)).zero().required().at(&[2]).always(),
        field("nominalConcurrencyShares", Int32).at(&[1]),
    ],
    wire: &[3, 2, 1, 0],
};

pub(super) static NON_RESOURCE_POLICY_RULE: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.NonResourcePolicyRule",
    atomic: false,
    fields: &[
        field("nonResourceURLs", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[6]),
        field("verbs", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static POLICY_RULES_WITH_SUBJECTS: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.PolicyRulesWithSubjects",
    atomic: false,
    fields: &[
        field("nonResourceRules", List(&Object(&super::flowcontrol_v1::NON_RESOURCE_POLICY_RULE))).at(&[3]),
        field("resourceRules", List(&Object(&super::flowcontrol_v1::RESOURCE_POLICY_RULE))).at(&[2]),
        field("subjects", List(&Object(&super::flowcontrol_v1::SUBJECT))).required().at(&[1]),
    ],
    wire: &[2, 1, 0],
};

pub(super) static PRIORITY_LEVEL_CONFIGURATION: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::flowcontrol_v1::PRIORITY_LEVEL_CONFIGURATION_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::flowcontrol_v1::PRIORITY_LEVEL_CONFIGURATION_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static PRIORITY_LEVEL_CONFIGURATION_CONDITION: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static PRIORITY_LEVEL_CONFIGURATION_REFERENCE: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationReference",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static PRIORITY_LEVEL_CONFIGURATION_SPEC: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec",
    atomic: false,
    fields: &[
        field("exempt", Object(&super::flowcontrol_v1::EXEMPT_PRIORITY_LEVEL_CONFIGURATION)).at(&[3]),
        field("limited", Object(&super::flowcontrol_v1::LIMITED_PRIORITY_LEVEL_CONFIGURATION)).at(&[2]),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static PRIORITY_LEVEL_CONFIGURATION_STATUS: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::flowcontrol_v1::PRIORITY_LEVEL_CONFIGURATION_CONDITION)))
        .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
        .at(&[1])],
    wire: &[0],
};

pub(super) static QUEUING_CONFIGURATION: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.QueuingConfiguration",
    atomic: false,
    fields: &[
        field("handSize", Int32).zero().at(&[2]).always(),
        field("queueLengthLimit", Int32).zero().at(&[3]).always(),
        field("queues", Int32).zero().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static RESOURCE_POLICY_RULE: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.ResourcePolicyRule",
    atomic: false,
    fields: &[
        field("apiGroups", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[2]),
        field("clusterScope", Boolean).omitted().at(&[4]).always(),
        field("namespaces", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[5]),
        field("resources", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[3]),
        field("verbs", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[1]),
    ],
    wire: &[4, 0, 3, 1, 2],
};

pub(super) static SERVICE_ACCOUNT_SUBJECT: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.ServiceAccountSubject",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[2]).always(),
        field("namespace", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static SUBJECT: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.Subject",
    atomic: false,
    fields: &[
        field("group", Object(&super::flowcontrol_v1::GROUP_SUBJECT)).at(&[3]),
        field("kind", String).zero().required().at(&[1]).always(),
        field("serviceAccount", Object(&super::flowcontrol_v1::SERVICE_ACCOUNT_SUBJECT)).at(&[4]),
        field("user", Object(&super::flowcontrol_v1::USER_SUBJECT)).at(&[2]),
    ],
    wire: &[1, 3, 0, 2],
};

pub(super) static USER_SUBJECT: Type = Type {
    name: "io.k8s.api.flowcontrol.v1.UserSubject",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};
