//! What every request is answered from.

use std::sync::Arc;

use bytes::Bytes;
use corten_etcd_api::ResponseHeader;
use corten_store::{LocalStore, Range, Revision, View};
use tokio::sync::Semaphore;
use tonic::Status;

use crate::{failure, leases::Leases};

/// etcd begins with it, and a member that is alone stays there.
pub(crate) const TERM: u64 = 1;

/// Keys that others have to leave to who keeps the store.
#[derive(Clone, Debug)]
pub struct Reserved {
    pub prefix: Bytes,
    /// What is said to who would put one.
    pub reason: String,
    /// Those below these prefixes are not deleted either.
    pub lasting: Vec<Bytes>,
    /// What is said to who would delete one.
    pub lasting_reason: String,
}

/// By what clients tell clusters and members apart.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) cluster: u64,
    pub(crate) member: u64,
}

pub(crate) struct Core {
    pub(crate) store: Arc<dyn LocalStore>,
    pub(crate) leases: Leases,
    pub(crate) identity: Identity,
    pub(crate) reserved: Option<Reserved>,
    /// Where clients reach it.
    pub(crate) urls: Vec<String>,
    /// Each snapshot is a copy of all that there is, in memory: there is one at a time.
    pub(crate) snapshots: Arc<Semaphore>,
}

impl Core {
    pub(crate) fn header(&self, revision: Revision) -> Option<ResponseHeader> {
        let Identity { cluster, member } = self.identity;
        Some(ResponseHeader {
            cluster_id: cluster,
            member_id: member,
            revision: revision.cast_signed(),
            raft_term: TERM,
        })
    }

    pub(crate) fn newest_header(&self) -> Option<ResponseHeader> {
        self.header(self.store.revision())
    }

    /// # Errors
    /// The revision is not there any more, or not yet.
    pub(crate) fn view(&self, range: &Range, revision: i64) -> Result<View, Status> {
        let revision = (revision > 0).then_some(revision.unsigned_abs());
        self.store.view(range, revision).map_err(failure::of_store)
    }

    /// What the store could not do, in etcd's words.
    pub(crate) fn failed(&self, error: corten_store::Error) -> Status {
        let is_full =
            matches!(error, corten_store::Error::Io(_)) && self.store.disk_use().is_some_and(|it| it.is_refused);
        if is_full { failure::no_space() } else { failure::of_store(error) }
    }
}
