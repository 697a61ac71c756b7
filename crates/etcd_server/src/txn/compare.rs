//! Whether a comparison holds.

use std::cmp::Ordering;

use corten_etcd_api::{Compare, CompareWith};
use corten_store::{Draft, Entry};

use crate::keys;

/// A comparison of a range holds when it holds for every key in the range. A key that does not exist has version, revisions and
/// lease zero; its value cannot be compared, so a comparison of values is false (`applyCompare` in etcd).
pub(super) fn holds(asked: &Compare, draft: &Draft<'_>) -> bool {
    let range = keys::range(&asked.key, &asked.range_end);
    let mut entries = draft.entries(&range).peekable();
    if entries.peek().is_none() {
        return !is_of_value(asked) && is(asked, number(None, asked).cmp(&wanted(asked)));
    }
    entries.all(|it| is(asked, ordering(it, asked)))
}

fn is_of_value(asked: &Compare) -> bool {
    asked.target == 3
}

fn ordering(entry: &Entry, asked: &Compare) -> Ordering {
    if is_of_value(asked) {
        let value = if let Some(CompareWith::Value(value)) = &asked.with { &value[..] } else { &[] };
        return entry.value[..].cmp(value);
    }
    number(Some(entry), asked).cmp(&wanted(asked))
}

fn number(entry: Option<&Entry>, asked: &Compare) -> i64 {
    let Some(entry) = entry else { return 0 };
    match asked.target {
        0 => entry.version.cast_signed(),
        1 => entry.create_revision.cast_signed(),
        2 => entry.mod_revision.cast_signed(),
        _ => entry.lease,
    }
}

/// What is compared with; a number of another target is none.
fn wanted(asked: &Compare) -> i64 {
    match (asked.target, &asked.with) {
        (0, Some(CompareWith::Version(it)))
        | (1, Some(CompareWith::CreateRevision(it)))
        | (2, Some(CompareWith::ModRevision(it)))
        | (4, Some(CompareWith::Lease(it))) => *it,
        _ => 0,
    }
}

fn is(asked: &Compare, ordering: Ordering) -> bool {
    match asked.result {
        0 => ordering.is_eq(),
        1 => ordering.is_gt(),
        2 => ordering.is_lt(),
        _ => ordering.is_ne(),
    }
}
