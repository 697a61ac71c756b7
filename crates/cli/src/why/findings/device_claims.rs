//! Claims for devices: what each has been given, which Pod it waits for, and what it asks for that nobody offers.

use std::collections::BTreeSet;

use corten_allocator::{Inventory, ResourceClasses, Shortage, selected_by, shortages};
use corten_api::{
    resource::v1::ResourceClaimSpec,
    resources::{DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES},
};
use corten_meta::{Key, Quantity};
use corten_reconcile::{Actor, Wait};
use serde_json::{Value, json};

use super::found::Findings;
use crate::why::{
    State,
    fields::{items, text, time},
    reader::Reader,
};

pub(super) async fn claim(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if object["status"]["allocation"].is_object() {
        found.verdict = Some((State::Fine, what_it_has(object)));
        return;
    }
    let lacking = lacking(reader, &object["spec"]).await;
    let owners = items(object, "/metadata/ownerReferences");
    match owners.iter().find(|it| text(it, "/kind") == "Pod") {
        Some(pod) => {
            let message = "it is given devices when its pod is placed";
            let mut wait = Wait::new("PodNotPlaced", message, Actor::Cluster).on("Pod", text(pod, "/name"));
            wait.since = time(&object["metadata"]["creationTimestamp"]);
            found.wait(wait);
        }
        None if lacking.is_empty() => {
            let said = "it has no devices yet: it is given some when a pod that names it is placed";
            found.verdict = Some((State::Fine, said.to_owned()));
        }
        None => {}
    }
    lacking.into_iter().for_each(|it| found.add_once(it));
}

fn what_it_has(claim: &Value) -> String {
    let one = |it: &Value| format!("device {} of {}", text(it, "/device"), text(it, "/driver"));
    let devices: Vec<String> = items(claim, "/status/allocation/devices/results").iter().map(one).collect();
    let pods: Vec<&str> = items(claim, "/status/reservedFor").iter().map(|it| text(it, "/name")).collect();
    let whom = if pods.is_empty() { "nobody uses it".to_owned() } else { format!("for {}", pods.join(", ")) };
    format!("it has {}, {whom}", devices.join(", "))
}

/// Claims are made of it: what they would lack is told before there is one.
pub(super) async fn template(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    for wait in lacking(reader, &object["spec"]["spec"]).await {
        match wait.actor {
            // Drivers may come when there is something for them to do.
            Actor::Operator => found.notices.push(wait.message),
            _ => found.add_once(wait),
        }
    }
}

pub(super) async fn class(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let Some(inventory) = inventory(reader).await else { return };
    let Ok(spec) = serde_json::from_value(object["spec"].clone()) else { return };
    match selected_by(&spec, &inventory) {
        Ok(0) => found.notices.push(format!("it selects none of {}", offered(&inventory))),
        Ok(_) => {}
        Err(error) => found.add("DeviceSelectorFails", error, Actor::Author),
    }
}

/// A Pod without a node: which of its claims ask for what nobody offers.
pub(super) async fn of_pod(reader: &Reader<'_>, pod: &Value, found: &mut Findings) {
    let named = items(pod, "/spec/resourceClaims").iter().chain(items(pod, "/status/resourceClaimStatuses"));
    for name in named.map(|it| text(it, "/resourceClaimName")).filter(|it| !it.is_empty()) {
        let key = Key::new(text(pod, "/metadata/namespace"), name);
        let Some(claim) = reader.get(&RESOURCE_CLAIMS, &key).await else { continue };
        let has_any = claim["status"]["allocation"].is_object();
        if !has_any && !lacking(reader, &claim["spec"]).await.is_empty() {
            let message = format!("its claim {name} can be given no devices");
            found.add_once(Wait::new("ClaimNotAllocated", message, Actor::Cluster).on("ResourceClaim", name));
        }
    }
}

/// Devices of others that are looked at, at most: expressions are evaluated for each.
const HELD_MAX: usize = 64;

