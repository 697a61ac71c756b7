//! What an update of a Service may leave out, and what it may not change.

use std::collections::{BTreeMap, BTreeSet};

use corten_schema::Cursor;
use corten_validation::{
    fill::means_the_same,
    read::{items, text},
};
use serde_json::{Map, Value};

use super::needs;

const ONCE: &str = "may not change once set";

/// Keeps `clusterIP` and `clusterIPs` one, for clients that know only the first.
pub(super) fn complete_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let one = text(new, "/spec/clusterIP").to_owned();
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let all = spec.get("clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(old) = old else {
        if !one.is_empty() && all.is_empty() {
            spec.insert("clusterIPs".into(), Value::Array(vec![one.into()]));
        }
        return;
    };
    let was = text(old, "/spec/clusterIP");
    let before = items(old, "/spec/clusterIPs");
    match (one == was, all == before) {
        // An old client changed the only field it knows.
        (false, true) if one.is_empty() => {
            spec.shift_remove("clusterIPs");
        }
        (false, true) => {
            let rest = all.into_iter().skip(1);
            spec.insert("clusterIPs".into(), std::iter::once(one.into()).chain(rest).collect());
        }
        // A client that does not know the new field left it out.
        (same, false) if all.is_empty() && !one.is_empty() => {
            let all = if same { before.to_vec() } else { vec![one.into()] };
            spec.insert("clusterIPs".into(), all.into());
        }
        _ => {}
    }
}

/// Puts back what the server once gave and a client that never knew of it leaves out.
pub(super) fn patch_allocated(new: &mut Value, old: &Value) {
    let both = |needs: fn(&Value) -> bool, new: &Value| needs(new) && needs(old);
    if both(needs::cluster_ip, new) {
        if text(new, "/spec/clusterIP").is_empty() {
            crate::keep(&mut new["spec"], &old["spec"], "clusterIP");
        }
        if items(new, "/spec/clusterIPs").is_empty() && new["spec"]["clusterIP"] == old["spec"]["clusterIP"] {
            crate::keep(&mut new["spec"], &old["spec"], "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if new["spec"][field].is_null() {
                crate::keep(&mut new["spec"], &old["spec"], field);
            }
        }
    }
    if both(needs::may_have_node_ports, new) {
        patch_node_ports(new, old);
    }
    if both(needs::health_check_port, new) && new["spec"]["healthCheckNodePort"].as_i64().unwrap_or_default() == 0 {
        crate::keep(&mut new["spec"], &old["spec"], "healthCheckNodePort");
    }
}

/// Ports keep their node ports by name.
fn patch_node_ports(new: &mut Value, old: &Value) {
    let number = |it: &Value| it["nodePort"].as_i64().unwrap_or_default();
    let before: BTreeMap<String, i64> =
        items(old, "/spec/ports").iter().map(|it| (text(it, "/name").to_owned(), number(it))).collect();
    let mut used: BTreeSet<i64> = items(new, "/spec/ports").iter().map(number).filter(|it| *it != 0).collect();
    let Some(ports) = new.pointer_mut("/spec/ports").and_then(Value::as_array_mut) else { return };
    for port in ports.iter_mut().filter(|it| number(it) == 0) {
        let Some(had) = before.get(text(port, "/name")).filter(|it| **it != 0 && !used.contains(it)) else { continue };
        port["nodePort"] = (*had).into();
        used.insert(*had);
    }
}

/// A change of type takes with it what only the old type had, as far as the author left that as it was.
pub(super) fn drop_what_the_type_has_not(new: &mut Value, old: &Value) {
    let lost = |needs: fn(&Value) -> bool, new: &Value| needs(old) && !needs(new);
    let mut gone: Vec<&str> = Vec::new();
    if lost(needs::cluster_ip, new) {
        if new["spec"]["clusterIPs"] == old["spec"]["clusterIPs"] || items(new, "/spec/clusterIPs").is_empty() {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        gone.extend(["ipFamilies", "ipFamilyPolicy"]);
    }
    let same_ports = |new: &Value| {
        let numbers =
            |it: &Value| -> Vec<Value> { items(it, "/spec/ports").iter().map(|it| it["nodePort"].clone()).collect() };
        numbers(new) == numbers(old)
    };
    let without_node_ports = lost(needs::may_have_node_ports, new) && same_ports(new);
    if lost(needs::health_check_port, new) {
        gone.push("healthCheckNodePort");
    }
    if lost(needs::external_traffic_policy, new) {
        gone.push("externalTrafficPolicy");
    }
    let is_balancer = |it: &Value| text(it, "/spec/type") == "LoadBalancer";
    if is_balancer(old) && !is_balancer(new) {
        gone.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in gone {
        if spec.get(field) == old["spec"].get(field) {
            spec.shift_remove(field);
        }
    }
    if without_node_ports {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        ports.filter_map(Value::as_object_mut).for_each(|it: &mut Map<String, Value>| {
            it.shift_remove("nodePort");
        });
    }
}

/// Who goes back to one family need not say what becomes of the second address.
pub(super) fn trim_to_one_family(new: &mut Value, old: &Value) {
    if text(new, "/spec/ipFamilyPolicy") != "SingleStack" || text(old, "/spec/ipFamilyPolicy") == "SingleStack" {
        return;
    }
    for field in ["clusterIPs", "ipFamilies"] {
        if new["spec"][field] == old["spec"][field]
            && let Some(list) = new["spec"][field].as_array_mut()
        {
            list.truncate(1);
        }
    }
}

pub(super) fn immutable(service: Cursor<'_>, old: &Value) {
    let spec = service.at("spec");
    let was_balancer = old["spec"]["type"] == "LoadBalancer";
    let class = spec.at("loadBalancerClass");
    let is_external = |it: &Value| it == "ExternalName";
    if !is_external(spec.at("type").value()) && !is_external(&old["spec"]["type"]) {
        if !(needs::is_headless(service.value()) && needs::is_headless(old)) {
            stay(spec, spec.at("clusterIPs"), items(old, "/spec/clusterIPs"), "clusterIP");
        }
        let was_selectorless = needs::is_headless(old) && old["spec"]["selector"].is_null();
        if !(was_selectorless && needs::is_headless(service.value())) {
            stay(spec, spec.at("ipFamilies"), items(old, "/spec/ipFamilies"), "ipFamily");
        }
    }
    if was_balancer
        && spec.at("type").str() == "LoadBalancer"
        && !means_the_same(class.value(), &old["spec"]["loadBalancerClass"])
    {
        class.invalid(ONCE);
    }
}

/// The first stays what it is; a second may come, or go if the policy says so.
fn stay<'v>(spec: Cursor<'v>, new: Cursor<'v>, old: &[Value], what: &str) {
    let at = |idx: usize| format!("{}[{idx}]", new.path());
    let changed = |idx: usize| {
        new.report(corten_meta::Violation::invalid(at(idx), new.value(), ONCE));
    };
    let list = new.items();
    if list.len() == old.len() {
        (0..old.len()).filter(|it| list[*it] != old[*it]).for_each(changed);
        return;
    }
    if list.is_empty() {
        let detail = format!("primary {what} can not be unset");
        return new.report(corten_meta::Violation::invalid(at(0), new.value(), &detail));
    }
    if !old.is_empty() && list[0] != old[0] {
        changed(0);
    }
    if list.len() < old.len() && spec.at("ipFamilyPolicy").str() != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        spec.at("ipFamilyPolicy").invalid(&detail);
    }
}
