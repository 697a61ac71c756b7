//! What containers ask for and may use, and the class of service that follows from it.

use corten_meta::{Quantity, field};
use corten_schema::Cursor;
use serde_json::Value;

use crate::read::items;

const STANDARD: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

pub(super) fn validate(resources: Cursor<'_>) {
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    for (name, limit) in limits.entries() {
        quantity(name, limit);
    }
    for (name, request) in requests.entries() {
        quantity(name, request);
        let (Some(asked), limit) = (request.quantity(), limits.key(name)) else { continue };
        match limit.quantity() {
            Some(most) if !may_overcommit(name) && asked != most => {
                requests.invalid_as(&asked.to_string(), &format!("must be equal to {name} limit of {most}"));
            }
            Some(most) if asked > most => {
                requests
                    .invalid_as(&asked.to_string(), &format!("must be less than or equal to {name} limit of {most}"));
            }
            None if !may_overcommit(name) => limits.missing("Limit must be set for non overcommitable resources"),
            _ => {}
        }
    }
}

/// What all containers together may use: at least what each of them asks for.
pub(super) fn of_pod(spec: Cursor<'_>) {
    const KNOWN: [&str; 3] = ["cpu", "hugepages-", "memory"];
    let own = spec.at("resources");
    for (name, value) in own.at("limits").entries().chain(own.at("requests").entries()) {
        if !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
            value.report(corten_meta::Violation::not_supported(value.path(), name, &KNOWN));
        }
    }
    validate(own);
    for (name, asked) in own.at("requests").entries() {
        let of_each = spec.list("containers").filter_map(|it| it.at("resources").at("requests").key(name).quantity());
        let sum = of_each.fold(Quantity::ZERO, Quantity::plus);
        if asked.quantity().is_some_and(|it| it < sum) {
            asked.invalid(&format!("must be greater than or equal to aggregate container requests of {sum}"));
        }
    }
    for (name, most) in own.at("limits").entries() {
        let Some(most) = most.quantity() else { continue };
        for limit in spec.list("containers").map(|it| it.at("resources").at("limits").key(name)) {
            if limit.quantity().is_some_and(|it| it > most) {
                limit.invalid(&format!("must be less than or equal to pod limits of {most}"));
            }
        }
    }
}

/// What running the Pod costs beside its containers.
pub(super) fn overhead(overhead: Cursor<'_>) {
    for (name, value) in overhead.entries() {
        quantity(name, value);
    }
}

fn quantity(name: &str, value: Cursor<'_>) {
    for reason in field::qualified_name(name) {
        value.invalid_as(name, &reason);
    }
    if !name.contains('/') && !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
        value.invalid_as(name, "must be a standard resource type or fully qualified");
        value.invalid_as(name, "must be a standard resource for containers");
    }
    let Some(quantity) = value.quantity() else { return };
    if quantity.is_negative() {
        value.invalid("must be greater than or equal to 0");
    }
    if name.contains('/') && quantity != Quantity::units(quantity.value()) {
        value.invalid("must be an integer");
    }
}

/// Devices and huge pages cannot be promised twice.
fn may_overcommit(name: &str) -> bool {
    !name.contains('/') && !name.starts_with("hugepages-")
}

/// `Guaranteed`, `Burstable` or `BestEffort`: who must go first when a node runs out of memory.
pub fn qos_class(pod: &Value) -> &'static str {
    let containers = || items(pod, "/spec/initContainers").iter().chain(items(pod, "/spec/containers"));
    let of_pod = &pod["spec"]["resources"];
    let has = |resources: &Value| ["requests", "limits"].iter().any(|kind| counts(&resources[*kind]));
    if has(of_pod) {
        return if is_guaranteed(of_pod) { "Guaranteed" } else { "Burstable" };
    }
    if !containers().any(|it| has(&it["resources"])) {
        return "BestEffort";
    }
    if containers().all(|it| is_guaranteed(&it["resources"])) { "Guaranteed" } else { "Burstable" }
}

/// Is there processor time or memory that is not zero?
fn counts(list: &Value) -> bool {
    ["cpu", "memory"].iter().any(|it| amount(list, it).is_some_and(|it| !it.is_zero()))
}

fn is_guaranteed(resources: &Value) -> bool {
    ["cpu", "memory"].iter().all(|name| {
        let (limit, request) = (amount(&resources["limits"], name), amount(&resources["requests"], name));
        limit.is_some_and(|limit| !limit.is_zero() && request.is_none_or(|it| it == limit))
    })
}

fn amount(list: &Value, name: &str) -> Option<Quantity> {
    list.get(name).and_then(|it| serde::Deserialize::deserialize(it).ok())
}
