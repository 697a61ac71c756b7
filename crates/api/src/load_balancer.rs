//! What controllers, nodes and `corten why` must agree on about addresses of load balancers.

mod pool;

pub use pool::AddressPool;

/// The condition of a Service whose load balancer's addresses are from the pool: the nodes answer for them. `False` where it lacks some.
pub const POOL_ADDRESSES: &str = "corten.dev/PoolAddresses";

/// A node with this label gets no balancer's packets (upstream's `LabelNodeExcludeBalancers`).
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
