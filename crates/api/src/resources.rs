//! The address of every built-in resource Corten serves, one constant each.

use corten_meta::Resource;

pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
pub const EVENTS: Resource = Resource::namespaced("", "v1", "Event", "events");
pub const NAMESPACES: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");
pub const NODES: Resource = Resource::cluster("", "v1", "Node", "nodes");
pub const PODS: Resource = Resource::namespaced("", "v1", "Pod", "pods");
pub const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");
pub const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
pub const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "Deployment", "deployments");
pub const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "ReplicaSet", "replicasets");
pub const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
pub const PRIORITY_CLASSES: Resource = Resource::cluster("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses");
pub const CLUSTER_ROLES: Resource = Resource::cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
pub const CLUSTER_ROLE_BINDINGS: Resource =
    Resource::cluster("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
pub const ROLES: Resource = Resource::namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
pub const ROLE_BINDINGS: Resource =
    Resource::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
pub const SUBJECT_ACCESS_REVIEWS: Resource =
    Resource::cluster("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");
pub const SELF_SUBJECT_ACCESS_REVIEWS: Resource =
    Resource::cluster("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews");
pub const SELF_SUBJECT_REVIEWS: Resource =
    Resource::cluster("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews");
/// What every loop last decided about one object: read-only, answered from the loops' journals.
pub const JOURNALS: Resource = Resource::namespaced("corten.dev", "v1", "Journal", "journals");