/// A device that a claim of the Pod could be given if another one did not have it: which that is, and the claim that has it.
pub(crate) async fn held(reader: &Reader<'_>, pod: &Value) -> Option<(String, Key)> {
    let named = items(pod, "/spec/resourceClaims").iter().chain(items(pod, "/status/resourceClaimStatuses"));
    let named: Vec<&str> = named.map(|it| text(it, "/resourceClaimName")).filter(|it| !it.is_empty()).collect();
    let claims = reader.list(&RESOURCE_CLAIMS, "").await;
    let namespace = text(pod, "/metadata/namespace");
    let is_own =
        |it: &&Value| text(it, "/metadata/namespace") == namespace && named.contains(&text(it, "/metadata/name"));
    let has_none = |it: &&Value| !it["status"]["allocation"].is_object();
    let wanted: Vec<ResourceClaimSpec> = claims
        .iter()
        .filter(|it| is_own(it) && has_none(it))
        .filter_map(|it| serde_json::from_value(it["spec"].clone()).ok())
        .filter(asks_for_one_of_each)
        .collect();
    let (classes, slices) = (reader.list(&DEVICE_CLASSES, "").await, reader.list(&RESOURCE_SLICES, "").await);
    let held = claims
        .iter()
        .flat_map(|claim| items(claim, "/status/allocation/devices/results").iter().map(move |device| (claim, device)));
    for (claim, device) in held.take(HELD_MAX) {
        let Some(inventory) = of_one(&classes, &slices, device) else { continue };
        let requests = |it: &ResourceClaimSpec| it.devices.iter().flat_map(|it| it.requests.iter().flatten()).count();
        if wanted.iter().any(|it| shortages(it, &inventory).len() < requests(it)) {
            let key = Key::new(text(claim, "/metadata/namespace"), text(claim, "/metadata/name"));
            let pods: Vec<&str> = items(claim, "/status/reservedFor").iter().map(|it| text(it, "/name")).collect();
            let whom =
                if pods.is_empty() { "which no pod uses".into() } else { format!("for pod {}", pods.join(", ")) };
            let (name, driver) = (text(device, "/device"), text(device, "/driver"));
            let held =
                format!("device {name} of {driver}, held by resourceclaim/{} in {}, {whom}", key.name, key.namespace);
            return Some((held, key));
        }
    }
    None
}

/// Where it asks for several, one device more may not be enough.
fn asks_for_one_of_each(claim: &ResourceClaimSpec) -> bool {
    let mut requests = claim.devices.iter().flat_map(|it| it.requests.iter().flatten());
    requests.all(|it| {
        let exactly = it.exactly.as_ref();
        exactly.is_none_or(|it| it.count.is_none_or(|it| it <= 1) && it.allocation_mode.as_deref() != Some("All"))
    })
}

/// As if there were no device but this one.
fn of_one(classes: &[Value], slices: &[Value], result: &Value) -> Option<Inventory> {
    let is_it = |it: &&Value| it["name"] == result["device"];
    let slice = slices.iter().map(|it| &it["spec"]).find(|it| {
        let is_its = it["driver"] == result["driver"] && it["pool"]["name"] == result["pool"];
        is_its && items(it, "/devices").iter().any(|it| is_it(&it))
    })?;
    let mut only = slice.clone();
    only["devices"] = json!([items(slice, "/devices").iter().find(is_it)?]);
    only["pool"]["resourceSliceCount"] = json!(1);
    let mut inventory = Inventory::default();
    for class in classes {
        let spec = serde_json::from_value(class["spec"].clone()).ok()?;
        inventory.set_class(text(class, "/metadata/name").to_owned(), spec);
    }
    inventory.set_slice("held".into(), serde_json::from_value(only).ok()?);
    Some(inventory)
}

