//! Where a Pod and its node are reached: one address of each family, and the old field is the first of the new one.

use std::collections::BTreeSet;

use corten_schema::Cursor;
use corten_validation::{
    fill::{self, Object, inner, is_absent},
    rules::address,
};
use serde_json::{Value, json};

/// `Convert_v1_PodStatus_To_core_PodStatus`: where both say something else, `podIP` counts.
pub(super) fn agree(pod: &mut Value) {
    let Some(status) = pod.as_object_mut().and_then(|it| inner(it, "status")) else { return };
    let first = first_of(status);
    if is_absent(status, "podIP") {
        if !first.is_empty() {
            status.insert("podIP".into(), first.into());
        }
    } else if fill::text(status, "podIP") != first {
        status.insert("podIPs".into(), json!([{ "ip": status["podIP"] }]));
    }
}

fn first_of(status: &Object) -> String {
    let first = status.get("podIPs").and_then(|it| it.get(0));
    first.and_then(|it| it["ip"].as_str()).unwrap_or_default().to_owned()
}

/// `validatePodIPs`, `validateHostIPs`
pub(super) fn validate(status: Cursor<'_>, old: &Value) {
    one_of_each_family(status.at("podIPs"), &old["podIPs"]);
    let host_ips = status.at("hostIPs");
    if let Some(first) = host_ips.each().next()
        && first.at("ip").str() != status.at("hostIP").str()
    {
        first.at("ip").invalid("must be equal to `hostIP`");
    }
    one_of_each_family(host_ips, &old["hostIPs"]);
}

fn one_of_each_family(all: Cursor<'_>, old: &Value) {
    const EACH_FAMILY: &str = "may specify no more than one IP for each IP family";
    if all.items().len() > 2 {
        return all.invalid(EACH_FAMILY);
    }
    let before = |it: Cursor<'_>| old.as_array().into_iter().flatten().any(|old| old["ip"] == *it.value());
    let mut seen = BTreeSet::new();
    for entry in all.each() {
        let ip = entry.at("ip");
        // What older servers took can stay.
        if !before(ip) {
            address::address(entry.instead(ip));
        }
        if !seen.insert(ip.str()) {
            entry.duplicate();
        }
    }
    let mut families = all.each().map(|it| address::is_v6(it.at("ip").str()));
    if all.items().len() > 1 && families.next() == families.next() {
        all.invalid(EACH_FAMILY);
    }
}
