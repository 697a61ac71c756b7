//! Who may speak with whom, asked of the API's objects one by one.

use std::{collections::BTreeMap, net::IpAddr};

use corten_meta::{Key, LabelSelector, address::Cidr};

use super::kernel::Packet;
use crate::{
    projections::{IntOrString, NetworkPolicy, Peer, Pod, PolicyPort, PolicyRule},
    rules::Protocol,
};

#[derive(Default)]
pub(super) struct Cluster {
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) pods: BTreeMap<Key, Pod>,
    pub(super) policies: BTreeMap<Key, NetworkPolicy>,
    /// Those of this node that have a network.
    pub(super) plugged: BTreeMap<Key, Vec<IpAddr>>,
}

impl Cluster {
    pub(super) fn lets_through(&self, packet: &Packet) -> bool {
        if packet.from == packet.to && self.local(packet.to).is_some() && packet.from_bridge {
            return true;
        }
        let leaves = !packet.from_bridge || self.local(packet.from).is_some_and(|it| self.may(it, false, packet));
        let comes = !packet.to_bridge || self.local(packet.to).is_some_and(|it| self.may(it, true, packet));
        leaves && comes
    }

    /// The Pod of this node with this address. Nobody speaks with one that is not known.
    fn local(&self, address: IpAddr) -> Option<&Pod> {
        let key = self.plugged.iter().find(|(_, it)| it.contains(&address))?.0;
        self.pods.get(key)
    }

    fn at(&self, address: IpAddr) -> Option<&Pod> {
        self.pods.values().find(|pod| self.addresses(pod).contains(&address))
    }

    fn addresses(&self, pod: &Pod) -> Vec<IpAddr> {
        let is_local = pod.spec.node_name == "n1";
        match self.plugged.get(&pod.metadata.key()) {
            _ if pod.spec.host_network => Vec::new(),
            Some(it) => it.clone(),
            None if is_local || matches!(&*pod.status.phase, "Succeeded" | "Failed") => Vec::new(),
            None => pod.status.pod_ips.iter().map(|it| it.ip.parse().expect("an address")).collect(),
        }
    }

    fn may(&self, pod: &Pod, is_ingress: bool, packet: &Packet) -> bool {
        let word = if is_ingress { "Ingress" } else { "Egress" };
        let isolating: Vec<&NetworkPolicy> = self
            .policies
            .values()
            .filter(|it| it.metadata.namespace == pod.metadata.namespace)
            .filter(|it| it.spec.policy_types.iter().any(|it| it == word))
            .filter(|it| it.spec.pod_selector.matches(&pod.metadata.labels))
            .collect();
        let rules = |it: &'_ NetworkPolicy| if is_ingress { it.spec.ingress.clone() } else { it.spec.egress.clone() };
        isolating.is_empty()
            || isolating
                .iter()
                .any(|it| rules(it).iter().any(|rule| self.allows(rule, &it.metadata.namespace, is_ingress, packet)))
    }

    fn allows(&self, rule: &PolicyRule, namespace: &str, is_ingress: bool, packet: &Packet) -> bool {
        let other = if is_ingress { packet.from } else { packet.to };
        let is_peer = rule.peers.is_empty() || rule.peers.iter().any(|it| self.is_peer(it, namespace, other));
        is_peer && (rule.ports.is_empty() || rule.ports.iter().any(|it| self.is_port(it, packet)))
    }

    fn is_peer(&self, peer: &Peer, namespace: &str, address: IpAddr) -> bool {
        if let Some(block) = &peer.ip_block {
            let holds = |it: &String| Cidr::parse(it).expect("a range").contains(address);
            return holds(&block.cidr) && !block.except.iter().any(holds);
        }
        let Some(pod) = self.at(address) else { return false };
        let everything = LabelSelector::default();
        let is_in_namespace = match &peer.namespace_selector {
            None => pod.metadata.namespace == namespace,
            Some(selector) => self.namespaces.get(&pod.metadata.namespace).is_some_and(|it| selector.matches(it)),
        };
        is_in_namespace && peer.pod_selector.as_ref().unwrap_or(&everything).matches(&pod.metadata.labels)
    }

    fn is_port(&self, port: &PolicyPort, packet: &Packet) -> bool {
        if Protocol::parse(&port.protocol) != Some(packet.protocol) {
            return false;
        }
        match &port.port {
            None => true,
            Some(IntOrString::Int(first)) => (*first..=port.end_port.unwrap_or(*first)).contains(&packet.port),
            Some(IntOrString::String(name)) => self.at(packet.to).is_some_and(|pod| {
                let is_it = |it: &(&str, Protocol, u16)| it.0 == name && it.1 == packet.protocol && it.2 == packet.port;
                pod.named_ports().any(|it| is_it(&it))
            }),
        }
    }
}
