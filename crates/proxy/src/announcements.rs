//! Services, Nodes and EndpointSlices in, the addresses that this node answers for out.
//!
//! Each node decides for itself, and all come to the same: of those that may answer for an address the one has it whose name and the
//! address make the highest number (rendezvous hashing). A node that goes leaves only its own addresses to others, one that comes takes
//! only those that are its own.

use core::{net::IpAddr, time::Duration};
use std::collections::{BTreeMap, BTreeSet};

use corten_api::load_balancer::{AddressPool, EXCLUDED};
use corten_meta::{Key, ObjectMeta, Time, address::is_reachable};
use serde::Deserialize;

use crate::projections::{EndpointSlice, Service};

/// How long a node answers for an address without thinking of it again: less than it may be silent before others take over.
pub const ANSWER_LIFETIME: Duration = Duration::from_secs(40);
/// A packet may be lost: an address that is new at a node is made known so many times.
pub const ANNOUNCED_TIMES: u32 = 5;

/// An address, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Announcement {
    pub address: IpAddr,
    pub service: Key,
}

/// A Node, as far as it may answer for others' addresses.
#[derive(Clone, Debug, Deserialize)]
pub struct BalancerNode {
    pub metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    addresses: Option<Vec<NodeAddress>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeAddress {
    address: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: String,
    status: String,
    last_transition_time: Option<Time>,
}

impl BalancerNode {
    fn is_ready(&self) -> bool {
        self.ready().is_some_and(|it| it.status == "True")
    }

    fn ready(&self) -> Option<&Condition> {
        self.status.conditions.iter().flatten().find(|it| it.r#type == "Ready")
    }

    /// When it became ready, or was it no longer.
    pub fn ready_changed_at(&self) -> Option<Time> {
        self.ready()?.last_transition_time
    }

    fn may_answer(&self) -> bool {
        !self.metadata.is_deleting() && !self.metadata.labels.contains_key(EXCLUDED)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.status.addresses.iter().flatten().any(|it| it.address.parse() == Ok(address))
    }
}

impl Service {
    /// Are there addresses that one node is to answer for?
    pub fn is_announced(&self) -> bool {
        !self.pool_addresses().is_empty()
    }

    /// Does only a node answer that has endpoints?
    pub fn needs_local_endpoints(&self) -> bool {
        self.spec.external_traffic_policy == "Local"
    }
}

/// What the node of this name answers for. Without a pool the cluster has not said which addresses may be answered for, as older servers
/// do not: then those are that Services show.
pub fn announcements<'a>(
    node_name: &str,
    services: impl Iterator<Item = &'a Service>,
    nodes: &BTreeMap<String, BalancerNode>,
    slices: &BTreeMap<Key, EndpointSlice>,
    pool: Option<&AddressPool>,
) -> BTreeSet<Announcement> {
    let mut of_service: BTreeMap<Key, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in slices.values() {
        of_service.entry(slice.service().unwrap_or_default()).or_default().push(slice);
    }
    let mut own = BTreeSet::new();
    for service in services {
        let key = service.metadata.key();
        let slices = of_service.get(&key).map_or(&[][..], Vec::as_slice);
        // One that is not the pool's is nobody's, whoever wrote it there.
        let is_of_pool = |it: &Answer<'_>| pool.is_none_or(|pool| pool.contains(it.address));
        let answers = answering(service, nodes, slices).into_iter().filter(is_of_pool);
        let is_own = |it: &Answer<'_>| it.node == node_name;
        own.extend(answers.filter(is_own).map(|it| Announcement { address: it.address, service: key.clone() }));
    }
    own
}

/// Who answers for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    pub address: IpAddr,
    pub node: &'a str,
    /// Is another node ready to take it over?
    pub is_other_ready: bool,
}

/// Which node answers for each of the addresses that a Service has from the pool; `slices` are its own. An address that is a node's is
/// never another's.
pub fn answering<'a>(
    service: &Service,
    nodes: &'a BTreeMap<String, BalancerNode>,
    slices: &[&EndpointSlice],
) -> Vec<Answer<'a>> {
    let here = service.needs_local_endpoints().then(|| nodes_with_endpoints(slices));
    let may_answer =
        |it: &&BalancerNode| it.may_answer() && here.as_ref().is_none_or(|here| here.contains(&*it.metadata.name));
    let candidates: Vec<&BalancerNode> = nodes.values().filter(may_answer).collect();
    let is_free = |it: &IpAddr| is_reachable(*it) && !nodes.values().any(|node| node.has(*it));
    let answer = |address: IpAddr| {
        let node = chosen(&candidates, address)?;
        let is_other_ready = candidates.iter().any(|it| it.is_ready() && *it.metadata.name != *node);
        Some(Answer { address, node, is_other_ready })
    };
    service.pool_addresses().into_iter().filter(is_free).filter_map(answer).collect()
}

