//! What controllers, nodes and the name server must agree on about Pods' addresses.

/// The ranges that all Pods of a cluster have their addresses from, each node a part of each: IPv4 first.
pub const CLUSTER_CIDRS: [&str; 2] = ["10.244.0.0/16", "fd00:10:244::/56"];

/// How long the prefix of a node's part of them is: upstream's defaults of `--node-cidr-mask-size-ipv4` and
/// `--node-cidr-mask-size-ipv6`.
pub const fn node_bits(is_ipv4: bool) -> u8 {
    if is_ipv4 { 24 } else { 64 }
}
