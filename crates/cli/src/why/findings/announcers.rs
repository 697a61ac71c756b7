//! Which node answers for an address that a Service has from the pool: no object says so, each node works it out.
//!
//! This follows `corten_proxy::announcements`, which reads typed objects and knows of its own node alone. Both are held to the same
//! answers by tests that name the same nodes and addresses.

use std::{collections::BTreeSet, net::IpAddr};

use corten_api::load_balancer::{EXCLUDED, POOL_ADDRESSES, weight};
use corten_meta::address::is_reachable;
use serde_json::Value;

use crate::why::fields::{condition, items, text};

/// The addresses that it has from the pool.
pub(super) fn pool_addresses(service: &Value) -> Vec<IpAddr> {
    let is_of_pool = service["spec"]["type"] == "LoadBalancer"
        && service["spec"]["loadBalancerClass"].is_null()
        && condition(service, POOL_ADDRESSES).is_some();
    let kept = |it: &&Value| matches!(text(it, "/ipMode"), "" | "VIP");
    let ingress = items(service, "/status/loadBalancer/ingress").iter().filter(|_| is_of_pool).filter(kept);
    ingress.filter_map(|it| text(it, "/ip").parse().ok()).collect()
}

/// The nodes that may answer for the Service's addresses.
pub(super) fn candidates<'n>(service: &Value, nodes: &'n [Value], slices: &[&Value]) -> Vec<&'n Value> {
    let is_local = service["spec"]["externalTrafficPolicy"] == "Local";
    let here = is_local.then(|| nodes_with_endpoints(slices));
    let may = |it: &&Value| {
        let metadata = &it["metadata"];
        let is_excluded = metadata["deletionTimestamp"].is_string() || !metadata["labels"][EXCLUDED].is_null();
        !is_excluded && here.as_ref().is_none_or(|here| here.contains(text(it, "/metadata/name")))
    };
    nodes.iter().filter(may).collect()
}

/// Which of them does, and whether another one is ready to. An address that is a node's is never another's.
pub(super) fn of<'n>(candidates: &[&'n Value], nodes: &[Value], address: IpAddr) -> Option<(&'n str, bool)> {
    let has = |it: &Value| items(it, "/status/addresses").iter().any(|it| text(it, "/address").parse() == Ok(address));
    if !is_reachable(address) || nodes.iter().any(has) {
        return None;
    }
    let ready: Vec<&str> = candidates.iter().filter(|it| is_ready(it)).map(|it| text(it, "/metadata/name")).collect();
    let any: Vec<&str> = candidates.iter().map(|it| text(it, "/metadata/name")).collect();
    let among = if ready.is_empty() { &any } else { &ready };
    let chosen = among.iter().copied().max_by_key(|it| (weight(it, address), *it))?;
    Some((chosen, ready.iter().any(|it| *it != chosen)))
}

fn is_ready(node: &Value) -> bool {
    condition(node, "Ready").is_some_and(|it| it["status"] == "True")
}

/// With an endpoint that is ready, or where there is none anywhere, one that ends and still serves.
fn nodes_with_endpoints<'s>(slices: &[&'s Value]) -> BTreeSet<&'s str> {
    let on = |is_it: fn(&Value) -> bool| {
        let endpoints = slices.iter().flat_map(|it| items(it, "/endpoints"));
        let on = endpoints.filter(|it| is_it(&it["conditions"])).filter_map(|it| it["nodeName"].as_str());
        on.collect::<BTreeSet<_>>()
    };
    let ready = on(|it| it["ready"] != false);
    if ready.is_empty() { on(|it| it["serving"] == true) } else { ready }
}

#[cfg(test)]
mod tests;
