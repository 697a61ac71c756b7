//! The address of every built-in resource Corten serves, one constant each.

use corten_meta::Resource;

pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
pub const EVENTS: Resource = Resource::namespaced("", "v1", "Event", "events");
pub const NAMESPACES: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");
pub const NODES: Resource = Resource::cluster("", "v1", "Node", "nodes");
pub const PODS: Resource = Resource::namespaced("", "v1", "Pod", "pods");
/// The annotation of a Pod that a node runs from its files: the node has made it, for others to see.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";
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
pub const VERTICAL_POD_AUTOSCALERS: Resource =
    Resource::namespaced("corten.dev", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers");
/// What the nodes and pods use just now; never stored.
pub const NODE_METRICS: Resource = Resource::cluster("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes");
pub const POD_METRICS: Resource = Resource::namespaced("metrics.k8s.io", "v1beta1", "PodMetrics", "pods");
pub const BINDINGS: Resource = Resource::namespaced("", "v1", "Binding", "bindings");
pub const COMPONENT_STATUSES: Resource = Resource::cluster("", "v1", "ComponentStatus", "componentstatuses");
pub const ENDPOINTS: Resource = Resource::namespaced("", "v1", "Endpoints", "endpoints");
pub const LIMIT_RANGES: Resource = Resource::namespaced("", "v1", "LimitRange", "limitranges");
pub const PERSISTENT_VOLUME_CLAIMS: Resource =
    Resource::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub const PERSISTENT_VOLUMES: Resource = Resource::cluster("", "v1", "PersistentVolume", "persistentvolumes");
pub const POD_TEMPLATES: Resource = Resource::namespaced("", "v1", "PodTemplate", "podtemplates");
pub const REPLICATION_CONTROLLERS: Resource =
    Resource::namespaced("", "v1", "ReplicationController", "replicationcontrollers");
pub const RESOURCE_QUOTAS: Resource = Resource::namespaced("", "v1", "ResourceQuota", "resourcequotas");
pub const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");
pub const MUTATING_ADMISSION_POLICIES: Resource =
    Resource::cluster("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies");
pub const MUTATING_ADMISSION_POLICY_BINDINGS: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
);
pub const MUTATING_WEBHOOK_CONFIGURATIONS: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
);
pub const VALIDATING_ADMISSION_POLICIES: Resource =
    Resource::cluster("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
pub const VALIDATING_ADMISSION_POLICY_BINDINGS: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
);
pub const VALIDATING_WEBHOOK_CONFIGURATIONS: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
);
pub const MUTATING_ADMISSION_POLICIES_V1ALPHA1: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1alpha1",
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
);
pub const MUTATING_ADMISSION_POLICY_BINDINGS_V1ALPHA1: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1alpha1",
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
);
pub const MUTATING_ADMISSION_POLICIES_V1BETA1: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1beta1",
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
);
pub const MUTATING_ADMISSION_POLICY_BINDINGS_V1BETA1: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1beta1",
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
);
pub const CUSTOM_RESOURCE_DEFINITIONS: Resource =
    Resource::cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
pub const API_SERVICES: Resource = Resource::cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices");
pub const CONTROLLER_REVISIONS: Resource =
    Resource::namespaced("apps", "v1", "ControllerRevision", "controllerrevisions");
pub const DAEMON_SETS: Resource = Resource::namespaced("apps", "v1", "DaemonSet", "daemonsets");
pub const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");
pub const TOKEN_REVIEWS: Resource = Resource::cluster("authentication.k8s.io", "v1", "TokenReview", "tokenreviews");
pub const LOCAL_SUBJECT_ACCESS_REVIEWS: Resource =
    Resource::namespaced("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews");
pub const SELF_SUBJECT_RULES_REVIEWS: Resource =
    Resource::cluster("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews");
