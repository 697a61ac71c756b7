//! Pods, Namespaces and NetworkPolicies in, packet rules out: who may speak with the Pods of this node.
//!
//! A step takes a batch of news and gives one transaction, whose size goes with the news and not with the cluster: what a Pod
//! changes are elements of sets and maps, and never a rule.

mod base_chains;
mod blocks;
mod compiled;
mod elements;
mod mind;
mod numbers;
mod pod_sandbox;
mod pods;
pub mod projections;
mod room;
pub mod rules;
mod shared;

pub use base_chains::PodMatch;
pub use mind::{Event, NAME, NetworkPolicies, Step};
pub use pod_sandbox::PodSandbox;
