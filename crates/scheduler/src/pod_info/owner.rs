//! The workload that controls a pod, where it is of a kind that groups pods by labels.

use corten_api::resources::{REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS};
use corten_meta::{ObjectMeta, Resource};

/// A kind of workload, and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) workload: Workload,
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    ReplicaSet,
    ReplicationController,
    StatefulSet,
}

impl Workload {
    const ALL: [(Self, Resource); 3] = [
        (Self::ReplicaSet, REPLICA_SETS),
        (Self::ReplicationController, REPLICATION_CONTROLLERS),
        (Self::StatefulSet, STATEFUL_SETS),
    ];

    pub(crate) fn of(resource: &Resource) -> Option<Self> {
        Self::ALL.iter().find(|it| it.1 == *resource).map(|it| it.0)
    }
}

impl Owner {
    pub(crate) fn of(pod: &ObjectMeta) -> Option<Self> {
        let owner = pod.controller()?;
        let is_kind = |it: &&(Workload, Resource)| it.1.kind == owner.kind && api_version(&it.1) == owner.api_version;
        let workload = Workload::ALL.iter().find(is_kind)?.0;
        Some(Self { workload, name: owner.name.clone() })
    }
}

fn api_version(resource: &Resource) -> String {
    match &*resource.group {
        "" => resource.version.to_string(),
        group => format!("{group}/{}", resource.version),
    }
}
