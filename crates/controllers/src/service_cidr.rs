//! Says of every range of service addresses that it is ready, and keeps one that is used from going.

use core::net::IpAddr;
use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Resource, Time, address::Cidr};
use corten_reconcile::{Actor, Controller, Effect, Plan, Verb, View, Wait, Wake, Watch, Write, status::exact_patch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::projections::{Bare, projection};

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// An address may be being given out while the range is deleted.
const GRACE: Duration = Duration::from_secs(10);
const IN_USE: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

#[derive(Deserialize)]
struct ServiceCidr {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}
projection!(ServiceCidr, resources::SERVICE_CIDRS);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    cidrs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Value>,
}

impl ServiceCidr {
    fn holds(&self, address: IpAddr) -> bool {
        self.spec.cidrs.iter().any(|it| Cidr::parse(it).is_some_and(|it| it.contains(address)))
    }
}

pub struct ServiceCidrs;

impl Controller for ServiceCidrs {
    fn name(&self) -> &'static str {
        "service-cidrs"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<ServiceCidr>(Wake::With(itself_and_leaving)),
            Watch::of::<Bare>(resources::IP_ADDRESSES, Wake::With(leaving)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::SERVICE_CIDRS,
                fields: &["metadata.finalizers", "status.conditions"],
            }]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::SERVICE_CIDRS)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(range) = view.get::<ServiceCidr>(key) else { return Plan::default() };
        let (meta, mut plan) = (&range.metadata, Plan::default());
        let has_finalizer = meta.finalizers.iter().any(|it| it == FINALIZER);
        if !meta.is_deleting() {
            if !has_finalizer {
                let all: Vec<&str> = meta.finalizers.iter().map(|it| &**it).chain([FINALIZER]).collect();
                plan.effects.push(exact_patch(
                    resources::SERVICE_CIDRS,
                    meta,
                    json!({ "metadata": { "finalizers": all } }),
                ));
                return plan;
            }
            plan.effects.extend(say(range, "True", "", "Kubernetes Service CIDR is ready", now));
            return plan;
        }
        if !has_finalizer {
            return plan;
        }
        let earliest = meta.deletion_timestamp.unwrap_or(now).after(GRACE);
        if let Some(used) = used_address(view, range) {
            plan.effects.extend(say(range, "False", "Terminating", IN_USE, now));
            plan.waits.push(Wait::new("AddressesInUse", IN_USE, Actor::Author).on("IPAddress", &used));
        } else if now < earliest {
            plan.wake_at = Some(earliest);
        } else {
            let left: Vec<&String> = meta.finalizers.iter().filter(|it| *it != FINALIZER).collect();
            let left = if left.is_empty() { Value::Null } else { json!(left) };
            plan.effects.push(exact_patch(
                resources::SERVICE_CIDRS,
                meta,
                json!({ "metadata": { "finalizers": left } }),
            ));
        }
        plan
    }
}

fn leaving(view: &View, _changed: &ObjectMeta) -> Vec<Key> {
    view.list::<ServiceCidr>().filter(|it| it.metadata.is_deleting()).map(|it| it.metadata.key()).collect()
}

/// Another range may take over what one that goes has given out.
fn itself_and_leaving(view: &View, changed: &ObjectMeta) -> Vec<Key> {
    let mut keys = leaving(view, changed);
    keys.push(changed.key());
    keys
}

/// An address that only this range holds.
fn used_address(view: &View, range: &ServiceCidr) -> Option<String> {
    let others: Vec<&ServiceCidr> = view
        .list::<ServiceCidr>()
        .filter(|it| it.metadata.name != range.metadata.name && !it.metadata.is_deleting())
        .collect();
    let addresses = view.list_in::<Bare>(&resources::IP_ADDRESSES).map(|it| &it.metadata.name);
    let mut used = addresses.filter(|it| {
        it.parse().is_ok_and(|address| range.holds(address) && !others.iter().any(|it| it.holds(address)))
    });
    used.next().cloned()
}

fn say(range: &ServiceCidr, status: &str, reason: &str, message: &str, now: Time) -> Option<Effect> {
    let held = range.status.conditions.iter().find(|it| it["type"] == "Ready");
    if held.is_some_and(|it| it["status"] == status && it["message"] == message) {
        return None;
    }
    let condition = json!({
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    });
    let others = range.status.conditions.iter().filter(|it| it["type"] != "Ready").cloned();
    let conditions: Vec<Value> = others.chain([condition]).collect();
    let patch = json!({ "metadata": { "uid": range.metadata.uid }, "status": { "conditions": conditions } });
    let (resource, key) = (resources::SERVICE_CIDRS, range.metadata.key());
    Some(Effect::Patch { resource, key, subresource: Some("status"), patch })
}
