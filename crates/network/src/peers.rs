//! The ways to the Pods of other nodes, in the kernel: a VXLAN device that learns nothing, WireGuard, or plain routes.
//!
//! What stands there is compared with what is wanted, and only what differs is written. Routes bear a protocol number of their own,
//! by which they are known again.

mod tunnel_guard;
mod wireguard;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use corten_machine::{Layout, MachineError, command};
use corten_meta::address::Cidr;
use corten_proxy::{PodRoute, PodRoutes, RefusedWay, TunnelEnd, WireGuardTunnel};

use crate::bridge::remove_device;
use tunnel_guard::TunnelGuard;
pub use wireguard::{WireGuard, wireguard_lack};

/// The kernel's own port of VXLAN, which Linux has had before IANA gave it another; flannel's and Cilium's, too.
pub(crate) const PORT: u16 = 8472;
const VNI: u32 = 10_244;
/// Of no routing daemon (`/etc/iproute2/rt_protos`).
const PROTOCOL: &str = "213";
/// What a packet grows by in the tunnel: Ethernet, VXLAN, UDP, and the outer header.
const OVERHEAD_IPV4: u32 = 50;
const OVERHEAD_IPV6: u32 = 70;
/// What a link takes that nothing is known of.
const ETHERNET: u32 = 1500;

/// The ways to other nodes' Pods, on this machine.
#[derive(Clone, Debug)]
pub struct PeerRoutes {
    device: String,
    /// This node's own ranges.
    networks: Vec<Cidr>,
    guard: Arc<TunnelGuard>,
    wireguard: WireGuard,
}

impl PeerRoutes {
    pub fn new(layout: &Layout, networks: &[String], wireguard: WireGuard) -> Self {
        let networks: Vec<Cidr> = networks.iter().filter_map(|it| Cidr::parse(it)).collect();
        let guard = Arc::new(TunnelGuard::new(layout, networks.clone()));
        Self { device: device(layout), networks, guard, wireguard }
    }

    /// Makes the kernel have these ways and no others. Those that it refuses keep no other from being made.
    ///
    /// # Errors
    /// The kernel has no VXLAN, or no WireGuard, or does not answer.
    pub async fn apply(&self, wanted: &PodRoutes) -> Result<Vec<RefusedWay>, MachineError> {
        if wanted.own.is_none() {
            remove_device(&self.device).await?;
        }
        if wanted.wireguard.is_none() {
            self.wireguard.remove().await?;
        }
        // Before a tunnel is there.
        self.guard.follow(wanted).await.or_else(|error| self.wireguard.noted(Err(error)))?;
        let mut refused = match (wanted.own, &wanted.wireguard) {
            (Some(own), _) => self.tunnel(own).await?,
            (None, Some(tunnel)) => self.wireguard.put(tunnel, &self.networks).await?,
            (None, None) => Vec::new(),
        };
        let present = self.present().await;
        let changes = self.changes(wanted, &present);
        refused.extend(batch("bridge", &changes.bridge).await?);
        // Each family for itself: at a neighbour that the kernel refuses `ip` ends, with all lines that come after it.
        for lines in changes.ip.into_iter().filter(|it| !it.is_empty()) {
            tracing::info!(changes = lines.len(), "the routes to other nodes' pods are changed");
            refused.extend(batch("ip", &lines).await?);
        }
        Ok(refused)
    }

    /// This node's end of the tunnel. Its addresses are the first of each range, so that what this machine itself sends to a Pod
    /// comes back by the same way.
    async fn tunnel(&self, own: TunnelEnd) -> Result<Vec<RefusedWay>, MachineError> {
        let (device, local) = (self.device.as_str(), own.node.to_string());
        let there = ip(&["-d", "-o", "link", "show", "dev", device]).await.unwrap_or_default();
        let underlay = mtu_of(own.node).await;
        let mtu = underlay.saturating_sub(overhead(own.node)).to_string();
        let is_right = [format!(" id {VNI} "), format!(" local {local} "), format!(" dstport {PORT} ")];
        let is_same = is_right.iter().all(|it| there.contains(it.as_str()));
        if !is_same {
            remove_device(device).await?;
            let (vni, port) = (VNI.to_string(), PORT.to_string());
            let add =
                ["link", "add", device, "type", "vxlan", "id", &vni, "dstport", &port, "local", &local, "nolearning"];
            ip(&add).await?;
        }
        let settings = [format!(" mtu {mtu} "), format!(" {} ", mac(own.mac)), "UP".to_owned()];
        if !is_same || !settings.iter().all(|it| there.contains(it.as_str())) {
            ip(&["link", "set", device, "address", &mac(own.mac), "mtu", &mtu, "up"]).await?;
        }
        // A machine without IPv6 reaches others by IPv4 all the same.
        batch("ip", &own_addresses(device, &self.networks)).await
    }

