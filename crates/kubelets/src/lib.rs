//! The ways from the API server to kubelets: connections to them, what goes over them, and what they tell of what nodes and
//! Pods use.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod client;
mod complaint;
mod journals;
mod location;
mod node;
mod scrape;
mod tunnels;
mod usage;

pub use client::{Error, KubeletClient};
pub use complaint::{complaint, status_in, words};
pub use journals::{Asking, FromNodes, RemoteJournals, Waiting, beside};
pub use location::Location;
pub use node::{Node, cached};
pub use scrape::{no_way, scrape};
pub use tunnels::Tunnels;
pub use usage::{Pair, Reading, Source, Usages, Use, Window};
