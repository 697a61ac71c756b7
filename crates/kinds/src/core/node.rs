//! A machine that runs Pods.

use std::collections::BTreeSet;

use corten_api::resources::NODES;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, inner, is_absent},
    read::{items, text},
    rules::address,
    warnings,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column, or_none, wide},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: NODES,
    singular: "node",
    short_names: &["no"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Proxy, Subresource::Status],
    schema: "io.k8s.api.core.v1.Node",
    view_of: None,
    selectable_fields: &["spec.unschedulable"],
    columns: &[
        column("Status", "Ready or not, and whether it takes new Pods.", |object, _| json!(status(object))),
        column("Roles", "What it is for.", |object, _| json!(roles(object))),
        AGE,
        column("Version", "The version of its kubelet.", |object, _| {
            json!(text(object, "/status/nodeInfo/kubeletVersion"))
        }),
        wide("Internal-IP", "Its address in the cluster.", |object, _| json!(address(object, "InternalIP"))),
        wide("External-IP", "Its address for the world.", |object, _| json!(address(object, "ExternalIP"))),
        wide("OS-Image", "Its operating system.", |object, _| json!(info(object, "/status/nodeInfo/osImage"))),
        wide("Kernel-Version", "The version of its kernel.", |object, _| {
            json!(info(object, "/status/nodeInfo/kernelVersion"))
        }),
        wide("Container-Runtime", "What runs its containers.", |object, _| {
            json!(info(object, "/status/nodeInfo/containerRuntimeVersion"))
        }),
    ],
    policy: &Node,
};

struct Node;

fn status(node: &Value) -> String {
    let ready = items(node, "/status/conditions").iter().find(|it| it["type"] == "Ready");
    let mut status = match ready {
        None => "Unknown".to_owned(),
        Some(it) if it["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|it| !it.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    or_none(&roles.join(",")).to_owned()
}

fn address<'v>(node: &'v Value, kind: &str) -> &'v str {
    let found = items(node, "/status/addresses").iter().find(|it| it["type"] == kind);
    or_none(found.and_then(|it| it["address"].as_str()).unwrap_or_default())
}

fn info<'v>(node: &'v Value, pointer: &str) -> &'v str {
    match text(node, pointer) {
        "" => "<unknown>",
        known => known,
    }
}

impl Policy for Node {
    fn default(&self, object: &mut Value) {
        same_ranges(object);
        let Some(status) = object.as_object_mut().and_then(|it| inner(it, "status")) else { return };
        if is_absent(status, "allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable".into(), capacity);
        }
    }

    /// A kubelet registers its node with a status.
    fn prepare_create(&self, _object: &mut Value) {}

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |node| {
            let spec = node.at("spec");
            ranges(spec.at("podCIDRs"));
            taints(node);
            resources(node);
        })
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::node(new)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |node| {
            let spec = node.at("spec");
            // `ValidateNodeUpdate`: taints are looked at once more.
            taints(node);
            let set_once = |field: &'static str, detail: &str| {
                let before = &old["spec"][field];
                if !before.is_null() && before != "" && spec.at(field).value() != before {
                    spec.at(field).forbidden(detail);
                }
            };
            set_once("podCIDR", "node updates may not change podCIDR except from \"\" to valid");
            set_once("podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
            set_once("providerID", "node updates may not change providerID except from \"\" to valid");
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, resources)
    }

    fn has_generation(&self) -> bool {
        false
    }
}

/// `ValidateNodeResources`.
fn resources(node: Cursor<'_>) {
    for resources in ["capacity", "allocatable"] {
        for (_, quantity) in node.at("status").at(resources).entries() {
            if quantity.quantity().is_some_and(corten_meta::Quantity::is_negative) {
                quantity.invalid("must be greater than or equal to 0");
            }
        }
    }
}

/// The old field is the first of the new one.
fn same_ranges(node: &mut Value) {
    let Some(spec) = node.as_object_mut().and_then(|it| inner(it, "spec")) else { return };
    let first = spec.get("podCIDRs").and_then(|it| it.get(0)).cloned();
    match first {
        Some(first) => fill(spec, "podCIDR", first),
        None if !is_absent(spec, "podCIDR") => {
            let one = spec["podCIDR"].clone();
            spec.insert("podCIDRs".into(), json!([one]));
        }
        None => {}
    }
}

fn ranges(ranges: Cursor<'_>) {
    for range in ranges.each() {
        address::range(range);
    }
    let v6 = ranges.each().filter(|it| address::is_v6(it.str())).count();
    match ranges.items().len() {
        0 | 1 => {}
        2 if v6 == 1 => {}
        _ => ranges.invalid("may specify no more than one CIDR for each IP family"),
    }
}

/// `ValidateNode`: the taints of the spec are reported below metadata.
fn taints(node: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for taint in node.at("metadata").at("taints").instead(node.at("spec").at("taints")).each() {
        self::taint(taint);
        let identity = (taint.at("key").str(), taint.at("effect").str());
        if seen.contains(&identity) {
            let message = format!("Duplicate value: {}: taints must be unique by key and effect pair", taint.value());
            taint.report(Violation { path: taint.path(), rule: corten_meta::Rule::Duplicate, message });
        }
        seen.insert(identity);
    }
}

fn taint(taint: Cursor<'_>) {
    taint.at("key").follows(field::qualified_name);
    taint.at("value").follows(field::label_value);
    if taint.at("effect").required() {
        taint.at("effect").one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    }
}
