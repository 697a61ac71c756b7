//! One connection to a plugin's socket.

use std::{path::Path, time::Duration};

use http::uri::PathAndQuery;
use prost::Message;
use tonic::{
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::{Code, Fault};

/// The kubelet's `csiTimeout`.
const PATIENCE: Duration = Duration::from_secs(120);
/// An answer that says more says too much.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// What of a driver's words is passed on.
const MESSAGE_CHARS_MAX: usize = 2048;

pub(super) const PLUGIN_INFO: &str = "/csi.v1.Identity/GetPluginInfo";
pub(super) const PLUGIN_CAPABILITIES: &str = "/csi.v1.Identity/GetPluginCapabilities";
pub(super) const CONTROLLER_CAPABILITIES: &str = "/csi.v1.Controller/ControllerGetCapabilities";
pub(super) const CREATE: &str = "/csi.v1.Controller/CreateVolume";
pub(super) const DELETE: &str = "/csi.v1.Controller/DeleteVolume";
pub(super) const ATTACH: &str = "/csi.v1.Controller/ControllerPublishVolume";
pub(super) const DETACH: &str = "/csi.v1.Controller/ControllerUnpublishVolume";
pub(super) const CAPACITY: &str = "/csi.v1.Controller/GetCapacity";
pub(super) const CREATE_SNAPSHOT: &str = "/csi.v1.Controller/CreateSnapshot";
pub(super) const DELETE_SNAPSHOT: &str = "/csi.v1.Controller/DeleteSnapshot";
pub(super) const CONTROLLER_EXPAND: &str = "/csi.v1.Controller/ControllerExpandVolume";
pub(super) const MODIFY: &str = "/csi.v1.Controller/ControllerModifyVolume";
pub(super) const GET_INFO: &str = "/pluginregistration.Registration/GetInfo";
pub(super) const NOTIFY: &str = "/pluginregistration.Registration/NotifyRegistrationStatus";
pub(super) const CAPABILITIES: &str = "/csi.v1.Node/NodeGetCapabilities";
pub(super) const INFO: &str = "/csi.v1.Node/NodeGetInfo";
pub(super) const STAGE: &str = "/csi.v1.Node/NodeStageVolume";
pub(super) const UNSTAGE: &str = "/csi.v1.Node/NodeUnstageVolume";
pub(super) const PUBLISH: &str = "/csi.v1.Node/NodePublishVolume";
pub(super) const UNPUBLISH: &str = "/csi.v1.Node/NodeUnpublishVolume";
pub(super) const EXPAND: &str = "/csi.v1.Node/NodeExpandVolume";
pub(super) const STATS: &str = "/csi.v1.Node/NodeGetVolumeStats";

/// Connects when first used, and again after the plugin was away. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Client {
    channel: Channel,
}

impl Client {
    /// # Errors
    /// The path is none.
    pub(super) fn new(socket: &Path) -> Result<Self, Fault> {
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()));
        let endpoint = endpoint.map_err(|it| Fault::internal(format!("socket {}: {it}", socket.display())))?;
        Ok(Self { channel: endpoint.connect_timeout(Duration::from_secs(5)).connect_lazy() })
    }

    pub(super) async fn call<Q, A>(&self, method: &'static str, question: Q) -> Result<A, Fault>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        let mut request = tonic::Request::new(question);
        request.set_timeout(PATIENCE);
        let work = async {
            grpc.ready().await.map_err(|it| Fault::new(Code::Unavailable, it.to_string()))?;
            let answer = grpc.unary(request, PathAndQuery::from_static(method), ProstCodec::<Q, A>::default()).await;
            answer.map(tonic::Response::into_inner).map_err(|it| fault(&it))
        };
        let late = || Fault::new(Code::DeadlineExceeded, "context deadline exceeded");
        tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(late()))
    }
}

fn fault(status: &tonic::Status) -> Fault {
    let code = match status.code() {
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::PermissionDenied | tonic::Code::Unauthenticated => Code::PermissionDenied,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Aborted => Code::Aborted,
        tonic::Code::OutOfRange => Code::OutOfRange,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::Internal => Code::Internal,
        tonic::Code::Unavailable => Code::Unavailable,
        _ => Code::Unknown,
    };
    Fault::new(code, status.message().chars().take(MESSAGE_CHARS_MAX).collect::<String>())
}
