//! Routes of others on this machine to the Pods' addresses: a bridge of another cluster, a tunnel, a rule that drops.

use corten_kubelet::NodeProblem;
use corten_machine::command;
use corten_meta::address::Cidr;

/// Routes that the kernel makes for the machine's own addresses: the network they are in has a route beside them.
const OF_OWN_ADDRESSES: [&str; 4] = ["local", "broadcast", "anycast", "multicast"];
/// Routes that lead nowhere.
const TO_NOWHERE: [&str; 4] = ["blackhole", "prohibit", "throw", "unreachable"];

/// What others' routes take of the Pods' networks, in all routing tables; `own` are the node's devices. A machine that does not list them has none.
pub(crate) async fn taken(own: &[&str], networks: &[String]) -> Vec<NodeProblem> {
    let networks: Vec<Cidr> = networks.iter().filter_map(|it| Cidr::parse(it)).collect();
    let mut found = Vec::new();
    for family in ["-4", "-6"] {
        let listed = command::run("ip", &[family, "-o", "route", "show", "table", "all"], "").await;
        found.extend(others(&listed.unwrap_or_default(), own, &networks));
    }
    found
}

/// A wider route than the Pods' own takes nothing: the kernel follows the narrowest.
fn others(listed: &str, own: &[&str], networks: &[Cidr]) -> Vec<NodeProblem> {
    let routes = listed.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kind = words.first().filter(|it| OF_OWN_ADDRESSES.contains(it) || TO_NOWHERE.contains(it));
        if kind.is_some_and(|it| OF_OWN_ADDRESSES.contains(it)) {
            return None;
        }
        let destination = range(words.get(usize::from(kind.is_some()))?)?;
        let after = |word: &str| words.iter().position(|it| *it == word).and_then(|at| words.get(at + 1));
        let device = after("dev").copied().unwrap_or_default();
        let network = networks.iter().find(|it| it.bits <= destination.bits && it.contains(destination.address))?;
        (!own.contains(&device) || kind.is_some()).then(|| NodeProblem::PodRangeTaken {
            range: network.to_string(),
            route: words.join(" ").trim_end_matches('\\').trim_end().to_owned(),
            device: device.to_owned(),
        })
    });
    routes.collect()
}

/// As `ip` writes it: a single address has no prefix.
fn range(text: &str) -> Option<Cidr> {
    Cidr::parse(text).or_else(|| {
        let address: std::net::IpAddr = text.parse().ok()?;
        Some(Cidr::new(address, u8::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_narrower_routes_of_others_take_addresses() {
        let listed = "default via 10.0.2.2 dev eth0 proto dhcp src 10.0.2.15 metric 100 \n\
            10.0.0.0/8 dev wg0 scope link \n\
            10.244.0.0/16 dev cni0 \n\
            10.244.0.0/24 dev corten0 proto kernel scope link src 10.244.0.1 \n\
            10.244.0.0/24 dev br0 proto kernel scope link src 10.244.0.1 linkdown \n\
            10.244.0.7 dev cali1 scope link \n\
            10.244.1.0/24 dev br1 \n\
            10.244.0.128/25 dev tun0 table 52 \n\
            blackhole 10.244.0.0/26 proto bird \n\
            local 10.244.0.1 dev br0 table local proto kernel scope host src 10.244.0.1 \n\
            broadcast 10.244.0.255 dev br0 table local proto kernel scope link src 10.244.0.1 \n\
            fe80::/64 dev eth0 proto kernel metric 256 pref medium\n\
            fd00:10:244:: dev cvx0 proto kernel metric 256 pref medium\n\
            fd00:10:244::/64 dev br0 proto kernel metric 256 pref medium\n";
        let networks = ["10.244.0.0/24", "fd00:10:244::/64"].map(|it| Cidr::parse(it).expect("a range"));
        let routes = others(listed, &["corten0", "cvx0"], &networks).into_iter().map(|it| match it {
            NodeProblem::PodRangeTaken { range, route, .. } => format!("{range}: {route}"),
            other => format!("{other:?}"),
        });
        let expected = [
            "10.244.0.0/24: 10.244.0.0/24 dev br0 proto kernel scope link src 10.244.0.1 linkdown",
            "10.244.0.0/24: 10.244.0.7 dev cali1 scope link",
            "10.244.0.0/24: 10.244.0.128/25 dev tun0 table 52",
            "10.244.0.0/24: blackhole 10.244.0.0/26 proto bird",
            "fd00:10:244::/64: fd00:10:244::/64 dev br0 proto kernel metric 256 pref medium",
        ];
        assert_eq!(routes.collect::<Vec<_>>(), expected);
    }
}
