//! The types of `io.k8s.api.scheduling.v1alpha3`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static ALL_COMPOSITE_DISRUPTION_MODE: Type =
    Type { name: "io.k8s.api.scheduling.v1alpha3.AllCompositeDisruptionMode", atomic: false, fields: &[], wire: &[] };

pub(super) static ALL_DISRUPTION_MODE: Type =
    Type { name: "io.k8s.api.scheduling.v1alpha3.AllDisruptionMode", atomic: false, fields: &[], wire: &[] };

pub(super) static BASIC_SCHEDULING_POLICY: Type =
    Type { name: "io.k8s.api.scheduling.v1alpha3.BasicSchedulingPolicy", atomic: false, fields: &[], wire: &[] };

pub(super) static COMPOSITE_BASIC_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositeBasicSchedulingPolicy",
    atomic: false,
    fields: &[],
    wire: &[],
};

pub(super) static COMPOSITE_DISRUPTION_MODE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositeDisruptionMode",
    atomic: false,
    fields: &[
        field("all", Object(&super::scheduling_v1alpha3::ALL_COMPOSITE_DISRUPTION_MODE)).at(&[2]),
        field("single", Object(&super::scheduling_v1alpha3::SINGLE_COMPOSITE_DISRUPTION_MODE)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static COMPOSITE_GANG_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositeGangSchedulingPolicy",
    atomic: false,
    fields: &[field("minGroupCount", Int32).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static COMPOSITE_POD_GROUP: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositePodGroup",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static COMPOSITE_POD_GROUP_SCHEDULING_CONSTRAINTS: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositePodGroupSchedulingConstraints",
    atomic: false,
    fields: &[field("topology", List(&Object(&super::scheduling_v1alpha3::TOPOLOGY_CONSTRAINT))).at(&[1])],
    wire: &[0],
};

pub(super) static COMPOSITE_POD_GROUP_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositePodGroupSchedulingPolicy",
    atomic: false,
    fields: &[
        field("basic", Object(&super::scheduling_v1alpha3::COMPOSITE_BASIC_SCHEDULING_POLICY)).at(&[1]),
        field("gang", Object(&super::scheduling_v1alpha3::COMPOSITE_GANG_SCHEDULING_POLICY)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static COMPOSITE_POD_GROUP_SPEC: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositePodGroupSpec",
    atomic: false,
    fields: &[
        field("disruptionMode", Object(&super::scheduling_v1alpha3::COMPOSITE_DISRUPTION_MODE)).at(&[5]),
        field("parentCompositePodGroupName", String).at(&[1]),
        field("preemptionPolicy", String).at(&[8]),
        field("priority", Int32).at(&[7]),
        field("priorityClassName", String).omitted().at(&[6]).always(),
        field("schedulingConstraints", Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_SCHEDULING_CONSTRAINTS))
            .at(&[4]),
        field("schedulingPolicy", Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_SCHEDULING_POLICY))
            .zero()
            .required()
            .at(&[3])
            .always(),
        field("workloadRef", Object(&super::scheduling_v1alpha3::WORKLOAD_REFERENCE))
            .zero()
            .required()
            .at(&[2])
            .always(),
    ],
    wire: &[1, 7, 6, 5, 0, 4, 3, 2],
};

pub(super) static COMPOSITE_POD_GROUP_STATUS: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositePodGroupStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::meta_v1::CONDITION))).at(&[1])],
    wire: &[0],
};

pub(super) static COMPOSITE_POD_GROUP_TEMPLATE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.CompositePodGroupTemplate",
    atomic: false,
    fields: &[
        field("compositePodGroupTemplates", List(&Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_TEMPLATE)))
            .at(&[9]),
        field("disruptionMode", Object(&super::scheduling_v1alpha3::COMPOSITE_DISRUPTION_MODE)).at(&[4]),
        field("name", String).zero().required().at(&[1]).always(),
        field("podGroupTemplates", List(&Object(&super::scheduling_v1alpha3::POD_GROUP_TEMPLATE))).at(&[8]),
        field("preemptionPolicy", String).at(&[7]),
        field("priority", Int32).at(&[6]),
        field("priorityClassName", String).omitted().at(&[5]).always(),
        field("schedulingConstraints", Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_SCHEDULING_CONSTRAINTS))
            .at(&[3]),
        field("schedulingPolicy", Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_SCHEDULING_POLICY))
            .zero()
            .required()
            .at(&[2])
            .always(),
    ],
    wire: &[2, 8, 7, 1, 6, 5, 4, 3, 0],
};

