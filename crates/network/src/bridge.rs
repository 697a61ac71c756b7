//! The bridge all Pods of the node are plugged into: its addresses, and what the kernel must be told of it.
//!
//! It is there before the first Pod: the node itself listens at its addresses, for Pods and for nobody else.

use std::{
    fs, io,
    net::{IpAddr, UdpSocket},
    path::{Path, PathBuf},
};

use corten_api::cluster_network::ClusterNetwork;
use corten_machine::{Doing, Layout, MachineError, command};
use corten_meta::address::Cidr;
use rustix::net::{AddressFamily, SocketType, netdevice};

/// As the kernel shows it of an interface.
const IFF_UP: i64 = 1;

/// The part that the first node has of the cluster's Pod network: IPv6 where the kernel has it.
pub fn networks(network: &ClusterNetwork) -> Vec<String> {
    let is_had = |it: &Cidr| it.address.is_ipv4() || has_ipv6();
    network.first_parts().into_iter().filter(is_had).map(|it| it.to_string()).collect()
}

/// Of which families Pods have addresses beside IPv4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Families {
    ipv6: bool,
}

/// Those of Pods in these networks.
pub(crate) fn families(networks: &[String]) -> Families {
    Families { ipv6: have_ipv6(networks) }
}

/// All that a plug-in of another's can give on this machine.
pub(crate) fn have_families() -> Families {
    Families { ipv6: has_ipv6() }
}

/// Is there an IPv6 network among them?
fn have_ipv6(networks: &[String]) -> bool {
    networks.iter().filter_map(|it| Cidr::parse(it)).any(|it| it.address.is_ipv6())
}

/// Has the kernel IPv6, and is it on?
pub fn has_ipv6() -> bool {
    fs::read_to_string(ipv6("all", "disable_ipv6")).is_ok_and(|it| it.trim() == "0")
}

/// The node's own address in a network of Pods: the first, as the CNI plugin has it.
pub fn gateway(network: &str) -> Option<IpAddr> {
    Some(match Cidr::parse(network)?.address {
        IpAddr::V4(it) => IpAddr::V4((it.to_bits() + 1).into()),
        IpAddr::V6(it) => IpAddr::V6((it.to_bits() + 1).into()),
    })
}

/// Makes the bridge, gives it its addresses, and sets what forwarding needs. Harmless where that is done.
pub async fn prepare(layout: &Layout, networks: &[String]) -> Result<(), MachineError> {
    let bridge = layout.bridge.as_str();
    ip(&["link", "add", bridge, "type", "bridge"]).await.or_else(|error| harmless(error, "File exists"))?;
    // One of its own: else it takes a Pod's, and Pods lose their gateway when that Pod goes.
    if let Some(address) = networks.iter().find_map(|it| gateway(it)) {
        let [a, b, c, d] = last_octets(address);
        ip(&["link", "set", bridge, "address", &format!("0a:58:{a:02x}:{b:02x}:{c:02x}:{d:02x}")]).await?;
    }
    if have_ipv6(networks) {
        // A Pod that calls itself a router must not become the node's.
        set(ipv6(bridge, "accept_ra"), "0")?;
        set(ipv6(bridge, "accept_redirects"), "0")?;
    }
    for network in networks {
        let (Some(address), Some(cidr)) = (gateway(network), Cidr::parse(network)) else { continue };
        let with_bits = format!("{address}/{}", cidr.bits);
        let mut args = vec!["address", "replace", &with_bits, "dev", bridge];
        if cidr.address.is_ipv6() {
            // Nobody else can have it: it may be used at once.
            args.push("nodad");
        }
        ip(&args).await?;
    }
    ip(&["link", "set", bridge, "up"]).await?;
    for cidr in networks.iter().filter_map(|it| Cidr::parse(it)).filter(|it| !has_route(bridge, it)) {
        // An address brings its route once, and does not bring it back.
        ip(&["route", "replace", &format!("{}/{}", cidr.address, cidr.bits), "dev", bridge, "proto", "kernel"]).await?;
    }
    // What this machine sends to a node port at 127.0.0.1 leaves through the bridge. What comes by wire for such an address
    // is dropped by the rules of Services.
    set(Path::new("/proc/sys/net/ipv4/conf").join(bridge).join("route_localnet"), "1")?;
    set("/proc/sys/net/ipv4/ip_forward", "1")?;
    if have_ipv6(networks) {
        forward_ipv6()?;
    }
    Ok(())
}

