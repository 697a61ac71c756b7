//! The service KV. A single put or deletion is a transaction without comparisons.

use std::{ops::ControlFlow, sync::Arc};

use corten_etcd_api::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, RequestKind, RequestOp, ResponseKind, TxnRequest, TxnResponse,
};
use corten_store::Transaction;
use parking_lot::Mutex;
use prost::Message;
use tonic::Status;

use crate::{core::Core, failure, keys, range, txn};

/// What etcd takes where nothing else is set (`--max-request-bytes`).
pub(crate) const REQUEST_BYTES_MAX: usize = 1_572_864;

pub(crate) fn range(core: &Core, asked: &RangeRequest) -> Result<RangeResponse, Status> {
    range::check(asked)?;
    let view = core.view(&keys::range(&asked.key, &asked.range_end), asked.revision)?;
    Ok(RangeResponse { header: core.header(view.newest()), ..range::answer(view.entries(), asked) })
}

pub(crate) async fn put(core: Arc<Core>, asked: PutRequest) -> Result<PutResponse, Status> {
    match single(core, RequestKind::Put(asked)).await? {
        (ResponseKind::Put(answer), header) => Ok(PutResponse { header, ..answer }),
        _ => Err(Status::internal("a put is answered as a put")),
    }
}

pub(crate) async fn delete_range(core: Arc<Core>, asked: DeleteRangeRequest) -> Result<DeleteRangeResponse, Status> {
    match single(core, RequestKind::DeleteRange(asked)).await? {
        (ResponseKind::DeleteRange(answer), header) => Ok(DeleteRangeResponse { header, ..answer }),
        _ => Err(Status::internal("a deletion is answered as a deletion")),
    }
}

async fn single(
    core: Arc<Core>,
    asked: RequestKind,
) -> Result<(ResponseKind, Option<corten_etcd_api::ResponseHeader>), Status> {
    let asked = TxnRequest { success: vec![RequestOp { request: Some(asked) }], ..TxnRequest::default() };
    let answer = txn(core, asked).await?;
    let only = answer.responses.into_iter().next().and_then(|it| it.response);
    only.map(|it| (it, answer.header)).ok_or_else(|| Status::internal("an operation has an answer"))
}

pub(crate) async fn txn(core: Arc<Core>, asked: TxnRequest) -> Result<TxnResponse, Status> {
    let bytes = asked.encoded_len();
    if bytes > REQUEST_BYTES_MAX {
        return Err(failure::too_large());
    }
    txn::check(&asked, core.reserved.as_ref())?;
    let (answer, loosened) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let (told, noted, executing) = (answer.clone(), loosened.clone(), core.clone());
    let body = Arc::new(move |draft: &mut corten_store::Draft<'_>| {
        txn::detach(&executing, draft);
        let mut loosened = Vec::new();
        let answer = txn::execute(&executing, &asked, draft, &mut loosened);
        *noted.lock() = loosened;
        let flow = if answer.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        *told.lock() = Some(answer);
        flow
    });
    core.store.transact(Transaction { bytes, body }).await.map_err(|it| core.failed(it))?;
    let answer = answer.lock().take();
    if matches!(answer, Some(Ok(_))) {
        core.leases.loosen(std::mem::take(&mut *loosened.lock()));
    }
    answer.unwrap_or_else(|| Err(failure::stopped()))
}

pub(crate) async fn compact(core: Arc<Core>, asked: CompactionRequest) -> Result<CompactionResponse, Status> {
    let revision = asked.revision.max(0).unsigned_abs();
    // A store forgets by itself, too: whoever asks for less than it has forgotten is told so, as by etcd.
    if revision <= core.store.oldest() && core.store.oldest() > 1 {
        return Err(failure::compacted());
    }
    core.store.compact(revision).await.map_err(|it| core.failed(it))?;
    Ok(CompactionResponse { header: core.newest_header() })
}