pub const HORIZONTAL_POD_AUTOSCALERS_V1: Resource =
    Resource::namespaced("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
pub const HORIZONTAL_POD_AUTOSCALERS: Resource =
    Resource::namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
pub const CRON_JOBS: Resource = Resource::namespaced("batch", "v1", "CronJob", "cronjobs");
pub const JOBS: Resource = Resource::namespaced("batch", "v1", "Job", "jobs");
pub const CERTIFICATE_SIGNING_REQUESTS: Resource =
    Resource::cluster("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests");
pub const CLUSTER_TRUST_BUNDLES: Resource =
    Resource::cluster("certificates.k8s.io", "v1", "ClusterTrustBundle", "clustertrustbundles");
pub const POD_CERTIFICATE_REQUESTS: Resource =
    Resource::namespaced("certificates.k8s.io", "v1", "PodCertificateRequest", "podcertificaterequests");
pub const CLUSTER_TRUST_BUNDLES_V1BETA1: Resource =
    Resource::cluster("certificates.k8s.io", "v1beta1", "ClusterTrustBundle", "clustertrustbundles");
pub const POD_CERTIFICATE_REQUESTS_V1BETA1: Resource =
    Resource::namespaced("certificates.k8s.io", "v1beta1", "PodCertificateRequest", "podcertificaterequests");
pub const LEASE_CANDIDATES_V1ALPHA2: Resource =
    Resource::namespaced("coordination.k8s.io", "v1alpha2", "LeaseCandidate", "leasecandidates");
pub const LEASE_CANDIDATES: Resource =
    Resource::namespaced("coordination.k8s.io", "v1beta1", "LeaseCandidate", "leasecandidates");
pub const ENDPOINT_SLICES: Resource = Resource::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
pub const EVENTS_V1: Resource = Resource::namespaced("events.k8s.io", "v1", "Event", "events");
pub const FLOW_SCHEMAS: Resource = Resource::cluster("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas");
pub const PRIORITY_LEVEL_CONFIGURATIONS: Resource = Resource::cluster(
    "flowcontrol.apiserver.k8s.io",
    "v1",
    "PriorityLevelConfiguration",
    "prioritylevelconfigurations",
);
pub const STORAGE_VERSIONS: Resource =
    Resource::cluster("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", "storageversions");
pub const INGRESS_CLASSES: Resource = Resource::cluster("networking.k8s.io", "v1", "IngressClass", "ingressclasses");
pub const INGRESSES: Resource = Resource::namespaced("networking.k8s.io", "v1", "Ingress", "ingresses");
pub const IP_ADDRESSES: Resource = Resource::cluster("networking.k8s.io", "v1", "IPAddress", "ipaddresses");
pub const NETWORK_POLICIES: Resource =
    Resource::namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
pub const SERVICE_CIDRS: Resource = Resource::cluster("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs");
pub const RUNTIME_CLASSES: Resource = Resource::cluster("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses");
pub const POD_DISRUPTION_BUDGETS: Resource =
    Resource::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
pub const DEVICE_CLASSES: Resource = Resource::cluster("resource.k8s.io", "v1", "DeviceClass", "deviceclasses");
pub const DEVICE_TAINT_RULES: Resource =
    Resource::cluster("resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules");
pub const RESOURCE_CLAIMS: Resource = Resource::namespaced("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims");
pub const RESOURCE_CLAIM_TEMPLATES: Resource =
    Resource::namespaced("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates");
pub const RESOURCE_SLICES: Resource = Resource::cluster("resource.k8s.io", "v1", "ResourceSlice", "resourceslices");
pub const DEVICE_TAINT_RULES_V1ALPHA3: Resource =
    Resource::cluster("resource.k8s.io", "v1alpha3", "DeviceTaintRule", "devicetaintrules");
pub const RESOURCE_POOL_STATUS_REQUESTS: Resource =
    Resource::cluster("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest", "resourcepoolstatusrequests");
pub const DEVICE_CLASSES_V1BETA1: Resource =
    Resource::cluster("resource.k8s.io", "v1beta1", "DeviceClass", "deviceclasses");
pub const RESOURCE_CLAIMS_V1BETA1: Resource =
    Resource::namespaced("resource.k8s.io", "v1beta1", "ResourceClaim", "resourceclaims");
pub const RESOURCE_CLAIM_TEMPLATES_V1BETA1: Resource =
    Resource::namespaced("resource.k8s.io", "v1beta1", "ResourceClaimTemplate", "resourceclaimtemplates");
pub const RESOURCE_SLICES_V1BETA1: Resource =
    Resource::cluster("resource.k8s.io", "v1beta1", "ResourceSlice", "resourceslices");
pub const DEVICE_CLASSES_V1BETA2: Resource =
    Resource::cluster("resource.k8s.io", "v1beta2", "DeviceClass", "deviceclasses");
pub const DEVICE_TAINT_RULES_V1BETA2: Resource =
    Resource::cluster("resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules");
pub const RESOURCE_CLAIMS_V1BETA2: Resource =
    Resource::namespaced("resource.k8s.io", "v1beta2", "ResourceClaim", "resourceclaims");
pub const RESOURCE_CLAIM_TEMPLATES_V1BETA2: Resource =
    Resource::namespaced("resource.k8s.io", "v1beta2", "ResourceClaimTemplate", "resourceclaimtemplates");
pub const RESOURCE_SLICES_V1BETA2: Resource =
    Resource::cluster("resource.k8s.io", "v1beta2", "ResourceSlice", "resourceslices");
pub const COMPOSITE_POD_GROUPS: Resource =
    Resource::namespaced("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups");
pub const POD_GROUPS_V1ALPHA3: Resource =
    Resource::namespaced("scheduling.k8s.io", "v1alpha3", "PodGroup", "podgroups");
pub const WORKLOADS_V1ALPHA3: Resource = Resource::namespaced("scheduling.k8s.io", "v1alpha3", "Workload", "workloads");
pub const POD_GROUPS: Resource = Resource::namespaced("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups");
pub const WORKLOADS: Resource = Resource::namespaced("scheduling.k8s.io", "v1beta1", "Workload", "workloads");
pub const CSI_DRIVERS: Resource = Resource::cluster("storage.k8s.io", "v1", "CSIDriver", "csidrivers");
pub const CSI_NODES: Resource = Resource::cluster("storage.k8s.io", "v1", "CSINode", "csinodes");
pub const CSI_STORAGE_CAPACITIES: Resource =
    Resource::namespaced("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities");
pub const STORAGE_CLASSES: Resource = Resource::cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses");
pub const VOLUME_ATTACHMENTS: Resource =
    Resource::cluster("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments");
pub const VOLUME_ATTRIBUTES_CLASSES: Resource =
    Resource::cluster("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses");
pub const STORAGE_VERSION_MIGRATIONS: Resource =
    Resource::cluster("storagemigration.k8s.io", "v1", "StorageVersionMigration", "storageversionmigrations");
pub const STORAGE_VERSION_MIGRATIONS_V1BETA1: Resource =
    Resource::cluster("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration", "storageversionmigrations");
