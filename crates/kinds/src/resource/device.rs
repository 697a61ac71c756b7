//! What a driver offers: the devices and counters of a ResourceSlice.

use std::collections::BTreeMap;

use corten_schema::Cursor;
use corten_validation::{pod_spec::node_selector, rules};

use super::{
    capacity,
    names::{at_most, label, not_longer, qualified},
    request::taint,
};

const DEVICES_MAX: usize = 128;
/// Where devices have taints or consume counters.
const ELABORATE_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const PROPERTIES_MAX: usize = 32;
const TAINTS_MAX: usize = 16;
const CONDITIONS_MAX: usize = 4;
const TEXT_BYTES_MAX: usize = 64;

pub(super) fn validate(spec: Cursor<'_>) {
    let sets = spec.at("sharedCounters");
    for set in sets.each() {
        label(set.at("name"));
        counters(set.at("counters"));
    }
    at_most(sets, COUNTER_SETS_MAX);
    rules::unique_items(sets, |it| it.at("name"));

    let known: BTreeMap<&str, Cursor<'_>> = sets.each().map(|it| (it.at("name").str(), it.at("counters"))).collect();
    let devices = spec.at("devices");
    for device in devices.each() {
        self::device(device, &known, spec.at("perDeviceNodeSelection").bool());
    }
    let elaborate = devices.each().any(|it| !it.at("taints").is_empty() || !it.at("consumesCounters").is_empty());
    at_most(devices, if elaborate { ELABORATE_DEVICES_MAX } else { DEVICES_MAX });
    rules::unique_items(devices, |it| it.at("name"));
}

fn counters(counters: Cursor<'_>) {
    if counters.is_empty() {
        counters.missing("");
    }
    for (name, counter) in counters.entries() {
        corten_meta::field::dns1123_label(name).iter().for_each(|it| counter.invalid_as(name, it));
    }
    let n = counters.map().map_or(0, serde_json::Map::len);
    if n > COUNTERS_MAX {
        counters.report(corten_meta::Violation::too_many(counters.path(), n, COUNTERS_MAX));
    }
}

fn device(device: Cursor<'_>, sets: &BTreeMap<&str, Cursor<'_>>, chooses_nodes: bool) {
    label(device.at("name"));
    let (attributes, capacity) = (device.at("attributes"), device.at("capacity"));
    for (name, attribute) in attributes.entries() {
        qualified(attribute, name);
        value(attribute);
    }
    for (name, amount) in capacity.entries() {
        qualified(amount, name);
        capacity::validate(amount, device.at("allowMultipleAllocations").bool());
    }
    let n = [attributes, capacity].iter().filter_map(|it| it.map()).map(serde_json::Map::len).sum::<usize>();
    if n > PROPERTIES_MAX {
        let detail = format!("the total number of attributes and capacities must not exceed {PROPERTIES_MAX}");
        device.report(corten_meta::Violation::invalid(device.path(), n, &detail));
    }
    device.list("taints").for_each(taint);
    at_most(device.at("taints"), TAINTS_MAX);
    for consumption in device.list("consumesCounters") {
        self::consumption(consumption, sets);
    }
    rules::unique_items(device.at("consumesCounters"), |it| it.at("counterSet"));
    for conditions in ["bindingConditions", "bindingFailureConditions"] {
        at_most(device.at(conditions), CONDITIONS_MAX);
        device.list(conditions).for_each(|it| it.follows(corten_meta::field::qualified_name));
    }
    if chooses_nodes {
        nodes(
            device,
            &["nodeName", "nodeSelector", "allNodes"],
            "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
        );
    } else {
        for name in
            ["nodeName", "nodeSelector", "allNodes"].map(|it| device.at(it)).into_iter().filter(|it| !it.is_empty())
        {
            name.invalid("must not be set unless `perDeviceNodeSelection` is true in the ResourceSlice spec");
        }
    }
}