    async fn present(&self) -> Present {
        let mut present = Present::default();
        for family in ["-4", "-6"] {
            let listed = ip(&[family, "-o", "route", "show", "proto", PROTOCOL]).await.unwrap_or_default();
            present.routes.extend(listed.lines().filter_map(route));
            let neighbours = ip(&[family, "neigh", "show", "dev", &self.device, "nud", "permanent"]).await;
            present.neighbours.extend(neighbours.unwrap_or_default().lines().filter_map(neighbour));
        }
        let listed = command::run("bridge", &["fdb", "show", "dev", &self.device], "").await.unwrap_or_default();
        present.forwarding.extend(listed.lines().filter_map(forwarding));
        present
    }

    fn changes(&self, wanted: &PodRoutes, present: &Present) -> Changes {
        let (device, wireguard) = (&self.device, &self.wireguard);
        let (mut changes, mut wanted_neighbours, mut ends) = (Changes::default(), BTreeMap::new(), BTreeMap::new());
        let mut wanted_routes = BTreeMap::new();
        for PodRoute { range, node, end } in &wanted.routes {
            let hop = match (end, &wanted.wireguard) {
                (Some(_), _) => Hop::By(range.address),
                (None, Some(_)) => Hop::Device(wireguard.device().to_owned()),
                (None, None) => Hop::By(*node),
            };
            wanted_routes.insert(*range, hop);
            if let Some(end) = end {
                wanted_neighbours.insert(range.address, (mac(end.mac), end.node));
                ends.insert(mac(end.mac), end.node);
            }
        }
        let node_of = |range: &Cidr| wanted.routes.iter().find(|it| it.range == *range).map(|it| it.node);
        let say = |lines: &mut Vec<Line>, node: Option<IpAddr>, text: String| lines.push(Line { node, text });
        for (mac, node) in &present.forwarding {
            if ends.get(mac) != Some(node) {
                say(&mut changes.bridge, None, format!("fdb del {mac} dev {device} dst {node}"));
            }
        }
        for (mac, node) in &ends {
            if !present.forwarding.contains(&(mac.clone(), *node)) {
                say(&mut changes.bridge, Some(*node), format!("fdb append {mac} dev {device} dst {node}"));
            }
        }
        for (address, (mac, node)) in &wanted_neighbours {
            if present.neighbours.get(address) != Some(mac) {
                let text = format!("neigh replace {address} lladdr {mac} dev {device} nud permanent");
                say(changes.of_family(*address), Some(*node), text);
            }
        }
        for address in present.neighbours.keys().filter(|it| !wanted_neighbours.contains_key(it)) {
            say(changes.of_family(*address), None, format!("neigh del {address} dev {device}"));
        }
        for range in present.routes.keys().filter(|it| !wanted_routes.contains_key(it)) {
            say(changes.of_family(range.address), None, format!("route del {range} proto {PROTOCOL}"));
        }
        for (range, hop) in wanted_routes.iter().filter(|it| present.routes.get(it.0) != Some(it.1)) {
            let to = match hop {
                Hop::By(end) if wanted_neighbours.contains_key(end) => format!("via {end} dev {device} onlink"),
                Hop::By(node) => format!("via {node}"),
                Hop::Device(device) => format!("dev {device}"),
            };
            let text = format!("route replace {range} {to} proto {PROTOCOL}");
            say(changes.of_family(range.address), node_of(range), text);
        }
        changes
    }
}

/// Makes this node's end of the tunnel ready for its first Pod: closed to what would pass it by, with its key and no peers.
///
/// # Errors
/// The kernel has no WireGuard, or the key cannot be kept.
pub async fn prepare_wireguard(layout: &Layout, wireguard: &WireGuard, all: &[Cidr]) -> Result<(), MachineError> {
    let tunnel = WireGuardTunnel { cluster_cidrs: all.to_vec(), ..WireGuardTunnel::default() };
    let closed = PodRoutes { wireguard: Some(tunnel), ..PodRoutes::default() };
    wireguard.noted(TunnelGuard::new(layout, Vec::new()).follow(&closed).await)?;
    wireguard.prepare().await
}

