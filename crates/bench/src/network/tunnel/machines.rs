//! Two machines on one link, each with a Pod behind a bridge: one pair with the network that a node makes, one made by hand.
//!
//! ```text
//! Pod eth0 ── veth0, bridge, VXLAN, eth0 of a machine ── eth0, VXLAN, bridge, veth0 of the other ── eth0 Pod
//! ```

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, ensure};
use corten_machine::Layout;
use corten_meta::{Key, address::Cidr};
use corten_netpolicy::{Event, NetworkPolicies, PodSandbox};
use corten_network::{
    PolicyRules, ServiceRules, bridge, cni,
    nft::{Port, SourceGuard},
    peers::{PeerRoutes, WireGuard},
};
use corten_proxy::{Config, LocalNode, PlacedNode, PodNetworkMode, Proxy, pod_routes};
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::{namespace::Namespace, read},
    traffic::Ends,
};

const MACHINES: [usize; 2] = [0, 1];
const CLUSTER_CIDR: &str = "10.244.0.0/16";
/// Of the link, of which the tunnel takes 50 bytes.
const TUNNEL_MTU: usize = 1_450;

/// Of those that a node has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Of the tunnel, of what Pods may send, of Services, and of a policy that lets the other Pod in.
    All,
    /// That it takes only what comes from nodes, and brings only what comes from their Pods.
    OfTunnel,
}

pub(super) struct Cluster {
    name: &'static str,
    pods: [Namespace; 2],
    /// They go after their Pods.
    _machines: [Namespace; 2],
    _folder: Option<TempDir>,
}

impl Cluster {
    pub(super) fn corten(rules: Rules) -> Result<Self> {
        let (name, role) = match rules {
            Rules::All => ("with all rules of a node", "all"),
            Rules::OfTunnel => ("the tunnel alone", "alone"),
        };
        let (machines, pods) = namespaces(role)?;
        let folder = tempfile::tempdir()?;
        for n in MACHINES {
            let place = folder.path().join(n.to_string());
            let node = Node { n, layout: Layout::new(place.join("data"), place.join("run")) };
            plug_in(n, &machines[n], &pods[n])?;
            machines[n].run_async(async || node.prepare(rules).await).with_context(|| format!("making node {n}"))?;
        }
        Ok(Self { name, pods, _machines: machines, _folder: Some(folder) })
    }

    pub(super) fn by_hand() -> Result<Self> {
        let (machines, pods) = namespaces("hand")?;
        for n in MACHINES {
            let (machine, other) = (&machines[n], 1 - n);
            plug_in(n, machine, &pods[n])?;
            let (own, remote) = (machine_address(n), machine_address(other));
            for line in [
                "link add br0 type bridge".to_owned(),
                format!("address add {}/24 dev br0", gateway(n)),
                "link set br0 up".into(),
                "link set veth0 master br0 up".into(),
                format!("link add vx0 type vxlan id 42 local {own} remote {remote} dstport 4789 dev eth0"),
                format!("link set vx0 mtu {TUNNEL_MTU} up"),
                format!("address add 192.0.2.{}/24 dev vx0", n + 1),
                format!("route add {} via 192.0.2.{}", range(other), other + 1),
            ] {
                machine.ip(&line)?;
            }
            machine.run(|| Ok(std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?)).context("forwarding")?;
        }
        Ok(Self { name: "by hand", pods, _machines: machines, _folder: None })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn ends(&self) -> Ends<'_> {
        let [client, server] = &self.pods;
        Ends { client, server, address: pod_address(1).into() }
    }
}

fn range(n: usize) -> String {
    format!("10.244.{n}.0/24")
}

fn gateway(n: usize) -> String {
    format!("10.244.{n}.1")
}

fn pod_address(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 244, u8::from(n == 1), 2)
}

fn machine_address(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 89, 0, 1 + u8::from(n == 1))
}

fn pod_mac(n: usize) -> [u8; 6] {
    [0x0a, 0x58, 0x0a, 0xf4, u8::from(n == 1), 2]
}

/// Machines, on one link, and Pods.
fn namespaces(name: &str) -> Result<([Namespace; 2], [Namespace; 2])> {
    let new = |role: &str, n: usize| Namespace::new(&format!("{name}-{role}{n}"));
    let machines = [new("m", 0)?, new("m", 1)?];
    let pods = [new("p", 0)?, new("p", 1)?];
    machines[0].ip(&format!("link add eth0 type veth peer name eth0 netns {}", machines[1].name()))?;
    for n in MACHINES {
        machines[n].ip(&format!("address add {}/24 dev eth0", machine_address(n)))?;
        machines[n].ip("link set eth0 up")?;
    }
    Ok((machines, pods))
}

