//! Lets the tunnel take packets of this cluster's nodes only, and bring only what comes from their Pods.
//!
//! VXLAN knows no sender: whoever reaches the port could put packets into the Pods' network, past every policy and from whatever
//! address. What a node's own Pods send there is dropped where they are plugged in ([`crate::cni`]), and here once more: a Service may
//! have led it there meanwhile, and at another node it would come from this one.

use std::{
    fmt::{Display, Write as _},
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use corten_machine::{Layout, MachineError, command};
use corten_proxy::PodRoutes;

use super::{PORT, device};
use crate::nft;

/// A table of its own, written anew as a whole when nodes come and go.
#[derive(Debug)]
pub(crate) struct TunnelGuard {
    table: String,
    device: String,
    bridge: String,
    /// What was written last.
    written: Mutex<Option<String>>,
}

impl TunnelGuard {
    pub(crate) fn new(layout: &Layout) -> Self {
        let (table, device, bridge) = (layout.tunnel_table(), device(layout), layout.bridge.clone());
        Self { table, device, bridge, written: Mutex::default() }
    }

    /// Before the tunnel is there, and whenever its ends are others.
    ///
    /// # Errors
    /// The kernel does not take the rules.
    pub(crate) async fn put(&self, wanted: &PodRoutes) -> Result<(), MachineError> {
        let rules = self.rules(wanted);
        let is_same = self.written.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(&rules);
        if is_same && nft::is_there(&self.table).await? {
            return Ok(());
        }
        command::run("nft", &["-f", "-"], &rules).await?;
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        Ok(())
    }

    /// Takes it away. Harmless where it is gone.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub(crate) async fn remove(&self) -> Result<(), MachineError> {
        if nft::is_there(&self.table).await? {
            command::run("nft", &["delete", "table", "inet", &self.table], "").await?;
        }
        Ok(())
    }

    fn rules(&self, wanted: &PodRoutes) -> String {
        let Self { table, device, bridge, .. } = self;
        let (mut sets, mut outer, mut inner) = (String::new(), String::new(), String::new());
        for (ip, digit, kind) in [("ip", 4, "ipv4_addr"), ("ip6", 6, "ipv6_addr")] {
            let of_family = |it: &IpAddr| it.is_ipv4() == (digit == 4);
            let nodes = elements(wanted.nodes.iter().filter(|it| of_family(it)));
            let ranges = elements(wanted.routes.iter().map(|it| &it.range).filter(|it| of_family(&it.address)));
            say(&mut sets, format_args!("\tset nodes{digit} {{ type {kind};{nodes} }}"));
            say(&mut sets, format_args!("\tset pods{digit} {{ type {kind}; flags interval;{ranges} }}"));
            let stranger = format!("{ip} saddr != @nodes{digit} counter drop");
            say(&mut outer, format_args!("\t\tiifname != \"lo\" udp dport {PORT} {stranger}"));
            // Of this node's own Pods nothing comes from another, and of the outside nothing comes through the tunnel.
            say(&mut inner, format_args!("\t\tiifname \"{device}\" {ip} saddr != @pods{digit} counter drop"));
        }
        // What others tunnel through this machine is theirs: outside only what is for it itself is looked at.
        format!(
            "table inet {table}\n\
             delete table inet {table}\n\
             table inet {table} {{\n\
             {sets}\
             \tchain outer {{\n\
             \t\ttype filter hook input priority raw; policy accept;\n\
             {outer}\
             \t}}\n\
             \tchain forwarded {{\n\
             \t\ttype filter hook forward priority raw; policy accept;\n\
             \t\tiifname \"{bridge}\" udp dport {PORT} counter drop\n\
             \t}}\n\
             \tchain inner {{\n\
             \t\ttype filter hook prerouting priority raw; policy accept;\n\
             {inner}\
             \t}}\n\
             }}\n"
        )
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

    use corten_meta::address::Cidr;
    use corten_proxy::{PodRoute, TunnelEnd};

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
        PodRoutes { own: end, routes, nodes: BTreeSet::from([node]) }
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
            let guard = TunnelGuard::new(&Layout::new("/none/data", "/run/corten"));
            block(guard.put(&wanted("192.0.2.2"))).expect("taken");
            let listed = run("nft list table inet corten_tunnel");
            for expected in [
                "elements = { 192.0.2.2 }",
                "elements = { 10.244.1.0/24 }",
                "elements = { fd00:10:244:1::/64 }",
                "iifname != \"lo\" udp dport 8472 ip saddr != @nodes4 counter",
                "iifname \"cvx0\" ip6 saddr != @pods6 counter",
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
            block(guard.put(&wanted("192.0.2.3"))).expect("taken");
            assert!(run("nft list set inet corten_tunnel nodes4").contains("192.0.2.3"));
            run("nft delete table inet corten_tunnel");
            block(guard.put(&wanted("192.0.2.3"))).expect("taken");
            let before = run("nft -a list table inet corten_tunnel");
            block(guard.put(&wanted("192.0.2.3"))).expect("nothing to do");
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
            block(TunnelGuard::new(&layout).put(&wanted("192.0.2.3"))).expect("taken");
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
}
