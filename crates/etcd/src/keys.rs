//! Keys and ranges as etcd has them: below a prefix of the cluster's own, and with `\0` for what has no end.

use std::ops::Bound;

use bytes::Bytes;
use corten_etcd_api::KeyValue;
use corten_store::{Entry, Range, registry::PREFIX};

/// Puts `--etcd-prefix` in the place of `/registry`.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: Option<String>,
}

/// A range of keys in etcd's words.
pub(crate) struct KeyRange {
    pub(crate) key: Bytes,
    pub(crate) end: Bytes,
}

impl Keys {
    /// As kube-apiserver reads it: with one slash before it and none after.
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = format!("/{}", prefix.trim_matches('/'));
        Self { prefix: (prefix != PREFIX).then_some(prefix) }
    }

    pub(crate) fn outside(&self, key: &Bytes) -> Bytes {
        match &self.prefix {
            Some(prefix) => replaced(key, PREFIX, prefix),
            None => key.clone(),
        }
    }

    pub(crate) fn inside(&self, key: Bytes) -> Bytes {
        match &self.prefix {
            Some(prefix) => replaced(&key, prefix, PREFIX),
            None => key,
        }
    }

    /// etcd takes no empty key: the first that there can be is `\0`.
    pub(crate) fn range(&self, range: &Range) -> KeyRange {
        let key = if range.start.is_empty() { Bytes::from_static(b"\0") } else { self.outside(&range.start) };
        let end = match &range.end {
            Bound::Excluded(end) => self.outside(end),
            Bound::Included(end) => after(&self.outside(end)),
            Bound::Unbounded => Bytes::from_static(b"\0"),
        };
        KeyRange { key, end }
    }

    pub(crate) fn entry(&self, pair: KeyValue) -> Entry {
        Entry {
            key: self.inside(pair.key),
            value: pair.value,
            create_revision: pair.create_revision.unsigned_abs(),
            mod_revision: pair.mod_revision.unsigned_abs(),
            version: pair.version.unsigned_abs(),
            lease: pair.lease,
            unreadable: None,
        }
    }
}

/// The first key that is greater.
pub(crate) fn after(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

fn replaced(key: &Bytes, from: &str, to: &str) -> Bytes {
    match key.strip_prefix(from.as_bytes()) {
        Some(rest) => [to.as_bytes(), rest].concat().into(),
        None => key.clone(),
    }
}