/// Where none is ready the control plane may hear of none: one of them all is better than nobody.
fn chosen<'a>(candidates: &[&'a BalancerNode], address: IpAddr) -> Option<&'a str> {
    let of = |ready: bool| {
        let among = candidates.iter().filter(move |it| it.is_ready() || !ready).map(|it| &*it.metadata.name);
        among.max_by_key(|it| (weight(it, address), *it))
    };
    of(true).or_else(|| of(false))
}

/// With an endpoint that is ready, or where there is none anywhere, one that ends and still serves.
fn nodes_with_endpoints<'a>(slices: &[&'a EndpointSlice]) -> BTreeSet<&'a str> {
    let endpoints = || slices.iter().flat_map(|it| &it.endpoints);
    let on = |it: &'a crate::projections::Endpoint| it.node_name.as_deref();
    let ready: BTreeSet<&str> = endpoints().filter(|it| it.conditions.ready != Some(false)).filter_map(on).collect();
    if ready.is_empty() {
        endpoints().filter(|it| it.conditions.serving == Some(true)).filter_map(on).collect()
    } else {
        ready
    }
}

/// FNV-1a, and a last mixing (of MurmurHash3) so that names that end alike are far from each other.
fn weight(node: &str, address: IpAddr) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in node.bytes().chain([0]).chain(address.to_string().bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    /// `n1`, `n1!` (not ready), `n1-` (excluded), `n1~` (on its way out).
    fn node(text: &str) -> (String, BalancerNode) {
        let name = text.trim_end_matches(['!', '-', '~']);
        let mut node = json!({
            "metadata": { "name": name },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": format!("192.168.0.{}", &name[1..]) }],
                "conditions": [{ "type": "Ready", "status": if text.ends_with('!') { "Unknown" } else { "True" } }],
            },
        });
        if text.ends_with('-') {
            node["metadata"]["labels"] = json!({ EXCLUDED: "" });
        }
        if text.ends_with('~') {
            node["metadata"]["deletionTimestamp"] = json!("2026-11-26T10:00:00Z");
        }
        (name.to_owned(), parsed(node))
    }

    fn service(more: &Value, addresses: &[&str]) -> Service {
        let ingress: Vec<Value> = addresses.iter().map(|it| json!({ "ip": it, "ipMode": "VIP" })).collect();
        let mut service = json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "type": "LoadBalancer", "externalTrafficPolicy": "Cluster" },
            "status": {
                "loadBalancer": { "ingress": ingress },
                "conditions": [{ "type": "corten.dev/PoolAddresses", "status": "True" }],
            },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            service["spec"][name] = value.clone();
        }
        parsed(service)
    }

    /// `n1`, `n1!` (not ready), `n1~` (ends and serves).
    fn slices(endpoints: &str) -> BTreeMap<Key, EndpointSlice> {
        let endpoint = |text: &str| {
            let conditions = match text.chars().last() {
                Some('!') => json!({ "ready": false, "serving": false }),
                Some('~') => json!({ "ready": false, "serving": true, "terminating": true }),
                _ => json!({}),
            };
            json!({ "addresses": ["10.244.0.2"], "nodeName": text.trim_end_matches(['!', '~']), "conditions": conditions })
        };
        let slice = json!({
            "metadata": { "name": "web-1", "namespace": "default", "labels": { "kubernetes.io/service-name": "web" } },
            "endpoints": endpoints.split_whitespace().map(endpoint).collect::<Vec<_>>(),
        });
        BTreeMap::from([(Key::new("default", "web-1"), parsed(slice))])
    }

    /// Which nodes answer for any of the addresses.
    fn who(service: &Service, nodes: &str, endpoints: &str, address: &str) -> Vec<String> {
        let nodes: BTreeMap<_, _> = nodes.split_whitespace().map(node).collect();
        let slices = slices(endpoints);
        let answers = |name: &&String| {
            let own = announcements(name, [service].into_iter(), &nodes, &slices, None);
            own.iter().any(|it| it.address == address.parse::<IpAddr>().expect("an address"))
        };
        nodes.keys().filter(answers).cloned().collect()
    }

    #[test]
    fn one_node_answers_and_the_same_says_everybody() {
        let local = json!({ "externalTrafficPolicy": "Local" });
        let none = json!({});
        for (spec, nodes, endpoints, expected) in [
            (&none, "n1 n2 n3", "", "n2"),
            (&none, "n1 n2", "", "n2"),
            (&none, "n1 n2! n3", "", "n1"),
            (&none, "n1 n2- n3", "", "n1"),
            (&none, "n1- n2~ n3", "", "n3"),
            (&none, "n1! n2! n3!", "", "n2"),
            (&none, "n1- n2-", "", ""),
            (&none, "", "", ""),
            (&local, "n1 n2 n3", "n1 n3", "n1"),
            (&local, "n1 n2 n3", "n1 n2! n3", "n1"),
            (&local, "n1 n2 n3", "n3~ n2!", "n3"),
            (&local, "n1! n2- n3", "n1 n2 n3", "n3"),
            (&local, "n1 n2 n3", "", ""),
            (&json!({ "type": "ClusterIP" }), "n1 n2 n3", "", ""),
            (&json!({ "loadBalancerClass": "example.com/lb" }), "n1 n2 n3", "", ""),
        ] {
            let service = service(spec, &["10.0.0.10"]);
            assert_eq!(
                who(&service, nodes, endpoints, "10.0.0.10").join(" "),
                expected,
                "{spec} {nodes} / {endpoints}"
            );
        }
    }

    #[test]
    fn another_takes_an_address_over_where_one_is_ready() {
        for (nodes, expected) in
            [("n1 n2 n3", true), ("n1 n2! n3", true), ("n1- n2~ n3", false), ("n1! n2! n3!", false)]
        {
            let nodes: BTreeMap<_, _> = nodes.split_whitespace().map(node).collect();
            let service = service(&json!({}), &["10.0.0.10"]);
            let answers = answering(&service, &nodes, &[]);
            assert_eq!(answers.iter().map(|it| it.is_other_ready).collect::<Vec<_>>(), [expected], "{nodes:?}");
        }
    }

    #[test]
    fn a_nodes_own_address_is_never_anothers() {
        let service = service(&json!({}), &["192.168.0.1", "127.0.0.1", "10.0.0.9"]);
        assert!(who(&service, "n1 n2", "", "192.168.0.1").is_empty());
        assert!(who(&service, "n1 n2", "", "127.0.0.1").is_empty());
        assert_eq!(who(&service, "n1 n2", "", "10.0.0.9").len(), 1);
    }

    #[test]
    fn only_for_addresses_of_the_pool_is_answered() {
        let service = service(&json!({}), &["10.0.0.9", "10.0.0.10", "fd00::9"]);
        let nodes = BTreeMap::from([node("n1")]);
        for (pool, expected) in [
            (None, &["10.0.0.9", "10.0.0.10", "fd00::9"][..]),
            (Some(&["10.0.0.8/31", "fd00::/64"][..]), &["10.0.0.9", "fd00::9"]),
            (Some(&[]), &[]),
        ] {
            let pool = pool.map(|it| AddressPool::parse(it).expect("a pool"));
            let own = announcements("n1", [&service].into_iter(), &nodes, &BTreeMap::new(), pool.as_ref());
            assert_eq!(own.iter().map(|it| it.address.to_string()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn few_addresses_move_and_all_nodes_have_some() {
        let nodes: Vec<BalancerNode> = (1..=5).map(|it| node(&format!("n{it}")).1).collect();
        let all: Vec<&BalancerNode> = nodes.iter().collect();
        let addresses: Vec<IpAddr> = (0..=255).map(|it| IpAddr::from([10, 0, 7, it])).collect();
        let mut each: BTreeMap<&str, usize> = BTreeMap::new();
        for address in &addresses {
            let before = chosen(&all, *address).expect("a node");
            *each.entry(before).or_default() += 1;
            let after = chosen(&all[..4], *address).expect("a node");
            assert!(before == after || before == "n5", "{address} moved from {before} to {after}");
        }
        assert!(each.len() == 5 && each.values().all(|it| *it > 25), "{each:?}");
    }
}
