//! The method Snapshot: the database that an etcd with the same keys would have, made when it is asked for.
//!
//! It is made in memory, because the store's data are there, too.

use std::sync::Arc;

use bytes::Bytes;
use corten_etcd_api::SnapshotResponse;
use corten_etcd_snapshot::State;
use corten_store::Range;
use futures_util::{Stream, stream};
use tonic::Status;

use crate::{core::Core, failure, keys::pair, lease};

/// As etcd sends it.
const PART_BYTES: usize = 32 << 10;

pub(crate) async fn stream(core: Arc<Core>) -> Result<impl Stream<Item = Result<SnapshotResponse, Status>>, Status> {
    let only = core.snapshots.clone().try_acquire_owned().map_err(|_| failure::too_many_requests())?;
    let view = core.view(&Range::prefix(""), 0)?;
    let header = core.header(view.revision());
    let making = tokio::task::spawn_blocking(move || {
        let leases = lease::saved(&core, &view);
        let state = State { revision: view.revision().cast_signed(), leases: &leases };
        let mut made = Vec::new();
        corten_etcd_snapshot::write(view.entries().map(pair).collect(), &state, &mut made)
            .map(|()| (Bytes::from(made), only))
    });
    let made = making.await.map_err(|it| Status::internal(it.to_string()))?;
    let (mut left, only) = made.map_err(|it| Status::internal(it.to_string()))?;
    Ok(stream::iter(std::iter::from_fn(move || {
        // Until all of it is sent, or nobody wants it any more.
        let _ = &only;
        let blob = left.split_to(left.len().min(PART_BYTES));
        let remaining_bytes = left.len() as u64;
        (!blob.is_empty()).then_some(Ok(SnapshotResponse { header, remaining_bytes, blob }))
    })))
}
