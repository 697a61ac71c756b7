//! A machine's network as Pods and Services need it: the bridge and CNI, packet rules, and the firewalls of others beside them.
//!
//! What Services' rules say is decided in `proxy`; here they become netlink messages.

mod addresses;
pub mod bridge;
pub mod cni;
mod listening;
pub mod nft;
mod pod_network;
mod routes;
mod service_health;
pub mod source_guards;

pub use addresses::{addresses, is_of_this_machine};
pub use listening::{listening, listening_in};
pub use nft::ServiceRules;
pub use pod_network::{PodNetwork, withdraw};
pub use service_health::ServiceHealth;
pub use source_guards::PodSourceGuards;
