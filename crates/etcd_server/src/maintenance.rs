//! The service Maintenance: how the one member is, and whether two stores hold the same.

use std::sync::Arc;

use corten_etcd_api::{
    AlarmMember, AlarmRequest, AlarmResponse, DefragmentResponse, HashKvRequest, HashKvResponse, HashResponse,
    StatusResponse,
};
use corten_store::{Range, View};
use crc32fast::Hasher;
use tonic::Status;

use crate::core::{Core, TERM};

/// The version of etcd whose API this is: clients ask for features by it.
const VERSION: &str = "3.5.16";
/// As etcd numbers what is done with alarms, and alarms.
const ACTIVATE: i32 = 1;
const NO_SPACE: i32 = 1;

pub(crate) fn status(core: &Core) -> StatusResponse {
    let (revision, disk) = (core.store.revision(), core.store.disk_use());
    let bytes = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    let used = disk.map_or(0, |it| bytes(it.used));
    StatusResponse {
        header: core.header(revision),
        version: VERSION.into(),
        db_size: used,
        leader: core.identity.member,
        // Its log is the store's own.
        raft_index: revision,
        raft_term: TERM,
        raft_applied_index: revision,
        errors: disk.and_then(|it| it.concern()).into_iter().collect(),
        db_size_in_use: used,
        is_learner: false,
        storage_version: String::new(),
        db_size_quota: disk.map_or(0, |it| bytes(it.used.saturating_add(it.available))),
    }
}

/// Alarms follow the disk: they are neither raised nor taken back by anybody.
pub(crate) fn alarm(core: &Core, asked: AlarmRequest) -> Result<AlarmResponse, Status> {
    if asked.action == ACTIVATE {
        return Err(Status::unimplemented("etcdserver: alarms are raised by the disk alone"));
    }
    let is_full = core.store.disk_use().is_some_and(|it| it.is_refused);
    let raised = is_full.then_some(AlarmMember { member_id: core.identity.member, alarm: NO_SPACE });
    Ok(AlarmResponse { header: core.newest_header(), alarms: raised.into_iter().collect() })
}

/// The store writes itself anew when its log has outgrown the data: there is nothing that would be left to do.
pub(crate) fn defragment(core: &Core) -> DefragmentResponse {
    DefragmentResponse { header: core.newest_header() }
}

pub(crate) async fn hash(core: Arc<Core>) -> Result<HashResponse, Status> {
    let view = core.view(&Range::prefix(""), 0)?;
    let header = core.header(view.newest());
    Ok(HashResponse { header, hash: hash_apart(view).await? })
}

pub(crate) async fn hash_kv(core: Arc<Core>, asked: HashKvRequest) -> Result<HashKvResponse, Status> {
    let view = core.view(&Range::prefix(""), asked.revision)?;
    let (header, revision) = (core.header(view.newest()), view.revision());
    let compact_revision = core.store.oldest().cast_signed();
    Ok(HashKvResponse {
        header,
        hash: hash_apart(view).await?,
        compact_revision,
        hash_revision: revision.cast_signed(),
    })
}

/// All keys are looked at: others are answered meanwhile.
async fn hash_apart(view: View) -> Result<u32, Status> {
    let hashing = tokio::task::spawn_blocking(move || hash_of(&view));
    hashing.await.map_err(|it| Status::internal(it.to_string()))
}

/// The same for the same live keys with the same revisions. No hash of etcd's: that is of its file.
fn hash_of(view: &View) -> u32 {
    let mut hasher = Hasher::new();
    for entry in view.entries() {
        for part in [&entry.key, &entry.value] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        for number in [entry.create_revision, entry.mod_revision, entry.version, entry.lease.cast_unsigned()] {
            hasher.update(&number.to_le_bytes());
        }
    }
    hasher.finalize()
}
