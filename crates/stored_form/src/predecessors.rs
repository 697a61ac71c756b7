//! Versions that Kubernetes served once and stored objects in, with the version whose types tell what such an object has.
//!
//! Only those stand here whose fields the successor has under the same numbers and names, with the same meaning. (An empty selector
//! of a PodDisruptionBudget meant another thing in policy/v1beta1.)

/// Version, kind, and the version it is read as.
const PREDECESSORS: &[(&str, &[&str], &str)] = &[
    ("apps/v1beta1", &["ControllerRevision", "Deployment", "StatefulSet"], "apps/v1"),
    ("apps/v1beta2", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"], "apps/v1"),
    ("extensions/v1beta1", &["DaemonSet", "Deployment", "ReplicaSet"], "apps/v1"),
    ("extensions/v1beta1", &["NetworkPolicy"], "networking.k8s.io/v1"),
    ("batch/v1beta1", &["CronJob"], "batch/v1"),
    ("certificates.k8s.io/v1alpha1", &["ClusterTrustBundle"], "certificates.k8s.io/v1beta1"),
    ("coordination.k8s.io/v1beta1", &["Lease"], "coordination.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta3", &["FlowSchema"], "flowcontrol.apiserver.k8s.io/v1"),
    ("networking.k8s.io/v1beta1", &["IPAddress", "IngressClass", "ServiceCIDR"], "networking.k8s.io/v1"),
    ("networking.k8s.io/v1alpha1", &["IPAddress", "ServiceCIDR"], "networking.k8s.io/v1"),
    ("node.k8s.io/v1beta1", &["RuntimeClass"], "node.k8s.io/v1"),
    (
        "rbac.authorization.k8s.io/v1beta1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
        "rbac.authorization.k8s.io/v1",
    ),
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"], "scheduling.k8s.io/v1"),
    ("scheduling.k8s.io/v1alpha1", &["PriorityClass"], "scheduling.k8s.io/v1"),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
        "storage.k8s.io/v1",
    ),
    ("storage.k8s.io/v1alpha1", &["CSIStorageCapacity", "VolumeAttachment"], "storage.k8s.io/v1"),
    (
        "admissionregistration.k8s.io/v1beta1",
        &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
        "admissionregistration.k8s.io/v1",
    ),
    ("autoscaling/v2beta2", &["HorizontalPodAutoscaler"], "autoscaling/v2"),
];

/// The version that such an object is read as; `None` where that is its own.
pub(crate) fn successor(api_version: &str, kind: &str) -> Option<&'static str> {
    let found = PREDECESSORS.iter().find(|it| it.0 == api_version && it.1.contains(&kind));
    found.map(|it| it.2)
}
