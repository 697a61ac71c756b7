//! A snapshot as etcd writes one: its database, and a checksum behind it. `etcdutl snapshot restore` makes a member of it, whose keys
//! have the revisions that they have here.
//!
//! It is written once and in order, so nothing of a database that changes is here: no freelist, no rebalancing, one transaction.

mod buckets;
mod pages;
mod state;

use std::io::{self, Write};

use aws_lc_rs::digest;
use corten_etcd_api::KeyValue;

use crate::pages::Database;
pub use crate::state::{Lease, State};

/// Writes the snapshot of all live keys, in any order.
///
/// # Errors
/// Those of `out`.
pub fn write(keys: Vec<KeyValue>, state: &State<'_>, out: &mut impl Write) -> io::Result<()> {
    let database: Database = buckets::database(keys, state);
    let mut hashed = digest::Context::new(&digest::SHA256);
    for part in database.parts() {
        hashed.update(part);
        out.write_all(part)?;
    }
    out.write_all(hashed.finish().as_ref())
}

#[cfg(test)]
mod tests;
