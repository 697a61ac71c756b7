//! The fields that Go keeps behind a pointer: there a zero on the wire was meant.

/// Sorted. By name alone: no two kinds disagree about one of these where a zero is allowed at all.
const NAMES: &[&str] = &[
    "activeDeadlineSeconds",
    "allocateLoadBalancerNodePorts",
    "allowPrivilegeEscalation",
    "allowVolumeExpansion",
    "attachRequired",
    "automountServiceAccountToken",
    "backoffLimit",
    "backoffLimitPerIndex",
    "blockOwnerDeletion",
    "completions",
    "controller",
    "defaultMode",
    "deletionGracePeriodSeconds",
    "enableServiceLinks",
    "exitCode",
    "expirationSeconds",
    "failedJobsHistoryLimit",
    "fsGroup",
    "gracePeriodSeconds",
    "hostUsers",
    "immutable",
    "ingressClassName",
    "leaseDurationSeconds",
    "leaseTransitions",
    "manualSelector",
    "maxFailedIndexes",
    "minReplicas",
    "mode",
    "nominalConcurrencyShares",
    "optional",
    "orphanDependents",
    "parallelism",
    "partition",
    "podInfoOnMount",
    "priority",
    "privileged",
    "progressDeadlineSeconds",
    "readOnlyRootFilesystem",
    "ready",
    "replicas",
    "requiresRepublish",
    "restartCount",
    "revisionHistoryLimit",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seLinuxMount",
    "serving",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "started",
    "startingDeadlineSeconds",
    "storageCapacity",
    "storageClassName",
    "successfulJobsHistoryLimit",
    "suspend",
    "terminating",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "ttlSecondsAfterFinished",
];

pub(super) fn keeps(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_names_are_sorted() {
        assert!(super::NAMES.is_sorted());
    }
}
