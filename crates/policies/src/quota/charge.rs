//! May this write happen under these quotas, and what do they hold afterwards?

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::PODS;
use corten_meta::{Resource, Time};
use corten_validation::read::{items, text};
use serde_json::Value;

use super::{
    amounts::{Amounts, add, amounts, listed, subtract},
    extended::{Neighbours, is_counted},
    in_scope,
    usage::{of_compute, usage},
};

/// The amounts that each container must name where a quota bounds them: quotas are older than classes of service.
const EXPLICIT: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// The new `status.used` of each quota that changes, by its place in `quotas`. `old` is what an update replaces.
///
/// # Errors
/// Why the write may not happen: what stands after `is forbidden: `.
pub fn charge(
    quotas: &[Value],
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    now: Time,
    neighbours: &dyn Neighbours,
) -> Result<Vec<(usize, Amounts)>, String> {
    let mut concerned = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        let hard = amounts(&quota["status"]["hard"]);
        let is_restricted = |it: &&str| is_counted(it, resource, neighbours);
        let restricted: BTreeSet<&str> = hard.keys().map(|it| &**it).filter(is_restricted).collect();
        if restricted.is_empty() || !in_scope(&quota["spec"], resource, object) {
            continue;
        }
        let name = text(quota, "/metadata/name");
        explicit(&restricted, resource, object).map_err(|it| format!("failed quota: {name}: {it}"))?;
        let used = amounts(&quota["status"]["used"]);
        if restricted.iter().any(|it| !used.contains_key(*it)) {
            let names: Vec<&str> = restricted.into_iter().collect();
            return Err(format!("status unknown for quota: {name}, resources: {}", names.join(",")));
        }
        concerned.push((at, name, hard, used));
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let change = change(resource, object, old, now, neighbours)?;
    let mut charged = Vec::new();
    for (at, name, hard, used) in concerned {
        let requested = masked(&change, |it| hard.contains_key(it) && is_counted(it, resource, neighbours));
        let mut after = used.clone();
        add(&mut after, &requested);
        let exceeded = |it: &str| requested.contains_key(it) && after.get(it) > hard.get(it);
        if requested.keys().any(|it| exceeded(it)) {
            return Err(format!(
                "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
                listed(&masked(&requested, exceeded)),
                listed(&masked(&used, exceeded)),
                listed(&masked(&hard, exceeded))
            ));
        }
        if after != used {
            charged.push((at, after));
        }
    }
    Ok(charged)
}

fn masked(amounts: &Amounts, keep: impl Fn(&str) -> bool) -> Amounts {
    amounts.iter().filter(|(name, _)| keep(name)).map(|(name, it)| (name.clone(), *it)).collect()
}

/// What the write adds; nothing that stays the same.
fn change(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    now: Time,
    neighbours: &dyn Neighbours,
) -> Result<Amounts, String> {
    let mut change = usage(resource, object, now, neighbours);
    let negative: Vec<&str> = change.iter().filter(|(_, it)| it.is_negative()).map(|(name, _)| &**name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    if let Some(old) = old {
        subtract(&mut change, &usage(resource, old, now, neighbours));
    }
    change.retain(|_, it| !it.is_zero());
    Ok(change)
}

fn explicit(restricted: &BTreeSet<&str>, resource: &Resource, pod: &Value) -> Result<(), String> {
    let required: Vec<&str> = EXPLICIT.into_iter().filter(|it| restricted.contains(it)).collect();
    let of_pod = &pod["spec"]["resources"];
    let has_own = ["requests", "limits"].iter().any(|it| !amounts(&of_pod[*it]).is_empty());
    if *resource != PODS || required.is_empty() || has_own {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in items(pod, "/spec/containers").iter().chain(items(pod, "/spec/initContainers")) {
        let resources = &container["resources"];
        let named = of_compute(&amounts(&resources["requests"]), &amounts(&resources["limits"]));
        for name in required.iter().filter(|it| !named.contains_key(**it)) {
            missing.entry(name).or_default().insert(text(container, "/name"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let sentences: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(",")))
        .collect();
    Err(format!("must specify {}", sentences.join("; ")))
}
