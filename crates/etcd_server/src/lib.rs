//! etcd's gRPC API over a store that this process keeps: keys, watches, leases, and what there is to say of the one member.
//!
//! Keys and values are served as they lie in the store. Leases lie in a store of their own, because granting one takes no revision.

mod cluster;
mod core;
mod failure;
mod handshakes;
mod keys;
mod kv;
mod lease;
mod leases;
mod maintenance;
mod method;
mod range;
mod serve;
mod server;
mod snapshot;
mod txn;
mod watch;

#[cfg(test)]
mod tests;

pub use server::{EtcdServer, OpenError, Reserved, Settings};