/// As the CNI plugin does it.
fn plug_in(n: usize, machine: &Namespace, pod: &Namespace) -> Result<()> {
    let mac = pod_mac(n).map(|it| format!("{it:02x}")).join(":");
    pod.ip(&format!("link add eth0 address {mac} type veth peer name veth0 netns {}", machine.name()))?;
    machine.ip("link set veth0 up")?;
    pod.ip(&format!("address add {}/24 dev eth0", pod_address(n)))?;
    pod.ip("link set eth0 up")?;
    pod.ip(&format!("route add default via {}", gateway(n)))
}

/// One of Corten's, as far as its network goes.
struct Node {
    n: usize,
    layout: Layout,
}

impl Node {
    /// In the machine's namespace.
    async fn prepare(&self, rules: Rules) -> Result<()> {
        let (layout, networks) = (&self.layout, [range(self.n)]);
        let cluster_cidrs = [Cidr::parse(CLUSTER_CIDR).expect("a range")];
        bridge::prepare(layout, &networks).await?;
        bridge::plug(layout, "veth0")?;
        self.lead_to_the_other(&networks, &cluster_cidrs).await?;
        if rules == Rules::OfTunnel {
            return Ok(());
        }
        cni::put_rules(layout, &networks, &cluster_cidrs).await?;
        let address = pod_address(self.n).into();
        let port = Port { interface: "veth0".into(), mac: pod_mac(self.n), addresses: vec![address] };
        SourceGuard::new(layout).put(vec![port]).await?;

        let services = ServiceRules::new(layout);
        let proxy = Proxy::new(Config {
            node_name: node_name(self.n),
            addresses: vec![machine_address(self.n).into()],
            pod_cidrs: networks.iter().filter_map(|it| Cidr::parse(it)).collect(),
            cluster_cidrs: cluster_cidrs.into(),
            ..Config::default()
        });
        services.apply(proxy.whole(&services.existing().await?)).await?;
        let mut policies = NetworkPolicies::new(&node_name(self.n));
        policies.step(self.news());
        PolicyRules::new(layout).apply(policies.whole()).await?;
        Ok(())
    }

    async fn lead_to_the_other(&self, networks: &[String; 1], cluster_cidrs: &[Cidr; 1]) -> Result<()> {
        let local_node = LocalNode {
            node_name: node_name(self.n),
            addresses: vec![machine_address(self.n).into()],
            pod_cidrs: networks.iter().filter_map(|it| Cidr::parse(it)).collect(),
            cluster_cidrs: cluster_cidrs.to_vec(),
            node_bits: (24, 64),
            mode: PodNetworkMode::Vxlan,
        };
        let nodes = MACHINES.map(placed).into_iter().collect::<Result<Vec<_>, _>>()?;
        let (wanted, waits) = pod_routes(&local_node, nodes.iter());
        ensure!(waits.is_empty(), "no way to the other node: {waits:?}");
        let refused = PeerRoutes::new(&self.layout, networks, WireGuard::new(&self.layout)).apply(&wanted).await?;
        ensure!(refused.is_empty(), "the kernel refuses the way to the other node: {refused:?}");
        Ok(())
    }

    /// What there is to know for policies.
    fn news(&self) -> Vec<Event> {
        let namespace = json!({"metadata": {"name": "default", "labels": {"team": "a"}}});
        let peers = json!([{"podSelector": {"matchLabels": {"app": "bench"}}}]);
        let policy = json!({
            "metadata": {"name": "bench", "namespace": "default"},
            "spec": {
                "podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": peers}], "egress": [{"to": peers}],
            },
        });
        let pods = MACHINES.map(|n| {
            Event::Pod(read(json!({
                "metadata": {"name": pod_name(n), "namespace": "default", "uid": pod_name(n), "labels": {"app": "bench"}},
                "spec": {"nodeName": node_name(n), "containers": []},
                "status": {"podIPs": [{"ip": pod_address(n)}]},
            })))
        });
        let plugged = PodSandbox {
            sandbox: pod_name(self.n),
            pod: Key::new("default", &*pod_name(self.n)),
            uid: pod_name(self.n),
            addresses: vec![IpAddr::from(pod_address(self.n))],
            labels: None,
        };
        let mut news = vec![Event::Namespace(read(namespace)), Event::Policy(read(policy)), Event::Plugged(plugged)];
        news.extend(pods);
        news
    }
}

fn node_name(n: usize) -> String {
    format!("n{n}")
}

fn pod_name(n: usize) -> String {
    format!("pod-{n}")
}

fn placed(n: usize) -> serde_json::Result<PlacedNode> {
    serde_json::from_value(json!({
        "metadata": {"name": node_name(n)},
        "spec": {"podCIDRs": [range(n)]},
        "status": {"addresses": [{"type": "InternalIP", "address": machine_address(n)}]},
    }))
}
