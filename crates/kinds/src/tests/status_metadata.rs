//! What a write of `status` brings along of metadata, for every kind that has one.

use crate::{KINDS, Subresource, policy::RESET_METADATA};

/// Whose status strategy puts back no more than the spec.
const TAKE_ALL: &[&str] = &[
    "certificatesigningrequests.certificates.k8s.io",
    "cronjobs.batch",
    // It resets metadata to that of the request itself (customresourcedefinition.statusStrategy).
    "customresourcedefinitions.apiextensions.k8s.io",
    "daemonsets.apps",
    "horizontalpodautoscalers.autoscaling",
    "ingresses.networking.k8s.io",
    "jobs.batch",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets.policy",
    "replicasets.apps",
    "replicationcontrollers",
    "resourcequotas",
    "servicecidrs.networking.k8s.io",
    "services",
    "statefulsets.apps",
];
const RESET_ALL: &[&str] = &[
    "apiservices.apiregistration.k8s.io",
    "compositepodgroups.scheduling.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "podcertificaterequests.certificates.k8s.io",
    "podgroups.scheduling.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourcepoolstatusrequests.resource.k8s.io",
    "storageversionmigrations.storagemigration.k8s.io",
    "storageversions.internal.apiserver.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "verticalpodautoscalers.corten.dev",
    "volumeattachments.storage.k8s.io",
];

#[test]
fn a_status_brings_along_of_metadata_what_upstream_takes() {
    for kind in KINDS.iter().filter(|it| it.subresources.contains(&Subresource::Status)) {
        let name = &*kind.resource.qualified();
        let expected: &[&str] = match name {
            "pods" => &["deletionTimestamp", "ownerReferences"],
            "deployments.apps" => &["labels"],
            _ if TAKE_ALL.contains(&name) => &[],
            _ if RESET_ALL.contains(&name) => RESET_METADATA,
            _ => panic!("{name} has a status: say here what a write of it brings along"),
        };
        assert_eq!(kind.policy.status_keeps(), expected, "{name}");
    }
}
