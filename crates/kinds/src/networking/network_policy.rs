//! Which traffic Pods accept and make.

use core::net::IpAddr;
use corten_api::resources::NETWORK_POLICIES;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{each, fill_pointer, made},
    labels::label_selector,
    pod_spec::port_name,
    rules, warnings,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Verb,
    columns::{AGE, column, selector_text},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: NETWORK_POLICIES,
    singular: "networkpolicy",
    short_names: &["netpol"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.networking.v1.NetworkPolicy",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Pod-Selector", "The Pods it is about.", |object, _| {
            json!(selector_text(&object["spec"]["podSelector"]))
        }),
        AGE,
    ],
    policy: &NetworkPolicy,
};

struct NetworkPolicy;

impl Policy for NetworkPolicy {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        for direction in ["ingress", "egress"] {
            for rule in each(spec, direction) {
                each(rule, "ports").for_each(|it| fill_pointer(it, "protocol", "TCP"));
            }
        }
        if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            // `SetDefaults_NetworkPolicy`: a policy that says nothing is about what comes in, and about what goes out if it
            // has rules for that.
            let out = spec.get("egress").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
            spec.insert("policyTypes".into(), if out { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |policy| {
            let spec = policy.at("spec");
            label_selector(spec.at("podSelector"));
            for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
                for rule in spec.list(direction) {
                    rule.list("ports").for_each(port);
                    rule.list(peers).for_each(peer);
                }
            }
            let types = spec.at("policyTypes");
            if types.items().len() > 2 {
                return types.invalid("may not specify more than two policyTypes");
            }
            for one in types.each() {
                one.one_of(&["Ingress", "Egress"]);
            }
        })
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::network_policy(new)
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

fn port(rule: Cursor<'_>) {
    rules::optional_one_of(rule.at("protocol"), &["TCP", "UDP", "SCTP"]);
    let (port, end) = (rule.at("port"), rule.at("endPort"));
    match port.value() {
        Value::Null if end.exists() => end.invalid("may not be specified when `port` is not specified"),
        Value::Number(_) => {
            port_number(port);
            if end.exists() {
                if end.int() < port.int() {
                    // As in `ValidateNetworkPolicyPort`: it is the number of the port that is shown.
                    end.instead(port).invalid("must be greater than or equal to `port`");
                }
                port_number(end);
            }
        }
        Value::String(_) => {
            if end.exists() {
                end.invalid("may not be specified when `port` is non-numeric");
            }
            port.follows(port_name);
        }
        _ => {}
    }
}

fn port_number(port: Cursor<'_>) {
    port.int_between(1, 65535);
}

fn peer(peer: Cursor<'_>) {
    let (pods, namespaces, block) = (peer.at("podSelector"), peer.at("namespaceSelector"), peer.at("ipBlock"));
    label_selector(pods);
    label_selector(namespaces);
    if block.exists() {
        ip_block(block);
        if pods.exists() || namespaces.exists() {
            peer.forbidden("may not specify both ipBlock and another peer");
        }
    } else if !pods.exists() && !namespaces.exists() {
        peer.missing("must specify a peer");
    }
}

fn ip_block(block: Cursor<'_>) {
    let whole = block.at("cidr");
    if !whole.required() || !rules::address::range(whole) {
        return;
    }
    for part in block.list("except") {
        if rules::address::range(part) && !is_strict_part(part.str(), whole.str()) {
            part.invalid("must be a strict subset of `cidr`");
        }
    }
}

/// Both are ranges without bits beyond their prefixes.
fn is_strict_part(part: &str, whole: &str) -> bool {
    let (Some((part, longer)), Some((whole, shorter))) = (range(part), range(whole)) else { return false };
    let bits = |address: IpAddr| match address {
        IpAddr::V4(it) => (32, u128::from(it.to_bits())),
        IpAddr::V6(it) => (128, it.to_bits()),
    };
    let ((width, part), (other_width, whole)) = (bits(part), bits(whole));
    let shift = width - shorter.min(width);
    let cut = |it: u128| it.checked_shr(shift).unwrap_or_default();
    width == other_width && longer > shorter && cut(part) == cut(whole)
}

fn range(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}