/// Takes the ways to other nodes' Pods away.
///
/// # Errors
/// The kernel keeps them.
pub async fn remove(layout: &Layout) -> Result<(), MachineError> {
    PeerRoutes::new(layout, &[], WireGuard::new(layout)).apply(&PodRoutes::default()).await.map(drop)
}

fn overhead(node: IpAddr) -> u32 {
    if node.is_ipv4() { OVERHEAD_IPV4 } else { OVERHEAD_IPV6 }
}

/// Beside the bridge, and as short as an interface's name must be.
pub(crate) fn device(layout: &Layout) -> String {
    format!("cvx{}", layout.bridge.trim_start_matches("corten"))
}

/// As [`device`].
pub(crate) fn wireguard_device(layout: &Layout) -> String {
    format!("cwg{}", layout.bridge.trim_start_matches("corten"))
}

/// Those that a tunnel's device has: what this machine sends into the tunnel itself is from there.
fn own_addresses(device: &str, networks: &[Cidr]) -> Vec<Line> {
    let address = |network: &Cidr| {
        let (bits, end) = if network.address.is_ipv4() { (32, "") } else { (128, " nodad") };
        Line { node: None, text: format!("address replace {}/{bits} dev {device}{end}", network.address) }
    };
    networks.iter().map(address).collect()
}

/// Where a route leads first.
#[derive(Debug, PartialEq, Eq)]
enum Hop {
    By(IpAddr),
    /// Who is behind it is known to the device.
    Device(String),
}

#[derive(Default)]
struct Present {
    routes: BTreeMap<Cidr, Hop>,
    neighbours: BTreeMap<IpAddr, String>,
    forwarding: BTreeSet<(String, IpAddr)>,
}

#[derive(Default)]
struct Changes {
    bridge: Vec<Line>,
    /// Of IPv4, and of IPv6.
    ip: [Vec<Line>; 2],
}

impl Changes {
    fn of_family(&mut self, address: IpAddr) -> &mut Vec<Line> {
        &mut self.ip[usize::from(address.is_ipv6())]
    }
}

/// What a program is told, and to which node that leads.
struct Line {
    node: Option<IpAddr>,
    text: String,
}

/// Has a program do all lines, and gives those that the kernel refuses.
async fn batch(program: &str, lines: &[Line]) -> Result<Vec<RefusedWay>, MachineError> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    match command::run(program, &["-force", "-batch", "-"], &text(lines)).await {
        Ok(_) => Ok(Vec::new()),
        Err(MachineError::Command { program, message }) => {
            let refused = refused(lines, &message);
            if refused.is_empty() { Err(MachineError::Command { program, message }) } else { Ok(refused) }
        }
        Err(other) => Err(other),
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|it| format!("{}\n", it.text)).collect()
}

/// `RTNETLINK answers: Network is unreachable; Command failed -:2`: the second line.
fn refused(lines: &[Line], said: &str) -> Vec<RefusedWay> {
    let (mut refused, mut why) = (Vec::new(), Vec::new());
    for part in said.split("; ") {
        let Some(number) = part.strip_prefix("Command failed -:") else {
            why.push(part);
            continue;
        };
        let line = number.parse().ok().and_then(|it: usize| lines.get(it.checked_sub(1)?));
        let why = std::mem::take(&mut why).join("; ");
        refused.extend(line.map(|it| RefusedWay { node: it.node, message: format!("{}: {why}", it.text) }));
    }
    refused
}

/// `10.244.1.0/24 via 10.244.1.0 dev cvx0 onlink`, `10.244.1.0/24 dev cwg0 scope link`
fn route(line: &str) -> Option<(Cidr, Hop)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hop = match after(&words, "via") {
        Some(via) => Hop::By(via.parse().ok()?),
        None => Hop::Device(after(&words, "dev")?.to_owned()),
    };
    Some((Cidr::parse(words.first()?)?, hop))
}

/// `10.244.1.0 lladdr 0e:58:0a:f4:01:00 PERMANENT`
fn neighbour(line: &str) -> Option<(IpAddr, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some((words.first()?.parse().ok()?, after(&words, "lladdr")?.to_owned()))
}

/// `0e:58:0a:f4:01:00 dst 192.168.0.2 self permanent`
fn forwarding(line: &str) -> Option<(String, IpAddr)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(((*words.first()?).to_owned(), after(&words, "dst")?.parse().ok()?))
}

fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    words.iter().position(|it| *it == word).and_then(|at| words.get(at + 1)).copied()
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|it| format!("{it:02x}")).join(":")
}

