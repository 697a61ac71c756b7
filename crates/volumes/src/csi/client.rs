//! One connection to a plugin's socket.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use corten_grpc::{Code as Theirs, Status};
use prost::Message;

use crate::{Code, Fault, StorageOperations};

/// The kubelet's `csiTimeout`.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) const PLUGIN_INFO: &str = "/csi.v1.Identity/GetPluginInfo";
pub(super) const PLUGIN_CAPABILITIES: &str = "/csi.v1.Identity/GetPluginCapabilities";
pub(super) const CONTROLLER_CAPABILITIES: &str = "/csi.v1.Controller/ControllerGetCapabilities";
pub(super) const CREATE: &str = "/csi.v1.Controller/CreateVolume";
pub(super) const DELETE: &str = "/csi.v1.Controller/DeleteVolume";
pub(super) const ATTACH: &str = "/csi.v1.Controller/ControllerPublishVolume";
pub(super) const DETACH: &str = "/csi.v1.Controller/ControllerUnpublishVolume";
pub(super) const LIST: &str = "/csi.v1.Controller/ListVolumes";
pub(super) const GET: &str = "/csi.v1.Controller/ControllerGetVolume";
pub(super) const CAPACITY: &str = "/csi.v1.Controller/GetCapacity";
pub(super) const CREATE_SNAPSHOT: &str = "/csi.v1.Controller/CreateSnapshot";
pub(super) const DELETE_SNAPSHOT: &str = "/csi.v1.Controller/DeleteSnapshot";
pub(super) const LIST_SNAPSHOTS: &str = "/csi.v1.Controller/ListSnapshots";
pub(super) const CONTROLLER_EXPAND: &str = "/csi.v1.Controller/ControllerExpandVolume";
pub(super) const MODIFY: &str = "/csi.v1.Controller/ControllerModifyVolume";
pub(super) const CAPABILITIES: &str = "/csi.v1.Node/NodeGetCapabilities";
pub(super) const INFO: &str = "/csi.v1.Node/NodeGetInfo";
pub(super) const STAGE: &str = "/csi.v1.Node/NodeStageVolume";
pub(super) const UNSTAGE: &str = "/csi.v1.Node/NodeUnstageVolume";
pub(super) const PUBLISH: &str = "/csi.v1.Node/NodePublishVolume";
pub(super) const UNPUBLISH: &str = "/csi.v1.Node/NodeUnpublishVolume";
pub(super) const EXPAND: &str = "/csi.v1.Node/NodeExpandVolume";
pub(super) const STATS: &str = "/csi.v1.Node/NodeGetVolumeStats";

/// Connects when first used, and again after the plugin was away. Cheap to clone. Its calls are counted.
#[derive(Clone, Debug)]
pub(super) struct Client {
    grpc: corten_grpc::Client,
    driver: Arc<str>,
    operations: StorageOperations,
}

impl Client {
    /// # Errors
    /// The path is none.
    pub(super) fn new(socket: &Path, driver: &str, operations: StorageOperations) -> Result<Self, Fault> {
        let grpc = corten_grpc::Client::new(socket).map_err(|it| fault(&it))?;
        Ok(Self { grpc, driver: driver.into(), operations })
    }

    pub(super) async fn call<Q, A>(&self, method: &'static str, question: Q) -> Result<A, Fault>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let begun = Instant::now();
        let answer = self.grpc.call(method, question, PATIENCE).await;
        let code = answer.as_ref().map_or_else(Status::code, |_| Theirs::Ok);
        self.operations.note_call(&self.driver, method, &name_in_go(code), begun.elapsed());
        answer.map_err(|it| fault(&it))
    }
}

fn name_in_go(code: Theirs) -> String {
    match code {
        Theirs::Ok => "OK".to_owned(),
        Theirs::Cancelled => "Canceled".to_owned(),
        other => format!("{other:?}"),
    }
}

fn fault(status: &Status) -> Fault {
    let code = match status.code() {
        Theirs::InvalidArgument => Code::InvalidArgument,
        Theirs::DeadlineExceeded => Code::DeadlineExceeded,
        Theirs::NotFound => Code::NotFound,
        Theirs::AlreadyExists => Code::AlreadyExists,
        Theirs::PermissionDenied | Theirs::Unauthenticated => Code::PermissionDenied,
        Theirs::ResourceExhausted => Code::ResourceExhausted,
        Theirs::FailedPrecondition => Code::FailedPrecondition,
        Theirs::Aborted => Code::Aborted,
        Theirs::OutOfRange => Code::OutOfRange,
        Theirs::Unimplemented => Code::Unimplemented,
        Theirs::Internal => Code::Internal,
        Theirs::Unavailable => Code::Unavailable,
        Theirs::Cancelled => Code::Canceled,
        _ => Code::Unknown,
    };
    Fault::new(code, status.message())
}
