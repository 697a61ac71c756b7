//! Devices that Pods want to use.

use std::collections::BTreeSet;

use corten_api::resources::{RESOURCE_CLAIMS, RESOURCE_CLAIMS_V1BETA1, RESOURCE_CLAIMS_V1BETA2};
use corten_meta::Violation;
use corten_schema::{Cursor, Ordered, violations};
use corten_validation::{fill::inner, pod_spec::node_selector, read::items, rules};
use serde_json::{Value, json};

use super::{
    names::{self, at_most, label, not_longer},
    request, v1beta1,
};
use crate::{
    BuiltIn, Policy, Subresource, UpdateRules, Verb, ViewOf,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: RESOURCE_CLAIMS,
    singular: "resourceclaim",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.resource.v1.ResourceClaim",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("State", "Whether it has its devices, and who uses them.", |object, _| json!(state(object))),
        AGE,
    ],
    policy: &ResourceClaim,
};

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    RESOURCE_CLAIMS_V1BETA1,
    "io.k8s.api.resource.v1beta1.ResourceClaim",
    ViewOf::converted(RESOURCE_CLAIMS, v1beta1::claim_to_v1, v1beta1::claim_from_v1),
    KIND,
);

pub(crate) const V1BETA2: BuiltIn = BuiltIn::view(
    RESOURCE_CLAIMS_V1BETA2,
    "io.k8s.api.resource.v1beta2.ResourceClaim",
    ViewOf::same(RESOURCE_CLAIMS),
    KIND,
);

fn state(claim: &Value) -> String {
    let deleted = claim.pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null());
    let allocated = claim.pointer("/status/allocation").is_some_and(|it| !it.is_null());
    let reserved = allocated && !items(claim, "/status/reservedFor").is_empty();
    let states =
        [(deleted, "deleted"), (!allocated && !deleted, "pending"), (allocated, "allocated"), (reserved, "reserved")];
    states.iter().filter(|it| it.0).map(|it| it.1).collect::<Vec<_>>().join(",")
}

struct ResourceClaim;

const RESERVED_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
const CONFIGURATIONS_MAX: usize = 64;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 * 1024;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;
const ADDRESSES_MAX: usize = 16;

impl Policy for ResourceClaim {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.as_object_mut().and_then(|it| inner(it, "spec")) {
            request::default(spec);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |claim| request::validate(claim.at("spec")))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |claim| rules::immutable(claim.at("spec"), &old["spec"]))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |claim| {
            let status = claim.at("status");
            let deleted = claim.at("metadata").at("deletionTimestamp").exists();
            reserved(status, &old["status"]["reservedFor"], deleted);
            let allocated = results(status.at("allocation"));
            status.list("devices").for_each(|it| device(it, &allocated));
            let allocation = status.at("allocation");
            if allocation.exists() && !old["status"]["allocation"].is_null() {
                rules::immutable(allocation, &old["status"]["allocation"]);
            } else if allocation.exists() {
                self::allocation(allocation, &request::Names::of(claim.at("spec")));
            }
        })
    }

    /// As in `dropDeallocatedStatusDevices`: what is told of a device goes when the claim has it no more.
    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        let results = "/status/allocation/devices/results";
        let has =
            |claim: &Value, device: &Value| items(claim, results).iter().any(|it| identity(it) == identity(device));
        let told = items(new, "/status/devices");
        let left: Vec<Value> = told.iter().filter(|it| has(new, it) || !has(old, it)).cloned().collect();
        if left.len() == told.len() {
            return;
        }
        let Some(status) = new.as_object_mut().and_then(|it| inner(it, "status")) else { return };
        match left.is_empty() {
            true => drop(status.shift_remove("devices")),
            false => drop(status.insert("devices".into(), left.into())),
        }
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn update_rules(&self) -> UpdateRules {
        UpdateRules::Change
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn reserved(status: Cursor<'_>, old: &Value, deleted: bool) {
    let users = status.at("reservedFor");
    for user in users.each() {
        for field in ["resource", "name", "uid"] {
            user.at(field).required();
        }
    }
    at_most(users, RESERVED_MAX);
    rules::unique(users, |it| it.at("uid"));
    if users.is_empty() {
        return;
    }
    let before: BTreeSet<Ordered<'_>> = old.as_array().into_iter().flatten().map(Ordered).collect();
    if !status.at("allocation").exists() {
        users.forbidden("may not be specified when `allocated` is not set");
    } else if deleted && users.items().iter().any(|it| !before.contains(&Ordered(it))) {
        users.forbidden("new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
    }
}

fn place(of: Cursor<'_>) {
    rules::driver_name(of.at("driver"));
    names::pool(of.at("pool"));
    label(of.at("device"));
}

fn allocation(allocation: Cursor<'_>, requests: &request::Names<'_>) {
    let devices = allocation.at("devices");
    for result in devices.list("results") {
        requests.check(result.at("request"));
        place(result);
        share(result);
    }
    at_most(devices.at("results"), RESULTS_MAX);
    for config in devices.list("config") {
        rules::required_one_of(config.at("source"), &["FromClaim", "FromClass"]);
        requests.check_all(config.at("requests"));
        request::configuration(config);
    }
    at_most(devices.at("config"), CONFIGURATIONS_MAX);
    if allocation.at("nodeSelector").exists() {
        node_selector(allocation.at("nodeSelector"));
    }
}

/// What tells devices apart, and shares of one device.
fn identity(device: &Value) -> [Ordered<'_>; 4] {
    ["driver", "pool", "device", "shareID"].map(|it| Ordered(&device[it]))
}

fn share(of: Cursor<'_>) {
    let id = of.at("shareID");
    let parts: Vec<&str> = id.str().split('-').collect();
    let is_hex = |it: &&str| it.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let is_uuid = parts.iter().map(|it| it.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex);
    if id.exists() && !is_uuid {
        id.invalid("must be a lowercase UUID in 8-4-4-4-12 format");
    }
}

fn results(allocation: Cursor<'_>) -> BTreeSet<[Ordered<'_>; 4]> {
    allocation.at("devices").at("results").items().iter().map(identity).collect()
}

fn device(device: Cursor<'_>, allocated: &BTreeSet<[Ordered<'_>; 4]>) {
    place(device);
    share(device);
    if !allocated.contains(&identity(device.value())) {
        let parts = ["driver", "pool", "device", "shareID"].map(|it| device.at(it).str());
        let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        device.invalid_as(&parts.join("/"), "must be an allocated device in the claim");
    }
    at_most(device.at("conditions"), CONDITIONS_MAX);
    rules::conditions(device.at("conditions"));
    if device.at("data").exists() {
        request::raw(device.at("data"), DATA_BYTES_MAX);
    }
    let network = device.at("networkData");
    not_longer(network.at("interfaceName"), INTERFACE_BYTES_MAX);
    not_longer(network.at("hardwareAddress"), HARDWARE_BYTES_MAX);
    at_most(network.at("ips"), ADDRESSES_MAX);
    rules::unique(network.at("ips"), |it| it);
}

#[cfg(test)]
mod tests;
