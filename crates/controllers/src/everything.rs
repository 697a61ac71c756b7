//! Every resource whose objects are stored, once each: a kind with several versions stands here in the one that is stored.
//!
//! Who must know of all of them (the garbage collector, the namespace controller) reads it here; a test compares it with
//! the API's own list.

use corten_api::resources::EVENTS;
use corten_meta::Resource;
use corten_reconcile::{Verb, Write};

use crate::Settings;

/// Calls a macro with the resources that live in namespaces.
macro_rules! with_namespaced {
    ($then:ident $($rest:tt)*) => {
        $then! { [
            CONFIG_MAPS CONTROLLER_REVISIONS COMPOSITE_POD_GROUPS CRON_JOBS CSI_STORAGE_CAPACITIES DAEMON_SETS DEPLOYMENTS
            ENDPOINTS ENDPOINT_SLICES HORIZONTAL_POD_AUTOSCALERS INGRESSES JOBS LEASES LEASE_CANDIDATES LIMIT_RANGES
            NETWORK_POLICIES PERSISTENT_VOLUME_CLAIMS PODS POD_CERTIFICATE_REQUESTS_V1BETA1 POD_DISRUPTION_BUDGETS
            POD_GROUPS POD_TEMPLATES REPLICATION_CONTROLLERS REPLICA_SETS RESOURCE_CLAIMS RESOURCE_CLAIM_TEMPLATES
            RESOURCE_QUOTAS ROLES ROLE_BINDINGS SECRETS SERVICES SERVICE_ACCOUNTS STATEFUL_SETS
            VERTICAL_POD_AUTOSCALERS WORKLOADS
        ] $($rest)* }
    };
}

/// Calls a macro with the resources that live in no namespace.
macro_rules! with_cluster_scoped {
    ($then:ident $($rest:tt)*) => {
        $then! { [
            API_SERVICES CERTIFICATE_SIGNING_REQUESTS CLUSTER_ROLES CLUSTER_ROLE_BINDINGS CLUSTER_TRUST_BUNDLES CSI_DRIVERS
            CSI_NODES CUSTOM_RESOURCE_DEFINITIONS DEVICE_CLASSES DEVICE_TAINT_RULES FLOW_SCHEMAS INGRESS_CLASSES
            IP_ADDRESSES MUTATING_ADMISSION_POLICIES MUTATING_ADMISSION_POLICY_BINDINGS MUTATING_WEBHOOK_CONFIGURATIONS
            NAMESPACES NODES PERSISTENT_VOLUMES PRIORITY_CLASSES PRIORITY_LEVEL_CONFIGURATIONS
            RESOURCE_POOL_STATUS_REQUESTS RESOURCE_SLICES RUNTIME_CLASSES SERVICE_CIDRS STORAGE_CLASSES STORAGE_VERSIONS
            STORAGE_VERSION_MIGRATIONS VALIDATING_ADMISSION_POLICIES VALIDATING_ADMISSION_POLICY_BINDINGS
            VALIDATING_WEBHOOK_CONFIGURATIONS VOLUME_ATTACHMENTS VOLUME_ATTRIBUTES_CLASSES
        ] $($rest)* }
    };
}

pub(crate) use {with_cluster_scoped, with_namespaced};

/// The one write that is made to every resource alike.
pub(crate) const fn delete_of(resource: Resource) -> Write {
    Write { verb: Verb::Delete, resource, fields: &[] }
}

/// The kinds that the API server has, or those that are known here. Events are not among what a server is said to have: who is about them
/// names them.
pub(crate) fn kinds_of(settings: &Settings, known: &[Resource]) -> Vec<Resource> {
    match &settings.served {
        None => known.to_vec(),
        Some(served) => served.iter().filter(|it| it.plural != EVENTS.plural).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use corten_api::resources;
    use corten_kinds::KINDS;
    use corten_meta::Resource;

    macro_rules! list {
        ([$($resource:ident)*]) => { [$(resources::$resource),*] };
    }

    #[test]
    fn every_stored_resource_is_listed_once() {
        // Events go with their namespaces, and nothing owns by them.
        let mut listed: Vec<Resource> = vec![resources::EVENTS];
        listed.extend(with_namespaced! { list });
        listed.extend(with_cluster_scoped! { list });
        let mut stored: Vec<Resource> =
            KINDS.iter().filter(|it| it.is_stored()).map(|it| it.resource.clone()).collect();
        listed.sort();
        stored.sort();
        assert_eq!(listed, stored);
    }
}
