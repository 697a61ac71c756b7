//! What no Service may have led to itself by naming an address from outside: the cluster's own addresses, and the ports of this
//! node's addresses at which the node itself, or the machine, answers.
//!
//! Whoever may write a Service chooses its external addresses (CVE-2020-8554). Those of others outside are led, as by kube-proxy.

use std::{collections::BTreeMap, net::IpAddr};

use corten_meta::address::{Cidr, is_reachable};
use corten_reconcile::{Actor, Wait};

use crate::{
    Config,
    rules::{Backend, Protocol},
};

/// Why packets for this address and port are not led to a Service.
pub(crate) fn refusal(
    config: &Config,
    ranges: &BTreeMap<String, Vec<Cidr>>,
    address: IpAddr,
    protocol: Protocol,
    port: u16,
) -> Option<Wait> {
    let front = format!("{}/{}", Backend { address, port }, protocol.word().to_uppercase());
    let refused = |why: &str| {
        let message = format!("packets for {front} are not led to it: {why}");
        Some(Wait::new("ExternalAddressRefused", message, Actor::Author))
    };
    let taken = |by: &str| {
        let message = format!("packets for {front} are not led to it: on node {} the port is {by}", config.node_name);
        Some(Wait::new("PortTaken", message, Actor::Author))
    };
    if config.pod_cidrs.iter().chain(&config.cluster_cidrs).any(|it| it.contains(address)) {
        return refused("it is an address of Pods");
    }
    if ranges.values().flatten().any(|it| it.contains(address)) {
        return refused("it is an address of the cluster's own Services");
    }
    if !is_reachable(address) {
        return refused("it is no address from outside");
    }
    if !config.addresses.contains(&address) {
        return None;
    }
    if config.own_ports.contains(&(protocol, port)) {
        return taken("one of Corten's own");
    }
    if config.node_ports.contains(port) {
        return taken("a node port of Services");
    }
    if config.listening.contains(&(protocol, port)) { taken("taken by a process of the machine") } else { None }
}
