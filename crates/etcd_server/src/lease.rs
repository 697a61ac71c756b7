//! The service Lease.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_etcd_api::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesResponse,
    LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
};
use corten_etcd_snapshot::Lease;
use corten_store::{Draft, Operation, Range, Transaction, Txn, View};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tonic::Status;
use uuid::Uuid;

use crate::{
    core::Core,
    failure,
    leases::{Granted, Stage, TTL_OF_UNKNOWN, end, key},
};

/// What etcd raises shorter ones to with its usual times of elections.
const TTL_MIN: i64 = 2;
const TTL_MAX: i64 = 9_000_000_000;
/// Where keys could not be deleted, they are tried again after so long.
const RETRY: Duration = Duration::from_secs(1);

/// The work is a task of its own: a client that does not wait for the answer leaves no lease half way.
pub(crate) async fn grant(core: Arc<Core>, asked: LeaseGrantRequest) -> Result<LeaseGrantResponse, Status> {
    if asked.ttl > TTL_MAX {
        return Err(failure::lease_too_long());
    }
    let ttl = asked.ttl.max(TTL_MIN);
    let id = {
        let mut known = core.leases.known.lock();
        let id = if asked.id == 0 { free_id(&known) } else { asked.id };
        if known.contains_key(&id) {
            return Err(failure::lease_exists());
        }
        known.insert(id, Granted::new(ttl, Stage::Begins));
        id
    };
    to_the_end(begin(core, id, ttl)).await
}

async fn begin(core: Arc<Core>, id: i64, ttl: i64) -> Result<LeaseGrantResponse, Status> {
    let written = core.leases.write_down(id, ttl).await;
    let mut known = core.leases.known.lock();
    if let Err(error) = written {
        known.remove(&id);
        return Err(core.failed(error));
    }
    known.insert(id, Granted::new(ttl, Stage::Lasts));
    core.leases.changed.notify_one();
    Ok(LeaseGrantResponse { header: core.newest_header(), id, ttl, error: String::new() })
}

/// Goes on also where nobody waits for it any more.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    tokio::spawn(work).await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
}

/// Positive, as etcd's are.
fn free_id(known: &BTreeMap<i64, Granted>) -> i64 {
    loop {
        let id = (Uuid::new_v4().as_u64_pair().1 >> 1).cast_signed();
        if id != 0 && !known.contains_key(&id) {
            return id;
        }
    }
}

/// Ends a lease: its keys are deleted at one revision. Who comes second is told that there is none.
pub(crate) async fn revoke(core: Arc<Core>, id: i64) -> Result<LeaseRevokeResponse, Status> {
    if !core.leases.begin_end(id) {
        return Err(failure::no_lease());
    }
    to_the_end(delete(core, id)).await
}

async fn delete(core: Arc<Core>, id: i64) -> Result<LeaseRevokeResponse, Status> {
    let ending = core.clone();
    let body = Arc::new(move |draft: &mut Draft<'_>| {
        for key in ending.leases.keys(id) {
            if draft.get(&key).is_some_and(|it| it.lease == id) {
                draft.delete(&key);
            }
        }
        ControlFlow::Continue(())
    });
    let mut deleted = core.store.transact(Transaction { bytes: 0, body }).await;
    if deleted.is_ok() {
        let operations = vec![Operation::Delete { key: key(id) }];
        // Without keys it may be there again after a restart: then it ends once more.
        deleted = core.leases.disk.commit(Txn { compares: Vec::new(), operations }).await.and(deleted);
    }
    let mut known = core.leases.known.lock();
    match deleted {
        Ok(_) => {
            known.remove(&id);
            Ok(LeaseRevokeResponse { header: core.newest_header() })
        }
        Err(error) => {
            if let Some(lease) = known.get_mut(&id) {
                (lease.stage, lease.end) = (Stage::Lasts, lease.end.max(Instant::now() + RETRY));
            }
            core.leases.changed.notify_one();
            Err(core.failed(error))
        }
    }
}

/// `ttl` 0 says that there is no such lease.
pub(crate) fn keep_alive(core: &Core, asked: LeaseKeepAliveRequest) -> LeaseKeepAliveResponse {
    let mut known = core.leases.known.lock();
    let lease = known.get_mut(&asked.id).filter(|it| it.stage == Stage::Lasts && it.end > Instant::now());
    let ttl = lease.map_or(0, |it| {
        it.end = end(it.ttl);
        it.ttl
    });
    LeaseKeepAliveResponse { header: core.newest_header(), id: asked.id, ttl }
}

/// `ttl` -1 says that there is no such lease.
pub(crate) fn time_to_live(core: &Core, asked: LeaseTimeToLiveRequest) -> Result<LeaseTimeToLiveResponse, Status> {
    let view = core.view(&Range::prefix(""), 0)?;
    let mut known = core.leases.known.lock();
    let header = core.header(view.newest());
    let Some(lease) = known.get_mut(&asked.id).filter(|it| it.stage == Stage::Lasts) else {
        return Ok(LeaseTimeToLiveResponse { header, id: asked.id, ttl: -1, ..LeaseTimeToLiveResponse::default() });
    };
    let is_bound = |key: &&Bytes| view.get(key).is_some_and(|it| it.lease == asked.id);
    let keys = if asked.keys { lease.keys.iter().filter(is_bound).cloned().collect() } else { Vec::new() };
    Ok(LeaseTimeToLiveResponse { header, id: asked.id, ttl: lease.remaining(), granted_ttl: lease.ttl, keys })
}

pub(crate) fn list(core: &Core) -> LeaseLeasesResponse {
    let known = core.leases.known.lock();
    let lasting = known.iter().filter(|(_, it)| it.stage == Stage::Lasts);
    let leases = lasting.map(|(id, _)| LeaseStatus { id: *id }).collect();
    LeaseLeasesResponse { header: core.newest_header(), leases }
}

/// All that last, and all that a key of the view is bound to, as a snapshot has them: a key whose lease is not there would never end.
pub(crate) fn saved(core: &Core, view: &View) -> Vec<Lease> {
    let bound: BTreeSet<i64> = view.entries().map(|it| it.lease).filter(|it| *it != 0).collect();
    let known = core.leases.known.lock();
    let lasting = known.iter().filter(|(_, it)| it.stage == Stage::Lasts).map(|(id, _)| *id);
    let ids: BTreeSet<i64> = lasting.chain(bound).collect();
    ids.into_iter().map(|id| Lease { id, ttl: known.get(&id).map_or(TTL_OF_UNKNOWN, |it| it.ttl) }).collect()
}

/// Ends those whose time is over, until `stopping`.
pub(crate) async fn end_in_time(core: Arc<Core>, mut stopping: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            biased;
            _ = stopping.wait_for(|it| *it) => return,
            () = core.leases.changed.notified() => {}
            () = sleep_until(core.leases.first_end()) => {}
        }
        for id in core.leases.over() {
            if let Err(error) = revoke(core.clone(), id).await {
                tracing::warn!(%error, id, "the keys of a lease that is over cannot be deleted yet");
            }
        }
    }
}