/// Has the kernel forward packets of every family that it has.
pub(crate) fn forward() -> Result<(), MachineError> {
    set("/proc/sys/net/ipv4/ip_forward", "1")?;
    if has_ipv6() { forward_ipv6() } else { Ok(()) }
}

fn last_octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(it) => it.octets(),
        IpAddr::V6(it) => {
            let [.., a, b, c, d] = it.octets();
            [a, b, c, d]
        }
    }
}

/// What is no longer as [`prepare`] made it. A socket can be bound to an address that the machine has, and to no other.
pub fn changed(layout: &Layout, networks: &[String]) -> Option<String> {
    let bridge = &layout.bridge;
    if !is_up(bridge) {
        return Some(format!("{bridge} is down or gone"));
    }
    let is_lost = |it: &IpAddr| UdpSocket::bind((*it, 0)).is_err();
    if let Some(address) = networks.iter().filter_map(|it| gateway(it)).find(is_lost) {
        return Some(format!("{bridge} has lost its address {address}"));
    }
    let lost_route = networks.iter().filter_map(|it| Cidr::parse(it)).find(|it| !has_route(bridge, it));
    if let Some(network) = lost_route {
        return Some(format!("the route to {}/{} by {bridge} is gone", network.address, network.bits));
    }
    let is_off = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|it| it.trim() == "0");
    switches(bridge, networks).into_iter().find(is_off).map(|it| format!("{} is 0", it.display()))
}

pub fn is_up(interface: &str) -> bool {
    let flags = fs::read_to_string(format!("/sys/class/net/{interface}/flags")).unwrap_or_default();
    i64::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|it| it & IFF_UP != 0)
}

/// As the kernel lists its routes; yes where it lists none that can be read.
pub(crate) fn has_route(bridge: &str, network: &Cidr) -> bool {
    let table = if network.address.is_ipv6() { "/proc/net/ipv6_route" } else { "/proc/net/route" };
    fs::read_to_string(table).map_or(true, |it| lists_route(&it, bridge, network))
}

/// IPv4: name, destination as a number of this machine. IPv6: destination, length, …, name.
fn lists_route(table: &str, bridge: &str, network: &Cidr) -> bool {
    table.lines().map(|it| it.split_whitespace().collect::<Vec<_>>()).any(|words| match network.address {
        IpAddr::V4(it) => {
            let destination = format!("{:08X}", u32::from_ne_bytes(it.octets()));
            words.first() == Some(&bridge) && words.get(1) == Some(&&*destination)
        }
        IpAddr::V6(it) => {
            let (destination, bits) = (format!("{:032x}", it.to_bits()), format!("{:02x}", network.bits));
            words.last() == Some(&bridge) && words.first() == Some(&&*destination) && words.get(1) == Some(&&*bits)
        }
    })
}

/// What must be 1 for Pods to be reached.
fn switches(bridge: &str, networks: &[String]) -> Vec<PathBuf> {
    let folder = Path::new("/proc/sys/net");
    let mut switches = vec![
        folder.join("ipv4/ip_forward"),
        folder.join("ipv4/conf").join(bridge).join("route_localnet"),
        folder.join("bridge/bridge-nf-call-iptables"),
    ];
    if have_ipv6(networks) {
        switches.extend([ipv6("all", "forwarding"), folder.join("bridge/bridge-nf-call-ip6tables")]);
    }
    switches
}

/// Puts one end of a Pod's cable onto the bridge, as the CNI plugin does.
pub fn plug(layout: &Layout, interface: &str) -> Result<(), MachineError> {
    for settings in [&["master", &layout.bridge, "up"][..], &["type", "bridge_slave", "hairpin", "on"]] {
        let mut ip = std::process::Command::new("ip");
        let output = ip.args(["link", "set", interface]).args(settings).output();
        let output = output.doing("run ip for", interface.as_ref())?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(MachineError::Command { program: format!("ip link set {interface}"), message });
        }
    }
    Ok(())
}

