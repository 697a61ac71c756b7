//! Says to whom an address of the cluster's Services belongs. Its name is the address, so that no two can have it.

use corten_api::resources::IP_ADDRESSES;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::{read::text, rules};
use serde_json::{Value, json};

use crate::{BuiltIn, Policy, Verb, columns::column};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: IP_ADDRESSES,
    singular: "ipaddress",
    short_names: &["ip"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.networking.v1.IPAddress",
    view_of: None,
    selectable_fields: &["spec.parentRef.name"],
    columns: &[column("ParentRef", "Whose address it is.", |object, _| json!(parent(object)))],
    policy: &IpAddress,
};

struct IpAddress;

/// `services/default/kubernetes`
fn parent(address: &Value) -> String {
    let parent = &address["spec"]["parentRef"];
    if parent.is_null() {
        return "<none>".into();
    }
    let dot = if text(parent, "/group").is_empty() { "" } else { "." };
    let mut shown = format!("{}{dot}{}", text(parent, "/resource"), text(parent, "/group")).to_lowercase();
    for part in ["/namespace", "/name"].map(|it| text(parent, it)).into_iter().filter(|it| !it.is_empty()) {
        shown.push('/');
        shown.push_str(part);
    }
    shown
}

impl Policy for IpAddress {
    fn name_violations(&self, name: &str) -> Vec<String> {
        match name.parse::<::core::net::IpAddr>() {
            Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
            Ok(address) if address.to_string() != name => {
                vec![format!("must be in canonical form ({:?})", address.to_string())]
            }
            Ok(_) => Vec::new(),
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |address| {
            let parent = address.at("spec").at("parentRef");
            if !parent.exists() {
                return parent.missing("");
            }
            if !parent.at("group").is_empty() {
                parent.at("group").follows(field::dns1123_subdomain);
            }
            for name in ["resource", "name"].map(|it| parent.at(it)) {
                rules::path_segment(name);
            }
            if !parent.at("namespace").is_empty() {
                parent.at("namespace").follows(field::path_segment);
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |address| {
            rules::immutable(address.at("spec").at("parentRef"), &old["spec"]["parentRef"]);
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}
