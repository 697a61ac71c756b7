//! What a machine has that joined a cluster on another one: where its API server is, whom it trusts, and who the node is there.
//!
//! ```text
//! DATA/kubelet/kubeconfig                       the server, the authorities, and where the certificate is
//! DATA/kubelet/pki/kubelet-client-current.pem   the node's certificate and key, as upstream's kubelet keeps them
//! DATA/kubelet/servers                          `joined` and the server joined by; all that the cluster told of, as they are asked
//! DATA/kubelet/node.kubeconfig                  how root of the machine asks the node itself
//! DATA/kubelet/kept/                            what it runs and needs for that, for a start while no server answers
//! ```

mod control_plane;
mod discovery;
mod first_certificate;
mod identity;
mod kept;
mod network;
mod pod_ranges;
mod servers;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use corten_cli::{Failure, NODE_KUBECONFIG, command_on};
use corten_client::{Client, https::HttpsTransport, kubeconfig::RestConfig};

pub(crate) use control_plane::join_control_plane;
pub(crate) use discovery::{Invitation, discover};
pub(crate) use first_certificate::join;
pub(crate) use identity::NodeIdentity;
pub(crate) use kept::KeptStore;
pub(crate) use network::cluster_network;
pub(crate) use pod_ranges::pod_ranges;

/// The signer of what nodes show to the API server.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signers of Kubernetes before v1.27 refuse a request without the second.
const USAGES: &[&str] = &["digital signature", "key encipherment", "client auth"];
/// Of requests while a machine joins.
const DEADLINE: Duration = Duration::from_secs(15);

/// Where a joined machine keeps what it joined with.
#[derive(Clone, Debug)]
pub(crate) struct JoinedFiles {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) servers: PathBuf,
    /// How the node itself is asked.
    pub(crate) node_kubeconfig: PathBuf,
}

impl JoinedFiles {
    pub(crate) fn of(data: &Path) -> Self {
        let kubelet = data.join("kubelet");
        Self {
            kubeconfig: kubelet.join("kubeconfig"),
            certificate: kubelet.join("pki/kubelet-client-current.pem"),
            servers: kubelet.join("servers"),
            node_kubeconfig: kubelet.join(NODE_KUBECONFIG),
        }
    }
}

/// # Errors
/// The machine is no member of another machine's cluster, and cannot become one.
pub(crate) fn refuse_own_cluster(data: &Path) -> Result<()> {
    if data.join("pki/ca.key").exists() {
        let message = format!("{} holds a cluster of this machine's own: its node belongs to that", data.display());
        let (down, reset) = (command_on(data, "down"), command_on(data, "reset"));
        return Err(Failure::new(message).next(format!("{down} && {reset}")).into());
    }
    Ok(())
}

fn client(target: &RestConfig) -> Result<Client> {
    let transport = HttpsTransport::new(target).context("preparing the connection")?;
    Ok(Client::new(std::sync::Arc::new(transport)).with_deadline(DEADLINE))
}
