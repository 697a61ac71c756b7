//! A machine's network as Pods and Services need it: the bridge and CNI, packet rules, and the firewalls of others beside them.
//!
//! What the rules of Services and policies say is decided in `proxy` and `netpolicy`; here they become netlink messages.

mod addresses;
mod announced;
pub mod bridge;
pub mod cni;
mod listening;
mod nat64;
mod netlink;
pub mod nft;
pub mod peers;
mod pod_network;
mod pod_policies;
mod routes;
mod service_health;
pub mod source_guards;

pub use corten_netpolicy::PodSandbox;

pub use addresses::{addresses, has_way_out, is_of_this_machine};
pub use announced::AnnouncedAddresses;
pub use listening::{listening, listening_in};
pub use nft::{PolicyRules, ServiceRules};
pub use pod_network::{PodNetwork, withdraw};
pub use pod_policies::{PlugEvent, PodPolicies};
pub use service_health::ServiceHealth;
pub use source_guards::PodSourceGuards;
