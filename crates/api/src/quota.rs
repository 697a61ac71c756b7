//! What quotas count by: the scopes there are, and the fields that scopes and costs depend on. Validation of ResourceQuotas, the
//! charge at admission and the counting loop agree on them.

use crate::volumes::BETA_CLASS;

/// Names from the root of an object down to a field; through a list it leads into each item.
pub type Path = &'static [&'static str];

/// A scope by which a quota counts only some Pods or claims.
#[derive(Clone, Copy, Debug)]
pub struct QuotaScope {
    pub name: &'static str,
    /// May a selector name another operator than `Exists`, and values?
    pub has_values: bool,
    /// What of an object decides whether it is in the scope.
    pub reads: &'static [Path],
}

/// `ResourceQuotaScope` of core/v1.
pub const SCOPES: [QuotaScope; 7] = [
    QuotaScope { name: "Terminating", has_values: false, reads: LIFETIME },
    QuotaScope { name: "NotTerminating", has_values: false, reads: LIFETIME },
    QuotaScope { name: "BestEffort", has_values: false, reads: QUALITY },
    QuotaScope { name: "NotBestEffort", has_values: false, reads: QUALITY },
    QuotaScope { name: "PriorityClass", has_values: true, reads: &[&["spec", "priorityClassName"]] },
    QuotaScope { name: "CrossNamespacePodAffinity", has_values: false, reads: &[&["spec", "affinity"]] },
    QuotaScope {
        name: "VolumeAttributesClass",
        has_values: true,
        reads: &[
            &["spec", "volumeAttributesClassName"],
            &["status", "currentVolumeAttributesClassName"],
            &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
        ],
    },
];

const LIFETIME: &[Path] = &[&["spec", "activeDeadlineSeconds"]];
const QUALITY: &[Path] =
    &[&["spec", "containers", "resources"], &["spec", "initContainers", "resources"], &["spec", "resources"]];

/// What of a Pod, Service, claim of storage or claim of devices decides what it costs.
pub const COST_READS: &[Path] = &[
    &["metadata", "annotations", BETA_CLASS],
    &["metadata", "deletionGracePeriodSeconds"],
    &["metadata", "deletionTimestamp"],
    &["spec", "allocateLoadBalancerNodePorts"],
    &["spec", "containers", "name"],
    &["spec", "containers", "resources"],
    &["spec", "devices"],
    &["spec", "initContainers", "name"],
    &["spec", "initContainers", "resources"],
    &["spec", "initContainers", "restartPolicy"],
    &["spec", "overhead"],
    &["spec", "ports"],
    &["spec", "resources"],
    &["spec", "storageClassName"],
    &["spec", "type"],
    &["status", "allocatedResources"],
    &["status", "conditions", "reason"],
    &["status", "conditions", "type"],
    &["status", "containerStatuses", "allocatedResources"],
    &["status", "containerStatuses", "name"],
    &["status", "containerStatuses", "resources"],
    &["status", "extendedResourceClaimStatus"],
    &["status", "initContainerStatuses", "allocatedResources"],
    &["status", "initContainerStatuses", "name"],
    &["status", "initContainerStatuses", "resources"],
    &["status", "phase"],
];

/// What decides beside that what a claim for devices costs: whether it was made for a Pod that pays for them.
pub const DEVICE_CLAIM_READS: &[Path] =
    &[&["metadata", "annotations", "resource.kubernetes.io/extended-resource-claim"], &["metadata", "ownerReferences"]];