/// As [`of_pod`], of extended resources: a claim is made for those that a class has and no device plugin.
pub(super) async fn extended_resources(reader: &Reader<'_>, pod: &Value, found: &mut Findings) {
    let containers = items(pod, "/spec/initContainers").iter().chain(items(pod, "/spec/containers"));
    let asked = containers.filter_map(|it| it["resources"]["requests"].as_object()).flat_map(|it| it.keys());
    let asked: BTreeSet<&str> = asked.map(String::as_str).filter(|it| it.contains('/')).collect();
    if asked.is_empty() {
        return;
    }
    let (classes, nodes) = (reader.list(&DEVICE_CLASSES, "").await, reader.list(&NODES, "").await);
    if !reader.is_whole(&DEVICE_CLASSES, &classes) || !reader.is_whole(&NODES, &nodes) {
        return;
    }
    let mut of_resources = ResourceClasses::default();
    for class in classes.iter() {
        let (name, made) = (text(class, "/metadata/name"), time(&class["metadata"]["creationTimestamp"]));
        let resource = class["spec"]["extendedResourceName"].as_str().map(str::to_owned);
        of_resources.set(name.to_owned(), made, resource);
    }
    let has = |node: &Value, resource: &str| {
        let amount = node["status"]["allocatable"][resource].as_str().unwrap_or_default();
        amount.parse::<Quantity>().is_ok_and(|it| it.value() > 0)
    };
    let of_classes = asked.into_iter().filter(|it| !nodes.iter().any(|node| has(node, it)));
    let request = |it: &str| Some(json!({ "name": it, "exactly": { "deviceClassName": of_resources.class_of(it)? } }));
    let requests: Vec<Value> = of_classes.filter_map(request).collect();
    for wait in lacking(reader, &json!({ "devices": { "requests": requests } })).await {
        found.explains.push("DynamicResources");
        found.add_once(wait);
    }
}

/// What the spec of a claim asks for and nobody offers; nothing where that cannot be seen.
async fn lacking(reader: &Reader<'_>, spec: &Value) -> Vec<Wait> {
    let Ok(spec) = serde_json::from_value::<ResourceClaimSpec>(spec.clone()) else { return Vec::new() };
    let asks_for_any = spec.devices.iter().flat_map(|it| it.requests.iter().flatten()).next().is_some();
    if !asks_for_any {
        return Vec::new();
    }
    let Some(inventory) = inventory(reader).await else { return Vec::new() };
    shortages(&spec, &inventory).iter().map(|it| wait(it, &inventory)).collect()
}

fn wait(shortage: &Shortage, inventory: &Inventory) -> Wait {
    match shortage {
        Shortage::NoClass { request, class } => {
            let message = format!("there is no device class {class:?}, which its request {request} names");
            Wait::new("DeviceClassNotFound", message, Actor::Author)
        }
        Shortage::NoDevice { request, class } => {
            let message = format!("its request {request} of class {class:?} selects none of {}", offered(inventory));
            Wait::new("NoDeviceMatches", message, Actor::Operator)
        }
        Shortage::Broken { request, error } => {
            let message = format!("what its request {request} selects cannot be found out: {error}");
            Wait::new("DeviceSelectorFails", message, Actor::Author)
        }
    }
}

fn offered(inventory: &Inventory) -> String {
    let (n, drivers) = inventory.offered();
    let drivers = drivers.into_iter().collect::<Vec<_>>().join(", ");
    match n {
        0 => "all devices, as no driver offers any".to_owned(),
        1 => format!("all devices: there is one, of the driver {drivers}"),
        n => format!("all {n} devices: they are of {drivers}"),
    }
}

/// All classes and slices; none where not all of them can be seen.
async fn inventory(reader: &Reader<'_>) -> Option<Inventory> {
    let (classes, slices) = (reader.list(&DEVICE_CLASSES, "").await, reader.list(&RESOURCE_SLICES, "").await);
    if !reader.is_whole(&DEVICE_CLASSES, &classes) || !reader.is_whole(&RESOURCE_SLICES, &slices) {
        return None;
    }
    let mut inventory = Inventory::default();
    for class in classes.iter() {
        let spec = serde_json::from_value(class["spec"].clone()).ok()?;
        inventory.set_class(text(class, "/metadata/name").to_owned(), spec);
    }
    for slice in slices.iter() {
        let spec = serde_json::from_value(slice["spec"].clone()).ok()?;
        inventory.set_slice(text(slice, "/metadata/name").to_owned(), spec);
    }
    Some(inventory)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_claim_has() {
        let devices = json!({ "results": [{ "driver": "gpu.example.com", "device": "a" }] });
        let mut given =
            json!({ "status": { "allocation": { "devices": devices }, "reservedFor": [{ "name": "web" }] } });
        assert_eq!(what_it_has(&given), "it has device a of gpu.example.com, for web");
        given["status"]["reservedFor"] = json!([]);
        assert_eq!(what_it_has(&given), "it has device a of gpu.example.com, nobody uses it");
    }
}
