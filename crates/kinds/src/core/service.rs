//! One name and address for many Pods.

pub mod allocation;
mod cluster_ips;
mod columns;
mod defaults;
mod rules;
mod update;

use corten_api::resources::SERVICES;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::warnings;
use serde_json::{Value, json};

use crate::{BuiltIn, MetadataChecks, Policy, Subresource, Verb};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SERVICES,
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Proxy, Subresource::Status],
    schema: "io.k8s.api.core.v1.Service",
    view_of: None,
    selectable_fields: &["spec.clusterIP", "spec.type"],
    columns: columns::COLUMNS,
    policy: &Service,
};

struct Service;

impl Policy for Service {
    fn default(&self, object: &mut Value) {
        defaults::default(object);
    }

    /// `ipMode` of what a load balancer has.
    fn defaults_status(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"loadBalancer": {}});
        update::complete_cluster_ips(object, None);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        crate::keep(new, old, "status");
        update::complete_cluster_ips(new, Some(old));
        update::patch_allocated(new, old);
        update::drop_what_the_type_has_not(new, old);
        update::trim_to_one_family(new, old);
    }

    /// Its name is a name in DNS, and may begin with a digit (KEP-5311, RelaxedServiceNameValidation).
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::dns1123_label(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |service| {
            rules::service(service);
            rules::of_the_api(service);
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        let kind = new["spec"]["type"].as_str().unwrap_or_default();
        // What a Service of no known type keeps nobody knows.
        let is_known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"].contains(&kind);
        violations(new, |service| {
            if is_known {
                update::immutable(service, old);
            }
        })
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::service(new)
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, rules::status)
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

/// What a Service is, for whoever reads one: validation, and the server that gives it addresses and ports.
pub(crate) mod needs {
    use serde_json::Value;

    use corten_validation::read::text;

    fn type_of(service: &Value) -> &str {
        text(service, "/spec/type")
    }

    /// Does it have addresses (or say by `None` that it wants none)?
    pub(crate) fn cluster_ip(service: &Value) -> bool {
        matches!(type_of(service), "ClusterIP" | "NodePort" | "LoadBalancer")
    }

    pub(crate) fn is_headless(service: &Value) -> bool {
        text(service, "/spec/clusterIP") == "None" || text(service, "/spec/clusterIPs/0") == "None"
    }

    /// Must every port of it have a port on each node?
    pub(crate) fn node_ports(service: &Value) -> bool {
        match type_of(service) {
            "NodePort" => true,
            "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != false,
            _ => false,
        }
    }

    /// May its ports have one?
    pub(crate) fn may_have_node_ports(service: &Value) -> bool {
        matches!(type_of(service), "NodePort" | "LoadBalancer")
    }

    /// The port by which balancers ask a node whether it has a Pod of the Service.
    pub(crate) fn health_check_port(service: &Value) -> bool {
        type_of(service) == "LoadBalancer" && text(service, "/spec/externalTrafficPolicy") == "Local"
    }

    /// Can it be reached from outside?
    pub(crate) fn external_traffic_policy(service: &Value) -> bool {
        match type_of(service) {
            "NodePort" | "LoadBalancer" => true,
            "ClusterIP" => service["spec"]["externalIPs"].as_array().is_some_and(|it| !it.is_empty()),
            _ => false,
        }
    }
}