/// Exactly one of these says which nodes reach the devices.
pub(super) fn nodes(of: Cursor<'_>, fields: &[&'static str], when: &str) {
    let node = of.at("nodeName");
    if !node.is_empty() {
        node.follows(corten_meta::field::dns1123_subdomain);
    } else if node.exists() {
        node.invalid("must be either unset or set to a non-empty string");
    }
    let given: Vec<Cursor<'_>> = fields
        .iter()
        .map(|it| of.at(it))
        .filter(|it| {
            it.exists() && !matches!(it.value().as_bool(), Some(false)) && !(it.value().is_string() && it.is_empty())
        })
        .collect();
    let quoted: Vec<String> = fields.iter().map(|it| format!("`{it}`")).collect();
    let when = if when.is_empty() { String::new() } else { format!(" {when}") };
    let detail = format!("exactly one of {} is required{when}", quoted.join(", "));
    match given.len() {
        0 => of.missing(&detail),
        1 => {}
        _ => {
            let names: Vec<&String> = fields
                .iter()
                .zip(&quoted)
                .filter(|(it, _)| given.iter().any(|given| given.path().ends_with(**it)))
                .map(|(_, it)| it)
                .collect();
            let names = names.into_iter().cloned().collect::<Vec<_>>().join(", ");
            of.invalid_as(&format!("{{{names}}}"), &format!("{detail}, but multiple fields are set"));
        }
    }
    if of.at("nodeSelector").exists() {
        let terms = of.at("nodeSelector").at("nodeSelectorTerms");
        node_selector(of.at("nodeSelector"));
        if terms.items().len() != 1 {
            terms.invalid("must have exactly one node selector term");
        }
    }
}

fn consumption(consumption: Cursor<'_>, sets: &BTreeMap<&str, Cursor<'_>>) {
    let name = consumption.at("counterSet");
    label(name);
    counters(consumption.at("counters"));
    let Some(known) = sets.get(name.str()) else {
        return name.invalid("must reference a counterSet defined in the ResourceSlice sharedCounters");
    };
    for (counter, at) in consumption.at("counters").entries() {
        if known.value().get(counter).is_none() {
            at.invalid_as(counter, "must reference a counter defined in the ResourceSlice sharedCounters");
        }
    }
}

/// One of several types of value, alone or in a list.
fn value(attribute: Cursor<'_>) {
    const FIELDS: [&str; 8] = ["bool", "int", "string", "version", "bools", "ints", "strings", "versions"];
    match FIELDS.iter().filter(|it| attribute.at(it).exists()).count() {
        0 => attribute.invalid_as("", "exactly one value must be specified"),
        1 => {}
        _ => attribute.invalid("exactly one value must be specified"),
    }
    let texts = std::iter::once(attribute.at("string")).chain(attribute.list("strings"));
    texts.for_each(|it| not_longer(it, TEXT_BYTES_MAX));
    let versions = std::iter::once(attribute.at("version")).filter(|it| it.exists()).chain(attribute.list("versions"));
    for version in versions {
        if !is_semantic(version.str()) {
            version.invalid("must be a string compatible with semver.org spec 2.0.0");
        }
        not_longer(version, TEXT_BYTES_MAX);
    }
}

fn is_semantic(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, release) = text.split_once('-').map_or((text, None), |(core, release)| (core, Some(release)));
    let number =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()) && (it == "0" || !it.starts_with('0'));
    let word = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    let release_part = |it: &str| word(it) && (!it.bytes().all(|it| it.is_ascii_digit()) || number(it));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && release.is_none_or(|it| it.split('.').all(release_part))
        && build.is_none_or(|it| it.split('.').all(word))
}

/// `ResourcePool`.
pub(super) fn pool(pool: Cursor<'_>) {
    super::names::pool(pool.at("name"));
    if pool.at("resourceSliceCount").int() <= 0 {
        pool.at("resourceSliceCount").invalid_int("must be greater than zero");
    }
    if pool.at("generation").int() < 0 {
        pool.at("generation").invalid("must be greater than or equal to zero");
    }
}
