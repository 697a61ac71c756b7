//! Where a Pod is reached: one address of each family, whatever a plug-in gave its sandbox (Kubelet.sortPodIPs).

use std::net::IpAddr;

/// The first of each family, that of the node's first address before the other. What is no address is none of the Pod's.
pub(crate) fn of_each_family(of_sandbox: &[String], node_ips: &[String]) -> Vec<String> {
    let is_v6 = |it: &String| it.parse::<IpAddr>().ok().map(|it| it.is_ipv6());
    let first = node_ips.first().and_then(is_v6).unwrap_or_default();
    let of_family = |family: bool| of_sandbox.iter().find(|it| is_v6(it) == Some(family));
    [first, !first].into_iter().filter_map(of_family).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::of_each_family;

    #[test]
    fn the_nodes_family_is_first() {
        let list = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        for (of_sandbox, node, expected) in [
            ("10.0.0.1 fd00::1", "192.0.2.1", "10.0.0.1 fd00::1"),
            ("fd00::1 10.0.0.1 10.0.0.2 fd00::2", "192.0.2.1 2001:db8::1", "10.0.0.1 fd00::1"),
            ("10.0.0.1 fd00::1", "2001:db8::1", "fd00::1 10.0.0.1"),
            ("nonsense fd00::1", "192.0.2.1", "fd00::1"),
            ("10.0.0.1 10.0.0.2", "", "10.0.0.1"),
            ("", "192.0.2.1", ""),
        ] {
            assert_eq!(of_each_family(&list(of_sandbox), &list(node)), list(expected), "{of_sandbox} on {node}");
        }
    }
}
