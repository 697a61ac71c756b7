//! The addresses behind a Service, in one object: the old form of EndpointSlices.

use corten_api::resources::ENDPOINTS;
use corten_meta::{Violation, address::join_host_port, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{each, fill},
    read::{items, text},
    rules::{self, address},
    warnings,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column, first_few},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: ENDPOINTS,
    singular: "endpoints",
    short_names: &["ep"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.core.v1.Endpoints",
    view_of: None,
    selectable_fields: &[],
    columns: &[column("Endpoints", "Addresses and ports that are ready.", |object, _| json!(endpoints(object))), AGE],
    policy: &Endpoints,
};

struct Endpoints;

/// How many addresses are shown.
const SHOWN: usize = 3;

fn endpoints(endpoints: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(endpoints, "/subsets") {
        let addresses = || items(subset, "/addresses").iter().map(|it| text(it, "/ip"));
        let ports = items(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            all.extend(addresses().map(|it| join_host_port(it, &port["port"])));
        }
    }
    if all.is_empty() && items(endpoints, "/subsets").is_empty() {
        "<none>".into()
    } else {
        first_few(&all, SHOWN, ",")
    }
}

impl Policy for Endpoints {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for subset in each(object, "subsets") {
            for port in each(subset, "ports") {
                fill(port, "protocol", "TCP");
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |endpoints| endpoints.list("subsets").for_each(subset))
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::endpoints(new)
    }

    fn has_generation(&self) -> bool {
        false
    }
}

fn subset(subset: Cursor<'_>) {
    if subset.at("addresses").is_empty() && subset.at("notReadyAddresses").is_empty() {
        subset.missing("must specify `addresses` or `notReadyAddresses`");
    }
    for endpoint in subset.list("addresses").chain(subset.list("notReadyAddresses")) {
        let is_address = address::address(endpoint.at("ip"));
        if !endpoint.at("hostname").is_empty() {
            endpoint.at("hostname").follows(field::dns1123_label);
        }
        if endpoint.at("nodeName").exists() {
            endpoint.at("nodeName").follows(field::dns1123_subdomain);
        }
        if !is_address && endpoint.at("ip").str().parse::<::core::net::IpAddr>().is_err() {
            // ValidateNonSpecialIP cannot read it, either.
            endpoint.at("ip").invalid_as(endpoint.at("ip").str(), "must be a valid IP address");
        }
        address::not_special(endpoint.at("ip"));
    }
    let many = subset.at("ports").items().len() > 1;
    for port in subset.list("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            name.follows(field::dns1123_label);
        } else if many {
            name.missing("");
        }
        port.at("port").int_between(1, 65535);
        rules::required_one_of(port.at("protocol"), &["SCTP", "TCP", "UDP"]);
        if port.at("appProtocol").exists() {
            port.at("appProtocol").follows(field::qualified_name);
        }
    }
}
