//! Lets a tunnel take packets of this cluster's nodes only, and bring only what comes from their Pods.
//!
//! VXLAN knows no sender: whoever reaches the port could put packets into the Pods' network, past every policy and from whatever
//! address. What a node's own Pods send there is dropped where they are plugged in ([`crate::cni`]), and here once more: a Service may
//! have led it there meanwhile, and at another node it would come from this one.
//!
//! What has the address of another node's Pod comes through the tunnel, or was sent in its name by a machine of the same network.
//!
//! WireGuard knows its senders. Nothing shall pass it by: packets with addresses of Pods come from other machines, and go there, by
//! its device or not at all, also while that is not there yet.

use std::{
    fmt::{Display, Write as _},
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use corten_machine::{Layout, MachineError, command};
use corten_meta::address::Cidr;
use corten_proxy::PodRoutes;

use super::{PORT, device, wireguard_device};
use crate::nft;

/// A table of its own, written anew as a whole when nodes come and go.
#[derive(Debug)]
pub(crate) struct TunnelGuard {
    table: String,
    device: String,
    wireguard: String,
    bridge: String,
    /// This node's own ranges of Pods.
    networks: Vec<Cidr>,
    /// What was written last.
    written: Mutex<Option<String>>,
}

impl TunnelGuard {
    pub(crate) fn new(layout: &Layout, networks: Vec<Cidr>) -> Self {
        let (table, device, bridge) = (layout.tunnel_table(), device(layout), layout.bridge.clone());
        let wireguard = wireguard_device(layout);
        Self { table, device, wireguard, bridge, networks, written: Mutex::default() }
    }

    /// Has the rules be there that a tunnel needs, and none where there is no tunnel.
    ///
    /// # Errors
    /// The kernel does not take the rules.
    pub(crate) async fn follow(&self, wanted: &PodRoutes) -> Result<(), MachineError> {
        match &wanted.wireguard {
            Some(tunnel) => self.write(self.nothing_passes_by(&tunnel.cluster_cidrs)).await,
            None if wanted.own.is_some() => self.write(self.rules(wanted)).await,
            None => self.remove().await,
        }
    }

    async fn write(&self, rules: String) -> Result<(), MachineError> {
        let is_same = self.written.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(&rules);
        if is_same && nft::is_there(&self.table).await? {
            return Ok(());
        }
        command::run("nft", &["-f", "-"], &rules).await?;
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        Ok(())
    }

    /// Takes it away. Harmless where it is gone.
    async fn remove(&self) -> Result<(), MachineError> {
        if nft::is_there(&self.table).await? {
            command::run("nft", &["delete", "table", "inet", &self.table], "").await?;
        }
        Ok(())
    }

    /// The kernel goes through a rule's tests as they are written, for every packet: what most packets fail stands first, and names of
    /// devices, which are compared as texts, last or in one map.
    fn rules(&self, wanted: &PodRoutes) -> String {
        let Self { device, bridge, networks, .. } = self;
        let [mut sets, mut outer, mut tunnelled, mut inner] = [const { String::new() }; 4];
        for (family, ip, digit, kind) in [("ipv4", "ip", 4, "ipv4_addr"), ("ipv6", "ip6", 6, "ipv6_addr")] {
            let of_family = |it: &IpAddr| it.is_ipv4() == (digit == 4);
            let nodes = elements(wanted.nodes.iter().filter(|it| of_family(it)));
            let ranges = elements(wanted.routes.iter().map(|it| &it.range).filter(|it| of_family(&it.address)));
            say(&mut sets, format_args!("\tset nodes{digit} {{ type {kind};{nodes} }}"));
            say(&mut sets, format_args!("\tset pods{digit} {{ type {kind}; flags interval;{ranges} }}"));
            let all = wanted.routes.iter().map(|it| &it.range).chain(networks).filter(|it| of_family(&it.address));
            let all = elements(all);
            say(&mut sets, format_args!("\tset all{digit} {{ type {kind}; flags interval;{all} }}"));
            let stranger = format!("{ip} saddr != @nodes{digit} iifname != \"lo\" counter drop");
            say(&mut outer, format_args!("\t\tmeta nfproto {family} udp dport {PORT} {stranger}"));
            // Of this node's own Pods nothing comes from another, and of the outside nothing comes through the tunnel.
            say(&mut tunnelled, format_args!("\t\t{ip} saddr != @pods{digit} counter drop"));
            // Packets of Pods come by the bridge or through the tunnel: what else has their addresses was sent in their name.
            say(&mut inner, format_args!("\t\t{ip} saddr @all{digit} counter drop"));
        }
        // What others tunnel through this machine is theirs: outside only what is for it itself is looked at.
        self.table(&format!(
            "{sets}\
             \tchain outer {{\n\
             \t\ttype filter hook input priority raw; policy accept;\n\
             {outer}\
             \t}}\n\
             \tchain forwarded {{\n\
             \t\ttype filter hook forward priority raw; policy accept;\n\
             \t\tudp dport {PORT} iifname \"{bridge}\" counter drop\n\
             \t}}\n\
             \tchain tunnelled {{\n\
             {tunnelled}\
             \t}}\n\
             \tchain inner {{\n\
             \t\ttype filter hook prerouting priority raw; policy accept;\n\
             \t\tiifname vmap {{ \"lo\" : accept, \"{bridge}\" : accept, \"{device}\" : goto tunnelled }}\n\
             {inner}\
             \t}}\n"
        ))
    }

    /// `all` are the ranges of the cluster's Pods.
    fn nothing_passes_by(&self, all: &[Cidr]) -> String {
        let Self { wireguard, bridge, .. } = self;
        let (mut sets, mut inbound, mut outbound) = (String::new(), String::new(), String::new());
        for (ip, digit, kind) in [("ip", 4, "ipv4_addr"), ("ip6", 6, "ipv6_addr")] {
            let ranges = elements(all.iter().filter(|it| it.address.is_ipv4() == (digit == 4)));
            say(&mut sets, format_args!("\tset pods{digit} {{ type {kind}; flags interval;{ranges} }}"));
            let own = format!("{{ \"lo\", \"{bridge}\", \"{wireguard}\" }}");
            say(&mut inbound, format_args!("\t\tiifname != {own} {ip} saddr @pods{digit} counter drop"));
            say(&mut outbound, format_args!("\t\toifname != {own} {ip} daddr @pods{digit} counter drop"));
        }
        self.table(&format!(
            "{sets}\
             \tchain inbound {{\n\
             \t\ttype filter hook prerouting priority raw; policy accept;\n\
             {inbound}\
             \t}}\n\
             \tchain outbound {{\n\
             \t\ttype filter hook postrouting priority raw; policy accept;\n\
             {outbound}\
             \t}}\n"
        ))
    }

    /// One transaction: the table is declared, so that it can be deleted, then written anew.
    fn table(&self, content: &str) -> String {
        let table = &self.table;
        format!("table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n{content}}}\n")
    }
}

fn say(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to memory does not fail");
}

/// A set without elements says nothing of them.
fn elements(all: impl Iterator<Item = impl Display>) -> String {
    let all: Vec<String> = all.map(|it| it.to_string()).collect();
    if all.is_empty() { String::new() } else { format!(" elements = {{ {} }}", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, net::UdpSocket, sync::mpsc, thread, time::Duration};

    use corten_proxy::{PodRoute, TunnelEnd, WireGuardTunnel};

    use super::*;
    use crate::{
        nft::tests::in_own_network,
        peers::tests::{block, run},
    };

    fn wanted(node: &str) -> PodRoutes {
        let node: IpAddr = node.parse().expect("an address");
        let end = Some(TunnelEnd { node, mac: [0x0e, 0x58, 10, 244, 1, 0] });
        let route = |range: &str| PodRoute { range: Cidr::parse(range).expect("a range"), node, end };
        let routes = ["10.244.1.0/24", "fd00:10:244:1::/64"].map(route).into();
        PodRoutes { own: end, routes, nodes: BTreeSet::from([node]), ..PodRoutes::default() }
    }

    type Work = Box<dyn FnOnce() + Send>;

    /// A thread in a network of its own, at the other end of `wire`.
    struct Far {
        work: mpsc::Sender<Work>,
        done: mpsc::Receiver<()>,
    }

    impl Far {
        fn begin() -> Self {
            let ((work, all), (say, done), (told, thread)) =
                (mpsc::channel::<Work>(), mpsc::channel(), mpsc::channel());
            thread::spawn(move || {
                in_own_network(move || {
                    told.send(rustix::thread::gettid().as_raw_nonzero()).expect("it is waited for");
                    for work in all {
                        work();
                        say.send(()).expect("it is waited for");
                    }
                });
            });
            let thread = thread.recv().expect("it has begun");
            run("ip link add wire type veth peer name far");
            run(&format!("ip link set far netns /proc/{}/task/{thread}/ns/net", std::process::id()));
            let this = Self { work, done };
            this.does(|| {
                run("ip address add 192.0.2.2/24 dev far");
                run("ip address add 192.0.2.3/24 dev far");
                run("ip link set far up");
            });
            this
        }

        fn does(&self, work: impl FnOnce() + Send + 'static) {
            self.work.send(Box::new(work)).expect("it runs");
            self.done.recv().expect("it went well");
        }
    }

    /// Two networks with a wire between them: who is no node is not heard, whatever it sends.
    #[test]
    fn only_nodes_are_heard() {
        in_own_network(|| {
            let guard = TunnelGuard::new(
                &Layout::new("/none/data", "/run/corten"),
                Cidr::parse("10.244.0.0/24").into_iter().collect(),
            );
            block(guard.follow(&wanted("192.0.2.2"))).expect("taken");
            let listed = run("nft list table inet corten_tunnel");
            for expected in [
                "elements = { 192.0.2.2 }",
                "elements = { 10.244.1.0/24 }",
                "elements = { fd00:10:244:1::/64 }",
                "udp dport 8472 ip saddr != @nodes4 iifname != \"lo\" counter",
                "\t\tip6 saddr != @pods6 counter",
                "elements = { 10.244.0.0/24, 10.244.1.0/24 }",
                "iifname vmap { \"lo\" : accept, \"cvx0\" : goto tunnelled, \"corten0\" : accept }",
                "\t\tip saddr @all4 counter",
            ] {
                assert!(listed.contains(expected), "{expected}: {listed}");
            }
            let far = Far::begin();
            run("ip address add 192.0.2.1/24 dev wire");
            run("ip link set wire up");
            let socket = UdpSocket::bind("192.0.2.1:8472").expect("bound");
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            let hear = |from: &'static str| {
                far.does(move || {
                    let sender = UdpSocket::bind((from, 0)).expect("bound");
                    sender.send_to(from.as_bytes(), "192.0.2.1:8472").expect("sent");
                });
            };
            // What comes second is heard first.
            hear("192.0.2.3");
            hear("192.0.2.2");
            let mut heard = [0; 16];
            let n = socket.recv(&mut heard).expect("a packet");
            assert_eq!(&heard[..n], b"192.0.2.2");
            assert!(run("nft list table inet corten_tunnel").contains("packets 1 bytes"));

            // Written anew where nodes change and where somebody took it away, and else not at all.
            block(guard.follow(&wanted("192.0.2.3"))).expect("taken");
            assert!(run("nft list set inet corten_tunnel nodes4").contains("192.0.2.3"));
            run("nft delete table inet corten_tunnel");
            block(guard.follow(&wanted("192.0.2.3"))).expect("taken");
            let before = run("nft -a list table inet corten_tunnel");
            block(guard.follow(&wanted("192.0.2.3"))).expect("nothing to do");
            assert_eq!(run("nft -a list table inet corten_tunnel"), before);
            block(guard.remove()).expect("removed");
            block(guard.remove()).expect("harmless");
        });
    }

    /// A Service leads to whatever a hostNetwork Pod has, also to the tunnel of its node.
    #[test]
    fn no_service_leads_a_pod_to_the_tunnel_of_another_node() {
        in_own_network(|| {
            let layout = Layout::new("/none/data", "/run/corten");
            block(TunnelGuard::new(&layout, Vec::new()).follow(&wanted("192.0.2.3"))).expect("taken");
            let far = Far::begin();
            run(&format!("ip link set wire name {}", layout.bridge));
            run(&format!("ip address add 192.0.2.1/24 dev {}", layout.bridge));
            run(&format!("ip link set {} up", layout.bridge));
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("written");
            run("nft add table ip services");
            run("nft add chain ip services before { type nat hook prerouting priority dstnat ; }");
            run("nft add chain ip services behind { type nat hook postrouting priority srcnat ; }");
            for (asked, port) in [(53, PORT), (54, PORT + 1)] {
                run(&format!("nft add rule ip services before udp dport {asked} dnat to 192.0.2.3:{port}"));
            }
            run("nft add rule ip services behind masquerade");
            far.does(|| {
                let [tunnel, other] = [PORT, PORT + 1].map(|it| UdpSocket::bind(("192.0.2.3", it)).expect("bound"));
                let pod = UdpSocket::bind("192.0.2.2:0").expect("bound");
                // What comes second is heard, and what went before it was not.
                pod.send_to(b"wrapped", "192.0.2.1:53").expect("sent");
                pod.send_to(b"plain", "192.0.2.1:54").expect("sent");
                other.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
                let (n, from) = other.recv_from(&mut [0; 16]).expect("a packet");
                assert_eq!((n, from.ip().to_string()), (5, "192.0.2.1".to_owned()), "it comes from the node");
                tunnel.set_nonblocking(true).expect("set");
                let heard = tunnel.recv(&mut [0; 16]).expect_err("nothing came");
                assert_eq!(heard.kind(), std::io::ErrorKind::WouldBlock);
            });
            assert!(run("nft list chain inet corten_tunnel forwarded").contains("packets 1 "));
        });
    }

    /// What has addresses of Pods passes by WireGuard's device, or not at all.
    #[test]
    fn nothing_of_pods_passes_wireguard_by() {
        in_own_network(|| {
            let guard = TunnelGuard::new(&Layout::new("/none/data", "/run/corten"), Vec::new());
            let cluster_cidrs = ["192.0.2.2/32", "198.51.100.0/24"].iter().filter_map(|it| Cidr::parse(it)).collect();
            let wireguard = Some(WireGuardTunnel { cluster_cidrs, ..WireGuardTunnel::default() });
            let wanted = PodRoutes { wireguard, ..PodRoutes::default() };
            block(guard.follow(&wanted)).expect("taken");
            let far = Far::begin();
            run("ip address add 192.0.2.1/24 dev wire");
            run("ip link set wire up");
            let socket = UdpSocket::bind("192.0.2.1:7000").expect("bound");
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            let hear = |from: &'static str| {
                far.does(move || {
                    let sender = UdpSocket::bind((from, 0)).expect("bound");
                    sender.send_to(from.as_bytes(), "192.0.2.1:7000").expect("sent");
                });
            };
            // What comes second is heard first: the other says that it is a Pod.
            hear("192.0.2.2");
            hear("192.0.2.3");
            let mut heard = [0; 16];
            let n = socket.recv(&mut heard).expect("a packet");
            assert_eq!(&heard[..n], b"192.0.2.3");
            assert!(run("nft list chain inet corten_tunnel inbound").contains("packets 1 "));
            // Where no route leads to a Pod but the default one, nothing goes there in the clear.
            run("ip route add default via 192.0.2.3");
            socket.send_to(b"clear", "198.51.100.7:7000").expect_err("the filter refuses it");
            socket.send_to(b"other", "203.0.113.7:7000").expect("sent");
            assert!(run("nft list chain inet corten_tunnel outbound").contains("packets 1 "));
            block(guard.follow(&PodRoutes::default())).expect("removed");
            socket.send_to(b"clear", "198.51.100.7:7000").expect("sent");
        });
    }
}
