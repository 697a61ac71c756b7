//! Keys, ranges and pairs between etcd's words and the store's.

use std::ops::Bound;

use bytes::Bytes;
use corten_etcd_api::KeyValue;
use corten_store::{Entry, Range};

/// Means no end where it is the end of a range, and the first key where it is the beginning.
pub(crate) const ZERO: Bytes = Bytes::from_static(b"\0");

/// One key, where no end is named.
pub(crate) fn range(key: &Bytes, end: &Bytes) -> Range {
    let end = match &end[..] {
        b"" => Bound::Included(key.clone()),
        b"\0" => Bound::Unbounded,
        _ => Bound::Excluded(end.clone()),
    };
    Range { start: key.clone(), end }
}

/// May a key lie in both?
pub(crate) fn overlap(one: &Range, other: &Range) -> bool {
    let begins_within = |one: &Range, other: &Range| match &other.end {
        Bound::Unbounded => true,
        Bound::Included(end) => one.start <= *end,
        Bound::Excluded(end) => one.start < *end,
    };
    !one.is_empty() && !other.is_empty() && begins_within(one, other) && begins_within(other, one)
}

pub(crate) fn pair(entry: &Entry) -> KeyValue {
    KeyValue { value: entry.value.clone(), ..pair_without_value(entry) }
}

pub(crate) fn pair_without_value(entry: &Entry) -> KeyValue {
    KeyValue {
        key: entry.key.clone(),
        create_revision: entry.create_revision.cast_signed(),
        mod_revision: entry.mod_revision.cast_signed(),
        version: entry.version.cast_signed(),
        value: Bytes::new(),
        lease: entry.lease,
    }
}
