//! What a driver is asked of volumes as such, whichever node has them, as data: the same question is put to a driver of this node
//! ([`Call::put_to`]) and to one of another machine ([`crate::channel`]).
//!
//! They are the calls of CSI's service Controller, with its rules: each may be put again, and then means the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    AttachedTo, Capacity, CreateSnapshot, CreateVolume, CreatedVolume, Driver, Expanded, Fault, Snapshot, StageVolume,
};

/// A question; [`Driver`] says of each what it means.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Create(CreateVolume),
    Delete {
        handle: String,
        secrets: BTreeMap<String, String>,
    },
    Expand {
        volume: StageVolume,
        bytes: u64,
    },
    Attach {
        volume: StageVolume,
        node_id: String,
        read_only: bool,
    },
    Detach {
        handle: String,
        node_id: String,
        secrets: BTreeMap<String, String>,
    },
    CreateSnapshot(CreateSnapshot),
    DeleteSnapshot {
        handle: String,
        secrets: BTreeMap<String, String>,
    },
    FindSnapshot {
        handle: String,
        secrets: BTreeMap<String, String>,
    },
    Conditions {
        handles: BTreeSet<String>,
    },
    Attached {
        places: AttachedTo,
    },
    Modify {
        handle: String,
        parameters: BTreeMap<String, String>,
        /// A control plane of before does not tell them.
        #[serde(default)]
        secrets: BTreeMap<String, String>,
    },
    Capacity {
        parameters: BTreeMap<String, String>,
    },
}

/// What is answered; each question has its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Done,
    Created(CreatedVolume),
    Expanded(Expanded),
    Attached(BTreeMap<String, String>),
    Snapshot(Option<Snapshot>),
    Conditions(BTreeMap<String, Option<String>>),
    AttachedTo(AttachedTo),
    Capacity(Option<Capacity>),
}

impl Call {
    /// # Errors
    /// What the driver says.
    pub async fn put_to(self, driver: &dyn Driver) -> Result<Reply, Fault> {
        let done = |(): ()| Reply::Done;
        match self {
            Self::Create(volume) => driver.create(volume).await.map(Reply::Created),
            Self::Delete { handle, secrets } => driver.delete(handle, secrets).await.map(done),
            Self::Expand { volume, bytes } => driver.expand(volume, bytes).await.map(Reply::Expanded),
            Self::Attach { volume, node_id, read_only } => {
                driver.attach(volume, node_id, read_only).await.map(Reply::Attached)
            }
            Self::Detach { handle, node_id, secrets } => driver.detach(handle, node_id, secrets).await.map(done),
            Self::CreateSnapshot(snapshot) => driver.create_snapshot(snapshot).await.map(Some).map(Reply::Snapshot),
            Self::DeleteSnapshot { handle, secrets } => driver.delete_snapshot(handle, secrets).await.map(done),
            Self::FindSnapshot { handle, secrets } => driver.find_snapshot(handle, secrets).await.map(Reply::Snapshot),
            Self::Conditions { handles } => driver.conditions(handles).await.map(Reply::Conditions),
            Self::Attached { places } => driver.attached(places).await.map(Reply::AttachedTo),
            Self::Modify { handle, parameters, secrets } => driver.modify(handle, parameters, secrets).await.map(done),
            Self::Capacity { parameters } => driver.capacity(parameters).await.map(Reply::Capacity),
        }
    }
}
