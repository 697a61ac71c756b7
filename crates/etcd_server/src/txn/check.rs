//! What can be said of a transaction without knowing the state (`checkTxnRequest` in etcd).

use std::collections::BTreeSet;

use bytes::Bytes;
use corten_etcd_api::{DeleteRangeRequest, PutRequest, RequestKind, RequestOp, TxnRequest};
use corten_store::Range;
use tonic::Status;

use crate::{core::Reserved, failure, keys, range};

/// More than etcd takes where nothing else is set (128): here they cost no consensus.
const OPERATIONS_MAX: usize = 1_024;
/// The stack has room for so many.
const DEPTH_MAX: usize = 16;

/// # Errors
/// What etcd refuses, and what is reserved.
pub(crate) fn check(asked: &TxnRequest, reserved: Option<&Reserved>) -> Result<(), Status> {
    check_one(asked, reserved, &mut { OPERATIONS_MAX }, DEPTH_MAX)?;
    written(asked).map(|_| ())
}

/// `left` is for all that are nested together, whichever branches they are in.
fn check_one(asked: &TxnRequest, reserved: Option<&Reserved>, left: &mut usize, depth: usize) -> Result<(), Status> {
    let most = asked.compare.len().max(asked.success.len()).max(asked.failure.len());
    let (Some(rest), Some(depth)) = (left.checked_sub(most), depth.checked_sub(1)) else {
        return Err(failure::too_many_operations());
    };
    *left = rest;
    if asked.compare.iter().any(|it| it.key.is_empty()) {
        return Err(failure::empty_key());
    }
    for operation in asked.success.iter().chain(&asked.failure) {
        match &operation.request {
            None => return Err(failure::key_not_found()),
            Some(RequestKind::Range(asked)) => range::check(asked)?,
            Some(RequestKind::Put(asked)) => check_put(asked, reserved)?,
            Some(RequestKind::DeleteRange(asked)) if asked.key.is_empty() => return Err(failure::empty_key()),
            Some(RequestKind::DeleteRange(asked)) => check_deletion(asked, reserved)?,
            Some(RequestKind::Txn(nested)) => check_one(nested, reserved, left, depth)?,
        }
    }
    Ok(())
}

fn check_put(asked: &PutRequest, reserved: Option<&Reserved>) -> Result<(), Status> {
    if asked.key.is_empty() {
        return Err(failure::empty_key());
    }
    if asked.ignore_value && !asked.value.is_empty() {
        return Err(failure::value_provided());
    }
    if asked.ignore_lease && asked.lease != 0 {
        return Err(failure::lease_provided());
    }
    match reserved.filter(|it| asked.key.starts_with(&it.prefix)) {
        Some(reserved) => Err(failure::reserved(&reserved.reason)),
        None => Ok(()),
    }
}

fn check_deletion(asked: &DeleteRangeRequest, reserved: Option<&Reserved>) -> Result<(), Status> {
    let range = keys::range(&asked.key, &asked.range_end);
    let touches = |prefix: &Bytes| keys::overlap(&range, &Range::prefix(prefix.clone()));
    match reserved.filter(|it| it.lasting.iter().any(touches)) {
        Some(reserved) => Err(failure::reserved(&reserved.lasting_reason)),
        None => Ok(()),
    }
}

/// What a transaction may write, whichever branches are taken.
#[derive(Default)]
struct Written {
    puts: BTreeSet<Bytes>,
    deletions: Vec<Range>,
}

/// # Errors
/// One key would be written twice: it can have only one value at a revision.
fn written(asked: &TxnRequest) -> Result<Written, Status> {
    let (mut all, failure) = (of_branch(&asked.success)?, of_branch(&asked.failure)?);
    all.puts.extend(failure.puts);
    all.deletions.extend(failure.deletions);
    Ok(all)
}

fn of_branch(operations: &[RequestOp]) -> Result<Written, Status> {
    let mut all = Written::default();
    for operation in operations {
        let own = match &operation.request {
            Some(RequestKind::Put(asked)) => Written { puts: [asked.key.clone()].into(), deletions: Vec::new() },
            Some(RequestKind::DeleteRange(asked)) => {
                Written { puts: BTreeSet::new(), deletions: vec![keys::range(&asked.key, &asked.range_end)] }
            }
            Some(RequestKind::Txn(nested)) => written(nested)?,
            _ => continue,
        };
        if all.collides(&own) || own.collides(&all) {
            return Err(failure::duplicate_key());
        }
        all.puts.extend(own.puts);
        all.deletions.extend(own.deletions);
    }
    Ok(all)
}

impl Written {
    fn collides(&self, other: &Self) -> bool {
        self.puts.iter().any(|it| other.puts.contains(it) || other.deletions.iter().any(|range| range.contains(it)))
    }
}