/// A machine that forwards no longer listens to routers, unless told to.
fn forward_ipv6() -> Result<(), MachineError> {
    for entry in fs::read_dir("/proc/sys/net/ipv6/conf").into_iter().flatten().flatten() {
        let accept = entry.path().join("accept_ra");
        if fs::read_to_string(&accept).is_ok_and(|it| it.trim() == "1") {
            set(&accept, "2")?;
        }
    }
    set(ipv6("all", "forwarding"), "1")
}

fn ipv6(interface: &str, name: &str) -> PathBuf {
    Path::new("/proc/sys/net/ipv6/conf").join(interface).join(name)
}

/// Has packets from Pod to Pod pass the packet filter, and says whether they do. Otherwise answers would not find back through a
/// Service where both Pods are on this node.
pub(crate) async fn filter_bridged(families: Families) -> bool {
    let folder = Path::new("/proc/sys/net/bridge");
    if !folder.exists() {
        // Where it is built in, or not there at all, this fails; the folder says which.
        let _ = command::run("modprobe", &["br_netfilter"], "").await;
    }
    let names = ["bridge-nf-call-iptables"].into_iter().chain(families.ipv6.then_some("bridge-nf-call-ip6tables"));
    names.map(|it| set(folder.join(it), "1")).all(|it| it.is_ok())
}

/// Written only where it says something else: some of these files are read-only where they already say it.
fn set(path: impl AsRef<Path>, value: &str) -> Result<(), MachineError> {
    let path = path.as_ref();
    let current = fs::read_to_string(path);
    if current.as_ref().is_ok_and(|it| it.trim() == value) {
        return Ok(());
    }
    fs::write(path, value).doing("write", path)
}

async fn ip(args: &[&str]) -> Result<(), MachineError> {
    command::run("ip", args, "").await.map(drop)
}

fn harmless(error: MachineError, what: &str) -> Result<(), MachineError> {
    match error {
        MachineError::Command { message, .. } if message.contains(what) => Ok(()),
        other => Err(other),
    }
}

/// Takes the bridge away, if it is there.
pub async fn remove(layout: &Layout) -> Result<(), MachineError> {
    remove_device(&layout.bridge).await
}

/// Asked of the kernel itself: the folder of devices may be another network's.
pub(crate) fn is_there(interface: &str) -> bool {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
    socket.is_ok_and(|it| netdevice::name_to_index(it, interface).is_ok())
}

/// Harmless where it is gone, or this machine never had the program to make one with.
pub(crate) async fn remove_device(device: &str) -> Result<(), MachineError> {
    // Asked of the kernel itself: the folder of devices may be another network's.
    ip(&["link", "delete", device]).await.or_else(|error| harmless(error, "Cannot find device")).or_else(|error| {
        let is_gone = matches!(&error, MachineError::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound);
        if is_gone { Ok(()) } else { Err(error) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: &str = "10.244.0.0/24";
    const IPV6: &str = "fd00:10:244::/64";

    #[test]
    fn the_node_has_the_first_address() {
        for (network, expected) in [(IPV4, "10.244.0.1"), (IPV6, "fd00:10:244::1"), ("10.244.7.0/24", "10.244.7.1")] {
            assert_eq!(gateway(network).map(|it| it.to_string()).as_deref(), Some(expected));
        }
        assert_eq!(gateway("nonsense"), None);
    }

    #[test]
    fn a_route_is_found_among_the_kernels() {
        let v4 = "Iface\tDestination\tGateway \tFlags\n\
            eth1\t00000000\tFE004D0A\t0003\n\
            corten0\t0000F40A\t00000000\t0001\n";
        let v6 = "fd000010024400000000000000000000 40 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 00000100 00000001 00000000 00000001  corten0\n";
        for (network, table) in [(IPV4, v4), (IPV6, v6)] {
            let network = Cidr::parse(network).expect("a network");
            assert!(lists_route(table, "corten0", &network), "{network:?}");
            assert!(!lists_route(table, "corten1", &network), "{network:?}");
            assert!(!lists_route("", "corten0", &network), "{network:?}");
        }
    }
}
