//! Which pairs of a range are answered, in which order.

use std::cmp::Ordering;

use corten_etcd_api::{RangeRequest, RangeResponse};
use corten_store::Entry;
use tonic::Status;

use crate::{
    failure,
    keys::{pair, pair_without_value},
};

/// As etcd numbers orders.
const DESCEND: i32 = 2;
/// As etcd numbers what is sorted by.
const BY_KEY: i32 = 0;
const BY_VALUE: i32 = 4;

/// # Errors
/// No key is named, or an order that there is not.
pub(crate) fn check(asked: &RangeRequest) -> Result<(), Status> {
    if asked.key.is_empty() {
        return Err(failure::empty_key());
    }
    if !(0..=DESCEND).contains(&asked.sort_order) || !(BY_KEY..=BY_VALUE).contains(&asked.sort_target) {
        return Err(failure::sort_option());
    }
    Ok(())
}

/// The answer, without its header. Counted is all of the range, whatever limit and filters leave of it.
pub(crate) fn answer<'e>(entries: impl Iterator<Item = &'e Entry>, asked: &RangeRequest) -> RangeResponse {
    let limit = usize::try_from(asked.limit).ok().filter(|it| *it > 0);
    let is_in_order = asked.sort_order == 0 && asked.sort_target == BY_KEY;
    // Without an order and filters the first ones are sorted, and not all (`executeRange` in etcd). One more tells that there is more.
    let is_cut_first = is_in_order || asked.sort_order == 0 && !has_filters(asked);
    let enough = limit.filter(|_| is_cut_first).map_or(usize::MAX, |it| it.saturating_add(1));
    let (mut found, mut count) = (Vec::new(), 0_i64);
    for entry in entries {
        count += 1;
        if !asked.count_only && found.len() < enough && is_wanted(entry, asked) {
            found.push(entry);
        }
    }
    if !is_in_order {
        // Another target than the key is sorted by even where no order is named.
        let is_descending = asked.sort_order == DESCEND;
        found.sort_by(|a, b| {
            let order = compare(a, b, asked.sort_target);
            if is_descending { order.reverse() } else { order }
        });
    }
    let more = limit.is_some_and(|it| found.len() > it);
    found.truncate(limit.unwrap_or(usize::MAX));
    let make = if asked.keys_only { pair_without_value } else { pair };
    RangeResponse { header: None, kvs: found.into_iter().map(make).collect(), more, count }
}

fn has_filters(asked: &RangeRequest) -> bool {
    let RangeRequest { min_mod_revision, max_mod_revision, min_create_revision, max_create_revision, .. } = asked;
    [min_mod_revision, max_mod_revision, min_create_revision, max_create_revision].iter().any(|it| **it != 0)
}

fn is_wanted(entry: &Entry, asked: &RangeRequest) -> bool {
    let within = |is: u64, min: i64, max: i64| {
        let is = is.cast_signed();
        (min == 0 || is >= min) && (max == 0 || is <= max)
    };
    within(entry.mod_revision, asked.min_mod_revision, asked.max_mod_revision)
        && within(entry.create_revision, asked.min_create_revision, asked.max_create_revision)
}

fn compare(a: &Entry, b: &Entry, target: i32) -> Ordering {
    match target {
        1 => a.version.cmp(&b.version),
        2 => a.create_revision.cmp(&b.create_revision),
        3 => a.mod_revision.cmp(&b.mod_revision),
        BY_VALUE => a.value.cmp(&b.value),
        _ => a.key.cmp(&b.key),
    }
}