pub(super) static DISRUPTION_MODE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.DisruptionMode",
    atomic: false,
    fields: &[
        field("all", Object(&super::scheduling_v1alpha3::ALL_DISRUPTION_MODE)).at(&[2]),
        field("single", Object(&super::scheduling_v1alpha3::SINGLE_DISRUPTION_MODE)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static GANG_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.GangSchedulingPolicy",
    atomic: false,
    fields: &[field("minCount", Int32).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static POD_GROUP: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroup",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::scheduling_v1alpha3::POD_GROUP_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::scheduling_v1alpha3::POD_GROUP_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static POD_GROUP_RESOURCE_CLAIM: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupResourceClaim",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("resourceClaimName", String).at(&[2]),
        field("resourceClaimTemplateName", String).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static POD_GROUP_RESOURCE_CLAIM_STATUS: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupResourceClaimStatus",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always(), field("resourceClaimName", String).at(&[2])],
    wire: &[0, 1],
};

pub(super) static POD_GROUP_SCHEDULING_CONSTRAINTS: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupSchedulingConstraints",
    atomic: false,
    fields: &[field("topology", List(&Object(&super::scheduling_v1alpha3::TOPOLOGY_CONSTRAINT))).at(&[1])],
    wire: &[0],
};

pub(super) static POD_GROUP_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupSchedulingPolicy",
    atomic: false,
    fields: &[
        field("basic", Object(&super::scheduling_v1alpha3::BASIC_SCHEDULING_POLICY)).at(&[1]),
        field("gang", Object(&super::scheduling_v1alpha3::GANG_SCHEDULING_POLICY)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static POD_GROUP_SPEC: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupSpec",
    atomic: false,
    fields: &[
        field("disruptionMode", Object(&super::scheduling_v1alpha3::DISRUPTION_MODE)).at(&[6]),
        field("parentCompositePodGroupName", String).at(&[1]),
        field("preemptionPolicy", String).at(&[9]),
        field("priority", Int32).at(&[8]),
        field("priorityClassName", String).omitted().at(&[7]).always(),
        field("resourceClaims", List(&Object(&super::scheduling_v1alpha3::POD_GROUP_RESOURCE_CLAIM))).at(&[5]),
        field("schedulingConstraints", Object(&super::scheduling_v1alpha3::POD_GROUP_SCHEDULING_CONSTRAINTS)).at(&[4]),
        field("schedulingPolicy", Object(&super::scheduling_v1alpha3::POD_GROUP_SCHEDULING_POLICY))
            .zero()
            .required()
            .at(&[3])
            .always(),
        field("workloadRef", Object(&super::scheduling_v1alpha3::WORKLOAD_REFERENCE)).at(&[2]),
    ],
    wire: &[1, 8, 7, 6, 5, 0, 4, 3, 2],
};

pub(super) static POD_GROUP_STATUS: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION))).at(&[1]),
        field("resourceClaimStatuses", List(&Object(&super::scheduling_v1alpha3::POD_GROUP_RESOURCE_CLAIM_STATUS)))
            .at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static POD_GROUP_TEMPLATE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.PodGroupTemplate",
    atomic: false,
    fields: &[
        field("disruptionMode", Object(&super::scheduling_v1alpha3::DISRUPTION_MODE)).at(&[5]),
        field("name", String).zero().required().at(&[1]).always(),
        field("preemptionPolicy", String).at(&[8]),
        field("priority", Int32).at(&[7]),
        field("priorityClassName", String).omitted().at(&[6]).always(),
        field("resourceClaims", List(&Object(&super::scheduling_v1alpha3::POD_GROUP_RESOURCE_CLAIM))).at(&[4]),
        field("schedulingConstraints", Object(&super::scheduling_v1alpha3::POD_GROUP_SCHEDULING_CONSTRAINTS)).at(&[3]),
        field("schedulingPolicy", Object(&super::scheduling_v1alpha3::POD_GROUP_SCHEDULING_POLICY))
            .zero()
            .required()
            .at(&[2])
            .always(),
    ],
    wire: &[1, 7, 6, 5, 0, 4, 3, 2],
};

