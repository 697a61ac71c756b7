//! What no Service may have led to itself by naming an address from outside: the cluster's own addresses, and the ports of this
//! node's addresses at which the node itself, or the machine, answers.
//!
//! Whoever may write a Service chooses its external addresses (CVE-2020-8554). Those of others outside are led, as by kube-proxy; but not
//! what a Service of another namespace has from the pool of load balancers' addresses, at no port.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::{
    Key,
    address::{Cidr, is_reachable},
};
use corten_reconcile::{Actor, Wait};

use crate::{
    Config,
    rules::{Backend, Protocol},
};

/// Whose the addresses out of the pool are. The status of a Service says so, and of two at once by an accident.
#[derive(Debug, Default)]
pub(crate) struct PoolOwners(BTreeMap<IpAddr, BTreeSet<Key>>);

impl PoolOwners {
    /// Takes in what a Service had and has; gives the addresses that are new to it, and those that it has no longer.
    pub(crate) fn change(&mut self, service: &Key, old: Vec<IpAddr>, new: Vec<IpAddr>) -> BTreeSet<IpAddr> {
        let (old, new): (BTreeSet<IpAddr>, BTreeSet<IpAddr>) = (old.into_iter().collect(), new.into_iter().collect());
        for address in old.difference(&new) {
            let Some(owners) = self.0.get_mut(address) else { continue };
            owners.remove(service);
            if owners.is_empty() {
                self.0.remove(address);
            }
        }
        for address in new.difference(&old) {
            self.0.entry(*address).or_default().insert(service.clone());
        }
        old.symmetric_difference(&new).copied().collect()
    }

    /// Has a Service of another namespace this address, and none of this one?
    pub(crate) fn is_of_another(&self, address: IpAddr, namespace: &str) -> bool {
        self.0.get(&address).is_some_and(|owners| !owners.iter().any(|it| it.namespace == namespace))
    }
}

/// Who may not read another namespace's Services is not told which of them it is.
pub(crate) fn of_another(address: IpAddr, protocol: Protocol, port: u16) -> Wait {
    let front = format!("{}/{}", Backend { address, port }, protocol.word().to_uppercase());
    let message = format!(
        "packets for {front} are not led to it: a service of another namespace has this address from the pool of load balancers"
    );
    Wait::new("ExternalAddressRefused", message, Actor::Author)
}

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
