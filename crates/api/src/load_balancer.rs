//! What controllers, nodes and `corten why` must agree on about addresses of load balancers.

mod pool;

use core::net::IpAddr;

pub use pool::AddressPool;

/// The condition of a Service whose load balancer's addresses are from the pool: the nodes answer for them. `False` where it lacks some.
pub const POOL_ADDRESSES: &str = "corten.dev/PoolAddresses";

/// A node with this label gets no balancer's packets (upstream's `LabelNodeExcludeBalancers`).
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Of the nodes that may answer for an address the one does for which this is the highest (rendezvous hashing): FNV-1a, and a last
/// mixing (of MurmurHash3) so that names that end alike are far from each other.
pub fn weight(node: &str, address: IpAddr) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in node.bytes().chain([0]).chain(address.to_string().bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