pub(super) static SINGLE_COMPOSITE_DISRUPTION_MODE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.SingleCompositeDisruptionMode",
    atomic: false,
    fields: &[],
    wire: &[],
};

pub(super) static SINGLE_DISRUPTION_MODE: Type =
    Type { name: "io.k8s.api.scheduling.v1alpha3.SingleDisruptionMode", atomic: false, fields: &[], wire: &[] };

pub(super) static TOPOLOGY_CONSTRAINT: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.TopologyConstraint",
    atomic: false,
    fields: &[field("key", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.TypedLocalObjectReference",
    atomic: false,
    fields: &[
        field("apiGroup", String).at(&[1]).always(),
        field("kind", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[3]).always(),
    ],
    wire: &[0, 1, 2],
};

pub(super) static WORKLOAD: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.Workload",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::scheduling_v1alpha3::WORKLOAD_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static WORKLOAD_POD_GROUP_ALL_DISRUPTION_MODE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupAllDisruptionMode",
    atomic: false,
    fields: &[],
    wire: &[],
};

pub(super) static WORKLOAD_POD_GROUP_BASIC_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupBasicSchedulingPolicy",
    atomic: false,
    fields: &[],
    wire: &[],
};

pub(super) static WORKLOAD_POD_GROUP_DISRUPTION_MODE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupDisruptionMode",
    atomic: false,
    fields: &[
        field("all", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_ALL_DISRUPTION_MODE)).at(&[2]),
        field("single", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_SINGLE_DISRUPTION_MODE)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static WORKLOAD_POD_GROUP_GANG_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupGangSchedulingPolicy",
    atomic: false,
    fields: &[field("minCount", Int32).at(&[1])],
    wire: &[0],
};

pub(super) static WORKLOAD_POD_GROUP_RESOURCE_CLAIM: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupResourceClaim",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("resourceClaimName", String).at(&[2]),
        field("resourceClaimTemplateName", String).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static WORKLOAD_POD_GROUP_SCHEDULING_CONSTRAINTS: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingConstraints",
    atomic: false,
    fields: &[field("topology", List(&Object(&super::scheduling_v1alpha3::TOPOLOGY_CONSTRAINT))).at(&[1])],
    wire: &[0],
};

pub(super) static WORKLOAD_POD_GROUP_SCHEDULING_POLICY: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy",
    atomic: false,
    fields: &[
        field("basic", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_BASIC_SCHEDULING_POLICY)).at(&[1]),
        field("gang", Object(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_GANG_SCHEDULING_POLICY)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static WORKLOAD_POD_GROUP_SINGLE_DISRUPTION_MODE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSingleDisruptionMode",
    atomic: false,
    fields: &[],
    wire: &[],
};

pub(super) static WORKLOAD_REFERENCE: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadReference",
    atomic: false,
    fields: &[
        field("templateName", String).zero().required().at(&[2]).always(),
        field("workloadName", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static WORKLOAD_SPEC: Type = Type {
    name: "io.k8s.api.scheduling.v1alpha3.WorkloadSpec",
    atomic: false,
    fields: &[
        field("compositePodGroupTemplates", List(&Object(&super::scheduling_v1alpha3::COMPOSITE_POD_GROUP_TEMPLATE)))
            .at(&[3]),
        field("controllerRef", Object(&super::scheduling_v1alpha3::TYPED_LOCAL_OBJECT_REFERENCE)).at(&[1]),
        field("podGroupTemplates", List(&Object(&super::scheduling_v1alpha3::POD_GROUP_TEMPLATE))).at(&[2]),
    ],
    wire: &[1, 2, 0],
};