/// That of the interface with this address; Ethernet's where it is not to be found.
async fn mtu_of(address: IpAddr) -> u32 {
    let listed = ip(&["-o", "address", "show"]).await.unwrap_or_default();
    let text = address.to_string();
    let has = |words: &Vec<&str>| words.iter().any(|it| it.split('/').next() == Some(&*text));
    let found = listed.lines().map(|it| it.split_whitespace().collect::<Vec<_>>()).find(has);
    let Some(interface) = found.and_then(|it| it.get(1).map(|it| (*it).to_owned())) else { return ETHERNET };
    let link = ip(&["-o", "link", "show", "dev", &interface]).await.unwrap_or_default();
    let words: Vec<&str> = link.split_whitespace().collect();
    after(&words, "mtu").and_then(|it| it.parse().ok()).unwrap_or(ETHERNET)
}

async fn ip(args: &[&str]) -> Result<String, MachineError> {
    command::run("ip", args, "").await
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn end(text: &str, last: u8) -> TunnelEnd {
        TunnelEnd { node: text.parse().expect("an address"), mac: [0x0e, 0x58, 0x0a, 0xf4, last, 0] }
    }

    fn range(text: &str) -> Cidr {
        Cidr::parse(text).expect("a range")
    }

    fn both(families: &[Vec<Line>; 2]) -> String {
        families.iter().map(|it| text(it)).collect()
    }

    fn peers() -> PeerRoutes {
        let layout = Layout::new("/var/lib/corten", "/run/corten");
        PeerRoutes::new(&layout, &["10.244.0.0/24".to_owned()], WireGuard::new(&layout))
    }

    #[test]
    fn only_what_differs_is_written() {
        let two = end("192.168.0.2", 1);
        let route = |text: &str| PodRoute { range: range(text), node: two.node, end: Some(two) };
        let routes = BTreeSet::from([route("10.244.1.0/24"), route("fd00:10:244:1::/64")]);
        let wanted = PodRoutes { own: Some(end("192.168.0.1", 0)), routes, ..PodRoutes::default() };
        let changes = peers().changes(&wanted, &Present::default());
        assert_eq!(text(&changes.bridge), "fdb append 0e:58:0a:f4:01:00 dev cvx0 dst 192.168.0.2\n");
        assert_eq!(
            both(&changes.ip),
            "neigh replace 10.244.1.0 lladdr 0e:58:0a:f4:01:00 dev cvx0 nud permanent\n\
             route replace 10.244.1.0/24 via 10.244.1.0 dev cvx0 onlink proto 213\n\
             neigh replace fd00:10:244:1:: lladdr 0e:58:0a:f4:01:00 dev cvx0 nud permanent\n\
             route replace fd00:10:244:1::/64 via fd00:10:244:1:: dev cvx0 onlink proto 213\n"
        );
        let mut present = Present::default();
        present
            .routes
            .extend(["10.244.1.0/24 via 10.244.1.0 dev cvx0 onlink "].iter().filter_map(|it| super::route(it)));
        present.routes.extend(
            ["fd00:10:244:1::/64 via fd00:10:244:1:: dev cvx0 metric 1024 onlink pref medium"]
                .iter()
                .filter_map(|it| super::route(it)),
        );
        present.neighbours.extend(
            ["10.244.1.0 lladdr 0e:58:0a:f4:01:00 PERMANENT", "fd00:10:244:1:: lladdr 0e:58:0a:f4:01:00 PERMANENT"]
                .iter()
                .filter_map(|it| neighbour(it)),
        );
        present.forwarding.extend(forwarding("0e:58:0a:f4:01:00 dst 192.168.0.2 self permanent"));
        let changes = peers().changes(&wanted, &present);
        assert_eq!((text(&changes.bridge), both(&changes.ip)), (String::new(), String::new()));
    }

    #[test]
    fn a_node_that_has_gone_is_forgotten_and_one_that_has_moved_is_followed() {
        let mut present = Present::default();
        present.routes.insert(range("10.244.1.0/24"), Hop::By("10.244.1.0".parse().expect("an address")));
        present.neighbours.insert("10.244.1.0".parse().expect("an address"), "0e:58:0a:f4:01:00".to_owned());
        present.forwarding.extend(forwarding("0e:58:0a:f4:01:00 dst 192.168.0.2 self permanent"));
        let changes = peers().changes(&PodRoutes::default(), &present);
        assert_eq!(text(&changes.bridge), "fdb del 0e:58:0a:f4:01:00 dev cvx0 dst 192.168.0.2\n");
        assert_eq!(both(&changes.ip), "neigh del 10.244.1.0 dev cvx0\nroute del 10.244.1.0/24 proto 213\n");
        let moved = end("192.168.0.9", 1);
        let route = PodRoute { range: range("10.244.1.0/24"), node: moved.node, end: Some(moved) };
        let wanted =
            PodRoutes { own: Some(end("192.168.0.1", 0)), routes: BTreeSet::from([route]), ..PodRoutes::default() };
        let changes = peers().changes(&wanted, &present);
        assert_eq!(
            text(&changes.bridge),
            "fdb del 0e:58:0a:f4:01:00 dev cvx0 dst 192.168.0.2\nfdb append 0e:58:0a:f4:01:00 dev cvx0 dst 192.168.0.9\n"
        );
        assert_eq!(both(&changes.ip), "");
    }

    #[test]
    fn plain_routes_lead_to_the_node() {
        let node = "192.168.0.2".parse().expect("an address");
        let route = PodRoute { range: range("10.244.1.0/24"), node, end: None };
        let wanted = PodRoutes { routes: BTreeSet::from([route]), ..PodRoutes::default() };
        let changes = peers().changes(&wanted, &Present::default());
        assert_eq!(both(&changes.ip), "route replace 10.244.1.0/24 via 192.168.0.2 proto 213\n");
    }

    #[test]
    fn what_wireguard_brings_goes_by_its_device() {
        let node = "192.168.0.2".parse().expect("an address");
        let routes = ["10.244.1.0/24", "fd00:10:244:1::/64"].map(|it| PodRoute { range: range(it), node, end: None });
        let wireguard = Some(WireGuardTunnel::default());
        let wanted = PodRoutes { routes: routes.into(), wireguard, ..PodRoutes::default() };
        let mut present = Present::default();
        // One of a tunnel of before.
        present.routes.extend(super::route("10.244.1.0/24 via 10.244.1.0 dev cvx0 onlink "));
        present.routes.extend(super::route("fd00:10:244:1::/64 dev cwg0 proto 213 metric 1024 pref medium"));
        let changes = peers().changes(&wanted, &present);
        assert_eq!(both(&changes.ip), "route replace 10.244.1.0/24 dev cwg0 proto 213\n");
        present.routes.extend(super::route("10.244.1.0/24 dev cwg0 scope link "));
        assert_eq!(both(&peers().changes(&wanted, &present).ip), "");
    }

    pub(crate) fn run(line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        let output = std::process::Command::new(words[0]).args(&words[1..]).output().expect("started");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    pub(crate) fn block<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn a_way_that_is_refused_keeps_no_other_from_being_made() {
        crate::nft::tests::in_own_network(|| {
            run("ip link add wire type veth peer name far");
            run("ip address add 192.168.0.1/24 dev wire");
            run("ip link set wire up");
            run("ip link set far up");
            let route = |text: &str, node: &str| PodRoute {
                range: range(text),
                node: node.parse().expect("an address"),
                end: None,
            };
            // The one in the midst is on no link of this machine.
            let routes = BTreeSet::from([
                route("10.244.1.0/24", "192.168.0.2"),
                route("10.244.2.0/24", "203.0.113.9"),
                route("10.244.3.0/24", "192.168.0.3"),
            ]);
            let wanted = PodRoutes { routes, ..PodRoutes::default() };
            let refused = block(peers().apply(&wanted)).expect("the others are made");
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert_eq!(refused[0].node, Some("203.0.113.9".parse().expect("an address")));
            assert!(refused[0].message.starts_with("route replace 10.244.2.0/24 via 203.0.113.9"), "{refused:?}");
            let listed = run("ip -4 route show proto 213");
            assert_eq!(listed.lines().count(), 2, "{listed}");
            assert!(
                listed.contains("10.244.1.0/24 via 192.168.0.2") && listed.contains("10.244.3.0/24 via 192.168.0.3")
            );
        });
    }

    #[test]
    fn which_line_was_refused_is_read_from_what_was_said() {
        let line = |node: &str, text: &str| Line { node: node.parse().ok(), text: text.to_owned() };
        let lines = [line("192.0.2.1", "one"), line("192.0.2.2", "two"), line("", "three")];
        let said =
            "RTNETLINK answers: Network is unreachable; Command failed -:2; Error: gone; really; Command failed -:3";
        let told: Vec<_> = refused(&lines, said).into_iter().map(|it| (it.node, it.message)).collect();
        let two = (lines[1].node, "two: RTNETLINK answers: Network is unreachable".to_owned());
        assert_eq!(told, [two, (None, "three: Error: gone; really".to_owned())]);
        assert!(refused(&lines, "no such program").is_empty());
    }
}
