//! A machine becomes a node: by its token it is given a node's certificate.

use std::time::Duration;

use anyhow::{Context, Result};
use corten_api::{core::v1::Node, resources::NODES};
use corten_cli::Failure;
use corten_client::{Client, Error, kubeconfig::Kubeconfig};
use corten_meta::Key;
use corten_pki::{Credential, node_request};
use corten_runner::{CertificateWish, request_certificate, signed_certificate};

use super::{Invitation, JoinedFiles, SIGNER, USAGES, client, servers::KeptServers};

/// After this long it is said what is waited for.
const SOON: Duration = Duration::from_secs(5);
/// client-go's `certificateWaitTimeout`.
const SIGNED_WITHIN: Duration = Duration::from_secs(15 * 60);
const CREATE: &str = "corten token create # on a machine of the cluster";

/// Has `node` join the cluster whose authority is `ca`, and keeps what it needs to go on.
///
/// # Errors
/// The token is none of the cluster's, the name is taken, or the certificate is refused.
pub(crate) async fn join(invitation: &Invitation, ca: &str, node: &str, files: &JoinedFiles) -> Result<()> {
    let server = &invitation.server;
    let target = invitation.target(ca);
    let client = client(&target)?;
    refuse_namesake(&client, server, node).await?;
    let (request, key) = node_request(node).context("making the node's key")?;
    let wish = CertificateWish { request: &request, signer: SIGNER, usages: USAGES };
    let asked = request_certificate(&client, wish).await.map_err(|it| refused(server, &it))?;
    let certificate = wait(&client, &asked).await?;
    let credential = Credential { certificate, key };
    anyhow::ensure!(credential.is_whole(), "the certificate of {} is not for the key that asked for it", asked.name);
    let folder = files.certificate.parent().context("the certificate is in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    credential.save(&files.certificate).context("keeping the node's certificate")?;
    KeptServers { joined: Some(server.clone()), learnt: Vec::new() }.save(&files.servers)?;
    let config = Kubeconfig::with_files(&target, &format!("system:node:{node}"), &files.certificate);
    config.save(&files.kubeconfig).context("keeping where the cluster is")
}

/// Two machines of one name would be one node: each would end the other's Pods.
async fn refuse_namesake(client: &Client, server: &str, node: &str) -> Result<()> {
    let found: Node = match client.get_as(&NODES, &Key::cluster(node)).await {
        // Where tokens may not look, as in a cluster of kubeadm before 1.18, nobody can tell.
        Err(error) if error.is_not_found() || error.status().is_some_and(|it| it.code == 403) => return Ok(()),
        other => other.map_err(|it| refused(server, &it))?,
    };
    let conditions = found.status.and_then(|it| it.conditions).unwrap_or_default();
    if !conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True") {
        return Ok(());
    }
    let message = format!("the cluster has a node {node} that is Ready: another machine has this name");
    let mut failure = Failure::new(message);
    failure
        .details
        .push("give this one another with --node-name; or, where the other machine is gone, forget it".to_owned());
    Err(failure.next(format!("kubectl delete node {node}")).into())
}

fn refused(server: &str, error: &Error) -> anyhow::Error {
    match error.status().map(|it| it.code) {
        Some(401) => {
            Failure::new(format!("{server} does not know the token: it is wrong, deleted or has expired")).next(CREATE)
        }
        Some(403) => Failure::new(format!("the token may not ask for a node's certificate: {error}")).next(CREATE),
        _ => Failure::new(format!("{server} did not take the request for a certificate: {error}")),
    }
    .into()
}

async fn wait(client: &Client, request: &Key) -> Result<String> {
    let signed = async {
        tokio::pin! {
            let signed = signed_certificate(client, request);
        }
        if let Ok(signed) = tokio::time::timeout(SOON, &mut signed).await {
            return signed;
        }
        eprintln!("… the node's certificate waits to be approved: kubectl certificate approve {}", request.name);
        signed.await
    };
    match tokio::time::timeout(SIGNED_WITHIN, signed).await {
        Ok(signed) => {
            signed.map_err(|it| Failure::new(it).next(format!("kubectl describe csr {}", request.name)).into())
        }
        Err(_) => {
            let message = format!("signing request {} was not answered in time", request.name);
            Err(Failure::new(message).next(format!("kubectl certificate approve {}", request.name)).into())
        }
    }
}
