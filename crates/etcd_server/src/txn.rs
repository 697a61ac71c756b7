//! Transactions: first all comparisons, of nested ones too, choose what is done; then it is done in order, and each operation sees
//! what those before it have written.

mod check;
mod compare;

use bytes::Bytes;
use corten_etcd_api::{
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestKind,
    RequestOp, ResponseKind, ResponseOp, TxnRequest, TxnResponse,
};
use corten_store::{Draft, Entry, Range};
use tonic::Status;

pub(crate) use self::check::check;
use crate::{core::Core, failure, keys, range};

/// What one transaction may write: keys and values that it puts, also those that stand there already.
const WRITTEN_BYTES_MAX: usize = 16 << 20;

struct Effects<'a> {
    /// For the bytes that are still to be put.
    room: usize,
    /// Keys that are bound to these leases no more.
    loosened: &'a mut Vec<(i64, Bytes)>,
}

impl Effects<'_> {
    fn loosen<'e>(&mut self, before: impl IntoIterator<Item = &'e Entry>) {
        let bound = before.into_iter().filter(|it| it.lease != 0);
        self.loosened.extend(bound.map(|it| (it.lease, it.key.clone())));
    }
}

/// Has leases forget what they have lost to transactions that are answered.
pub(crate) fn detach(core: &Core, draft: &Draft<'_>) {
    core.leases.detach(|id, key| {
        let is_bound = |it: Option<&Entry>| it.is_some_and(|it| it.lease == id);
        let stands = |key: &Bytes| core.view(&Range::prefix(key.clone()), 0).is_ok_and(|it| is_bound(it.get(key)));
        is_bound(draft.get(key)) || stands(key)
    });
}

/// One transaction of which is known which branch is done.
struct Chosen<'r> {
    succeeded: bool,
    /// With what nested ones have chosen.
    operations: Vec<(&'r RequestKind, Option<Self>)>,
}

/// # Errors
/// Something that only the state tells: a lease or a key that is not there, a revision that is not kept.
pub(crate) fn execute(
    core: &Core,
    asked: &TxnRequest,
    draft: &mut Draft<'_>,
    loosened: &mut Vec<(i64, Bytes)>,
) -> Result<TxnResponse, Status> {
    let chosen = choose(asked, draft);
    chosen.check(core, draft)?;
    chosen.run(core, draft, &mut Effects { room: WRITTEN_BYTES_MAX, loosened })
}

fn choose<'r>(asked: &'r TxnRequest, draft: &Draft<'_>) -> Chosen<'r> {
    let succeeded = asked.compare.iter().all(|it| compare::holds(it, draft));
    let branch = if succeeded { &asked.success } else { &asked.failure };
    let operation = |it: &'r RequestOp| {
        let kind = it.request.as_ref()?;
        let nested = if let RequestKind::Txn(nested) = kind { Some(choose(nested, draft)) } else { None };
        Some((kind, nested))
    };
    Chosen { succeeded, operations: branch.iter().filter_map(operation).collect() }
}

impl Chosen<'_> {
    fn check(&self, core: &Core, draft: &Draft<'_>) -> Result<(), Status> {
        for (kind, nested) in &self.operations {
            match kind {
                RequestKind::Put(put) => {
                    if (put.ignore_value || put.ignore_lease) && draft.get(&put.key).is_none() {
                        return Err(failure::key_not_found());
                    }
                    if put.lease != 0 && !core.leases.is_alive(put.lease) {
                        return Err(failure::no_lease());
                    }
                }
                RequestKind::Range(_) | RequestKind::DeleteRange(_) | RequestKind::Txn(_) => {}
            }
            nested.as_ref().map_or(Ok(()), |it| it.check(core, draft))?;
        }
        Ok(())
    }

    fn run(&self, core: &Core, draft: &mut Draft<'_>, effects: &mut Effects<'_>) -> Result<TxnResponse, Status> {
        let mut responses = Vec::with_capacity(self.operations.len());
        for (kind, nested) in &self.operations {
            let response = match (kind, nested) {
                (RequestKind::Range(asked), _) => ResponseKind::Range(read(core, asked, draft)?),
                (RequestKind::Put(asked), _) => ResponseKind::Put(put(core, asked, draft, effects)?),
                (RequestKind::DeleteRange(asked), _) => ResponseKind::DeleteRange(delete(core, asked, draft, effects)),
                (RequestKind::Txn(_), Some(nested)) => ResponseKind::Txn(nested.run(core, draft, effects)?),
                (RequestKind::Txn(_), None) => ResponseKind::Txn(TxnResponse::default()),
            };
            responses.push(ResponseOp { response: Some(response) });
        }
        Ok(TxnResponse { header: core.header(draft.revision()), succeeded: self.succeeded, responses })
    }
}

fn read(core: &Core, asked: &RangeRequest, draft: &Draft<'_>) -> Result<RangeResponse, Status> {
    let within = keys::range(&asked.key, &asked.range_end);
    // Outside of a transaction it is the newest (`checkRange` in etcd).
    if asked.revision < 0 {
        return Err(failure::compacted());
    }
    let answer = if asked.revision > 0 {
        range::answer(core.view(&within, asked.revision)?.entries(), asked)
    } else {
        range::answer(draft.entries(&within), asked)
    };
    Ok(RangeResponse { header: core.header(draft.revision()), ..answer })
}

fn put(
    core: &Core,
    asked: &PutRequest,
    draft: &mut Draft<'_>,
    effects: &mut Effects<'_>,
) -> Result<PutResponse, Status> {
    let stands = draft.get(&asked.key);
    // What is kept shall not hold the whole message that it came in.
    let value = match stands.filter(|_| asked.ignore_value) {
        Some(stands) => stands.value.clone(),
        None => Bytes::copy_from_slice(&asked.value),
    };
    let lease = stands.filter(|_| asked.ignore_lease).map_or(asked.lease, |it| it.lease);
    let key = stands.map_or_else(|| Bytes::copy_from_slice(&asked.key), |it| it.key.clone());
    effects.room = effects.room.checked_sub(key.len() + value.len()).ok_or_else(failure::too_large)?;
    if lease != 0 {
        core.leases.attach(lease, key.clone())?;
    }
    let before = draft.put(key, value, lease);
    effects.loosen(before.as_ref().filter(|it| it.lease != lease));
    let prev_kv = before.filter(|_| asked.prev_kv).as_ref().map(keys::pair);
    Ok(PutResponse { header: core.header(draft.revision()), prev_kv })
}

fn delete(
    core: &Core,
    asked: &DeleteRangeRequest,
    draft: &mut Draft<'_>,
    effects: &mut Effects<'_>,
) -> DeleteRangeResponse {
    let within = keys::range(&asked.key, &asked.range_end);
    let keys: Vec<Bytes> = draft.entries(&within).map(|it| it.key.clone()).collect();
    let gone: Vec<Entry> = keys.iter().filter_map(|it| draft.delete(it)).collect();
    effects.loosen(&gone);
    DeleteRangeResponse {
        header: core.header(draft.revision()),
        deleted: i64::try_from(gone.len()).unwrap_or(i64::MAX),
        prev_kvs: if asked.prev_kv { gone.iter().map(keys::pair).collect() } else { Vec::new() },
    }
}
