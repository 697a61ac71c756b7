//! Compaction, by one of all API servers at a time: each remembers the revision of one interval ago, and whoever first writes
//! the next one down compacts, as etcd3's `compactor` does. kube-apiserver takes part in the same way.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_etcd_api::{
    Compare, CompareWith, PutRequest, RangeRequest, RequestKind, RequestOp, ResponseKind, TxnRequest, TxnResponse,
    method::TXN,
};
use corten_store::Store;
use tokio::sync::watch;

use crate::{failure::Failure, store::EtcdStore};

/// Upstream's key, below no prefix.
const KEY: Bytes = Bytes::from_static(b"compact_rev_key");

/// What is known of the last round, whoever made it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Round {
    /// How often the key was written.
    version: i64,
    /// etcd's revision then.
    revision: i64,
}

/// Forgets what is older than one interval, or two, until `ended`.
pub async fn compact_every(store: Arc<EtcdStore>, interval: Duration, mut ended: watch::Receiver<bool>) {
    let mut round = Round::default();
    loop {
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => return,
            () = tokio::time::sleep(interval) => {}
        }
        match next(&store, round).await {
            Ok(next) => round = next,
            Err(error) => tracing::warn!(error, "etcd cannot be compacted"),
        }
    }
}

/// One round.
pub(crate) async fn next(store: &EtcdStore, last: Round) -> Result<Round, String> {
    let answer = store.client().ask(TXN, &claim(last)).await.map_err(|it: Failure| it.to_string())?;
    let answer: TxnResponse = answer;
    let revision = answer.header.map_or(0, |it| it.revision);
    if !answer.succeeded {
        // Another server was first.
        let stands = answer.responses.into_iter().find_map(|it| match it.response? {
            ResponseKind::Range(range) => range.kvs.into_iter().next(),
            _ => None,
        });
        return Ok(Round { version: stands.map_or(0, |it| it.version), revision });
    }
    if last.revision > 0 {
        store.compact(last.revision.unsigned_abs()).await.map_err(|it| it.to_string())?;
    }
    Ok(Round { version: last.version + 1, revision })
}

fn claim(last: Round) -> TxnRequest {
    let op = |it| vec![RequestOp { request: Some(it) }];
    let value = Bytes::from(last.revision.to_string());
    TxnRequest {
        compare: vec![Compare::equal(KEY, CompareWith::Version(last.version))],
        success: op(RequestKind::Put(PutRequest { key: KEY, value, ..Default::default() })),
        failure: op(RequestKind::Range(RangeRequest { key: KEY, ..RangeRequest::default() })),
    }
}
