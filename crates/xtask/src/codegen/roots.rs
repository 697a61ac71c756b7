//! The types that the walk begins with: every resource of the API. What they refer to is found by itself.

use k8s_openapi::schemars::SchemaGenerator;

macro_rules! roots {
    ($($($module:ident)::+ { $($name:ident),+ $(,)? })+) => {
        /// Makes the generator define every root and all it refers to.
        pub(super) fn define_all(generator: &mut SchemaGenerator) {
            $({
                use k8s_openapi::$($module)::+::{$($name),+};
                $(generator.subschema_for::<$name>();)+
            })+
        }
    };
}

roots! {
    api::admissionregistration::v1 {
        MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
    }
    api::admissionregistration::v1alpha1 {
        MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    }
    api::admissionregistration::v1beta1 {
        MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    }
    api::apiserverinternal::v1alpha1 {
        StorageVersion,
    }
    api::apps::v1 {
        ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
    }
    api::authentication::v1 {
        SelfSubjectReview, TokenRequest, TokenReview,
    }
    api::authorization::v1 {
        LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
    }
    api::autoscaling::v1 {
        HorizontalPodAutoscaler, Scale,
    }
    api::autoscaling::v2 {
        HorizontalPodAutoscaler,
    }
    api::batch::v1 {
        CronJob, Job,
    }
    api::certificates::v1 {
        CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest,
    }
    api::certificates::v1beta1 {
        ClusterTrustBundle, PodCertificateRequest,
    }
    api::coordination::v1 {
        Lease,
    }
    api::coordination::v1alpha2 {
        LeaseCandidate,
    }
    api::coordination::v1beta1 {
        LeaseCandidate,
    }
    api::core::v1 {
        Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume,
        PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service,
        ServiceAccount,
    }
    api::discovery::v1 {
        EndpointSlice,
    }
    api::events::v1 {
        Event,
    }
    api::flowcontrol::v1 {
        FlowSchema, PriorityLevelConfiguration,
    }
    api::lifecycle::v1alpha1 {
        Eviction, EvictionRequest,
    }
    api::networking::v1 {
        IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR,
    }
    api::node::v1 {
        RuntimeClass,
    }
    api::policy::v1 {
        Eviction, PodDisruptionBudget,
    }
    api::rbac::v1 {
        ClusterRole, ClusterRoleBinding, Role, RoleBinding,
    }
    api::resource::v1 {
        DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
    }
    api::resource::v1alpha3 {
        DeviceTaintRule, ResourcePoolStatusRequest,
    }
    api::resource::v1beta1 {
        DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
    }
    api::resource::v1beta2 {
        DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
    }
    api::scheduling::v1 {
        PriorityClass,
    }
    api::scheduling::v1alpha3 {
        CompositePodGroup, PodGroup, Workload,
    }
    api::scheduling::v1beta1 {
        PodGroup, Workload,
    }
    api::storage::v1 {
        CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass,
    }
    api::storagemigration::v1 {
        StorageVersionMigration,
    }
    api::storagemigration::v1beta1 {
        StorageVersionMigration,
    }
    apiextensions_apiserver::pkg::apis::apiextensions::v1 {
        CustomResourceDefinition,
    }
    apimachinery::pkg::apis::meta::v1 {
        APIGroup, APIGroupList, APIResourceList, APIVersions, DeleteOptions, LabelSelector, ObjectMeta, Status,
    }
    kube_aggregator::pkg::apis::apiregistration::v1 {
        APIService,
    }
}
