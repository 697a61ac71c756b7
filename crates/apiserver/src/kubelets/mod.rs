//! The way to kubelets: where they listen, how they are dialled, what they complain of, and the tunnels to them.

mod client;
mod complaint;
mod node;
mod scrape;
mod tunnels;

pub(crate) use client::Error;
pub use client::KubeletClient;
pub(crate) use complaint::{complaint, status_in, words};
pub(crate) use node::{Node, cached};
pub(crate) use scrape::{no_way, scrape};
pub(crate) use tunnels::Tunnels;
