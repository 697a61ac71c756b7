//! What etcd keeps in which bucket of its database (`server/storage/schema` and `mvcc` there).

use std::collections::HashMap;

use corten_etcd_api::KeyValue;
use prost::Message;

use crate::{
    pages::Database,
    state::{Lease, State},
};

/// In the order of their names. Those without content are made by every start of etcd.
const BUCKETS: &[&str] =
    &["alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members", "members_removed", "meta"];

/// As etcd's `leasepb`.
#[derive(Clone, PartialEq, Message)]
struct StoredLease {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(int64, tag = "2")]
    ttl: i64,
}

type Pair = (Vec<u8>, Vec<u8>);

pub(crate) fn database(keys: Vec<KeyValue>, state: &State<'_>) -> Database {
    let (mut keys, leases) = (Some(by_revision(keys)), leases(state.leases));
    let mut database = Database::new();
    for name in BUCKETS {
        match *name {
            "key" => database.bucket(name, keys.take().unwrap_or_default()),
            "lease" => database.bucket(name, leases.clone()),
            "meta" => database.bucket(name, meta(state)),
            _ => database.bucket(name, Vec::new()),
        }
    }
    database.finish();
    database
}

/// A key's place is the revision that changed it last, and its place among those of that revision.
fn by_revision(mut keys: Vec<KeyValue>) -> Vec<Pair> {
    keys.sort_by(|a, b| (a.mod_revision, &a.key).cmp(&(b.mod_revision, &b.key)));
    let mut n_of_revision = HashMap::<i64, i64>::new();
    let pair = |it: KeyValue| {
        let sub = n_of_revision.entry(it.mod_revision).or_default();
        *sub += 1;
        (revision(it.mod_revision, *sub - 1), it.encode_to_vec())
    };
    keys.into_iter().map(pair).collect()
}

/// `main_sub`, as etcd writes revisions.
fn revision(main: i64, sub: i64) -> Vec<u8> {
    [&main.to_be_bytes()[..], b"_", &sub.to_be_bytes()[..]].concat()
}

fn leases(leases: &[Lease]) -> Vec<Pair> {
    let pair = |it: &Lease| (it.id.to_be_bytes().to_vec(), StoredLease { id: it.id, ttl: it.ttl }.encode_to_vec());
    let mut pairs: Vec<Pair> = leases.iter().map(pair).collect();
    pairs.sort();
    pairs
}

/// The newest revision is told as the one that was compacted: etcd goes on from there, also where its key was deleted.
fn meta(state: &State<'_>) -> Vec<Pair> {
    let compacted = revision(state.revision, 0);
    let of = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
    vec![
        of("consistent_index", &1_u64.to_be_bytes()),
        of("finishedCompactRev", &compacted),
        of("scheduledCompactRev", &compacted),
        of("term", &1_u64.to_be_bytes()),
    ]
}
