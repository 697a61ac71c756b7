//! The way from the components of this process to its API server: no socket, the same chain, an identity of its own.

use bytes::Bytes;
use corten_access::Identity;
use corten_apiserver::{Fence, Server};
use corten_client::{Body, BoxFuture, Client, RequestTallies, Transport, TransportError};
use http::{Request, Response};
use std::sync::Arc;

/// The API server of this process, and where it is counted what is asked of it.
#[derive(Clone)]
pub(crate) struct OwnServer {
    pub(crate) server: Server,
    pub(crate) requests: RequestTallies,
}

struct InProcess {
    server: Server,
    who: Identity,
    fence: Option<Fence>,
}

impl Transport for InProcess {
    fn send(&self, mut request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        if let Some(fence) = &self.fence {
            request.extensions_mut().insert(fence.clone());
        }
        Box::pin(async move { Ok(self.server.call(self.who.clone(), request).await) })
    }
}

/// A client that speaks as `who`.
pub(crate) fn client(server: &OwnServer, who: Identity) -> Client {
    fenced(server, who, None)
}

/// A client that speaks as `who`, and whose writes are bound to a lease where there is one.
pub(crate) fn fenced(own: &OwnServer, who: Identity, fence: Option<Fence>) -> Client {
    let server = own.server.clone();
    Client::new(Arc::new(InProcess { server, who, fence })).with_request_tallies(own.requests.clone())
}

/// The service account a controller speaks as.
pub(crate) fn controller(account: &str) -> Identity {
    Identity::new(
        format!("system:serviceaccount:kube-system:{account}"),
        &["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
    )
}

/// What controllers see they see as this one.
pub(crate) fn controller_manager() -> Identity {
    Identity::new("system:kube-controller-manager", &["system:authenticated"])
}

pub(crate) fn scheduler() -> Identity {
    Identity::new("system:kube-scheduler", &["system:authenticated"])
}

pub(crate) fn kubelet(node: &str) -> Identity {
    Identity::new(format!("system:node:{node}"), &["system:nodes", "system:authenticated"])
}

/// Who makes, grows and removes volumes with the drivers of a node.
pub(crate) fn volume_provisioner() -> Identity {
    Identity::new("system:node-volume-provisioner", &["system:authenticated"])
}

/// Who asks the drivers of nodes on other machines, over their kubelets' API.
pub(crate) fn node_volumes() -> Identity {
    Identity::new("system:node-volumes", &["system:authenticated"])
}

/// Who lays policies on a node.
pub(crate) fn network_policy() -> Identity {
    Identity::new("system:node-network-policy", &["system:authenticated"])
}

pub(crate) fn kube_proxy() -> Identity {
    Identity::new("system:kube-proxy", &["system:authenticated"])
}
