//! Some of the addresses behind a Service, few enough that a change of one is a small write.

use std::collections::BTreeSet;

use corten_api::resources::ENDPOINT_SLICES;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{each, fill_pointer},
    labels,
    read::{items, text},
    rules::{self, address},
    warnings,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Verb,
    columns::{AGE, column, first_few},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: ENDPOINT_SLICES,
    singular: "endpointslice",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.discovery.v1.EndpointSlice",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("AddressType", "What its addresses are.", |object, _| json!(text(object, "/addressType"))),
        column("Ports", "The ports of every address.", |object, _| json!(ports(object))),
        column("Endpoints", "The addresses.", |object, _| json!(endpoints(object))),
        AGE,
    ],
    policy: &EndpointSlice,
};

struct EndpointSlice;

/// How many ports and addresses are shown.
const SHOWN: usize = 3;
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 100;
const TOPOLOGY_MAX: usize = 16;
const HINTS_MAX: usize = 8;

fn ports(slice: &Value) -> String {
    let port = |it: &Value| match (&it["port"], it["name"].as_str()) {
        (Value::Null, Some(name)) => name.to_owned(),
        (Value::Null, None) => "*".to_owned(),
        (port, _) => port.to_string(),
    };
    few(items(slice, "/ports").iter().map(port).collect())
}

fn endpoints(slice: &Value) -> String {
    let addresses = items(slice, "/endpoints").iter().flat_map(|it| items(it, "/addresses"));
    few(addresses.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn few(all: Vec<String>) -> String {
    let text = first_few(&all, SHOWN, ",");
    if text.is_empty() { "<unset>".into() } else { text }
}

impl Policy for EndpointSlice {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for port in each(object, "ports") {
            if port.get("name").is_none_or(Value::is_null) {
                port.insert("name".into(), "".into());
            }
            fill_pointer(port, "protocol", "TCP");
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |slice| {
            let kind = slice.at("addressType");
            rules::required_one_of(kind, &["FQDN", "IPv4", "IPv6"]);
            if slice.at("endpoints").at_most(ENDPOINTS_MAX) {
                slice.list("endpoints").for_each(|it| endpoint(it, kind.str()));
            }
            if slice.at("ports").at_most(PORTS_MAX) {
                slice_ports(slice.at("ports"));
            }
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        warnings::endpoint_slice(new, old)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |slice| rules::immutable(slice.at("addressType"), &old["addressType"]))
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }

    fn counted_metadata(&self) -> &'static [&'static str] {
        &["labels"]
    }
}

fn endpoint(endpoint: Cursor<'_>, kind: &str) {
    let addresses = endpoint.at("addresses");
    if addresses.is_empty() {
        addresses.missing("must contain at least 1 address");
    }
    addresses.at_most(ADDRESSES_MAX);
    for it in addresses.each() {
        match kind {
            "IPv4" | "IPv6" => {
                let family = format!("must be an {kind} address");
                if address::address(it) && address::is_v6(it.str()) != (kind == "IPv6") {
                    it.invalid(&family);
                } else {
                    address::not_special(it);
                }
            }
            "FQDN" => domain(it),
            _ => {}
        }
    }
    if endpoint.at("nodeName").exists() {
        endpoint.at("nodeName").follows(field::dns1123_subdomain);
    }
    let topology = endpoint.at("deprecatedTopology");
    let many = topology.entries().count();
    if many > TOPOLOGY_MAX {
        topology.report(Violation::too_many(topology.path(), many, TOPOLOGY_MAX));
    }
    labels::labels(topology);
    if topology.key("kubernetes.io/hostname").exists() {
        topology.key("kubernetes.io/hostname").invalid("can not be used together with nodeName");
    }
    if endpoint.at("hostname").exists() {
        endpoint.at("hostname").follows(field::dns1123_label);
    }
    hints(endpoint.at("hints"));
}

fn hints(hints: Cursor<'_>) {
    for name_of in ["forZones", "forNodes"] {
        let list = hints.at(name_of);
        list.at_most(HINTS_MAX);
        let mut seen = BTreeSet::new();
        for name in list.each().map(|it| it.at("name")) {
            if seen.contains(name.str()) {
                name.duplicate();
            }
            seen.insert(name.str());
            match name_of {
                "forZones" => name.follows(field::label_value),
                _ => name.follows(field::dns1123_subdomain),
            }
        }
    }
}

/// A name of DNS with at least two parts.
fn domain(name: Cursor<'_>) {
    if name.is_empty() {
        return name.missing("");
    }
    let bare = name.str().strip_suffix('.').unwrap_or(name.str());
    let reasons = field::dns1123_subdomain(bare);
    if reasons.is_empty() && !bare.contains('.') {
        name.invalid("should be a domain with at least two segments separated by dots");
    }
    name.invalid_all(reasons);
}

fn slice_ports(ports: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for port in ports.each() {
        let name = port.at("name");
        if !name.is_empty() {
            name.follows(field::dns1123_label);
        }
        if seen.contains(name.str()) {
            name.duplicate();
        }
        seen.insert(name.str());
        // `validatePorts` of discovery: the number itself has no bounds.
        port.at("protocol").one_of(&["SCTP", "TCP", "UDP"]);
        if port.at("appProtocol").exists() {
            port.at("appProtocol").follows(field::qualified_name);
        }
    }
}
