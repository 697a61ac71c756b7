//! etcd as the store: its gRPC API behind the trait that every engine of the store has.
//!
//! Revisions are etcd's own. Others write there too, so what this process has seen is never known to be all: whoever needs
//! that asks (`Store::newest`).

mod client;
mod commit;
mod compaction;
mod failure;
mod forgotten;
mod health;
mod keys;
mod leased;
mod members;
mod messages;
mod options;
mod pause;
mod quota;
mod reads;
mod start;
mod store;
mod tls;
mod watch;

#[cfg(test)]
mod tests;

pub use compaction::compact_every;
pub use members::{Member, MemberStatus, Members, Refusal};
pub use options::{Options, TlsFiles};
pub use start::{StartError, is_new_enough};
pub use store::EtcdStore;
