//! What another control plane is given: the cluster's keys, sealed by a key that only the printed line has, in a Secret that goes
//! after two hours, as kubeadm's `upload-certs` does it.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::{ROLE_BINDINGS, ROLES, SECRETS};
use corten_client::{Client, DeleteParams};
use corten_meta::{Key, Resource, Time};
use corten_pki::{BootstrapToken, EtcdFiles, public_key_hashes, sharing};
use corten_records::control_plane_record::{self, ControlPlaneRecord};
use serde_json::{Value, json};

use super::{NAMESPACE, PREFIX, objects};
use corten_console::failure::Failure;
use corten_node_process::node_process::up_with;

/// The Secret with what is sealed.
pub const SECRET: &str = "corten-certs";
/// Under this name the etcd's id is handed over.
pub const ETCD_CLUSTER: &str = control_plane_record::ETCD_CLUSTER;
/// Under this name the key of etcd's authority is handed over, to who runs a member.
pub const ETCD_AUTHORITY_KEY: &str = "etcd-ca.key";
/// kubeadm's `DefaultCertTokenDuration`.
const SHARED_FOR: Duration = Duration::from_secs(2 * 60 * 60);
/// Those who hold a token that makes a control plane.
pub(super) const CONTROL_PLANES: &str = "system:bootstrappers:corten:control-plane";
const ROLE: &str = "corten:control-plane-certs";

/// Files by the name that they are handed over by.
type Files = Vec<(String, Vec<u8>)>;

/// What the control plane of `data` hands to another one of the cluster whose authority has this hash.
///
/// # Errors
/// The folder has none, its cluster is another one or in the folder itself, or a file cannot be read.
pub(super) fn shared(data: &Path, ca_hash: &str) -> Result<Files> {
    let pki = data.join("pki");
    if let Err(error) = fs::read_dir(&pki) {
        let message = format!("the cluster's keys are not read from {}: {error}", pki.display());
        let mut failure = Failure::new(message);
        failure.details.push("a control plane is shared on its own machine, by who may read its --data-dir".to_owned());
        return Err(failure.next("sudo corten token create --control-plane").into());
    }
    let Some(mut record) = ControlPlaneRecord::load(data)? else {
        let message = format!("the cluster is in {}, and only this machine has it", data.display());
        let mut failure = Failure::new(message);
        failure.details.push(
            "several control planes need a cluster that is kept in an etcd: `corten up --ha`, or --etcd-servers"
                .to_owned(),
        );
        return Err(failure.next(up_with(data, "--ha")).into());
    };
    let mut files = sharing::shared_files(&pki).context("reading the cluster's keys")?;
    let authority = files.iter().find(|it| it.0 == "ca.crt").map(|it| String::from_utf8_lossy(&it.1));
    if !public_key_hashes(&authority.unwrap_or_default()).iter().any(|it| it.0 == ca_hash) {
        let message = format!("{} belongs to another cluster than the one of the kubeconfig", data.display());
        return Err(Failure::new(message)
            .next("corten token create --control-plane --kubeconfig FILE --data-dir DIR # both of one cluster")
            .into());
    }
    for (name, file) in record.files() {
        if let Some(path) = file.take() {
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            files.push((name.to_owned(), bytes));
        }
    }
    if record.is_ha {
        let path = EtcdFiles::of(&pki).ca_key;
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        files.push((ETCD_AUTHORITY_KEY.to_owned(), bytes));
    }
    // Where its files lie is that machine's business.
    (record.is_joined, record.joined_ca_hash) = (true, None);
    let record = serde_json::to_vec(&record).context("writing what the control plane was told")?;
    files.push((control_plane_record::FILE.to_owned(), record));
    let cluster = control_plane_record::etcd_cluster(data).context("reading which etcd the cluster is in")?;
    let cluster = cluster.context("the control plane has not met its etcd yet: start it first")?;
    files.push((ETCD_CLUSTER.to_owned(), cluster.into_bytes()));
    Ok(files)
}

/// Puts `files`, sealed, where a control plane that joins fetches them. Of several keys the newest opens them.
///
/// # Errors
/// The cluster does not take it.
pub(super) async fn publish(client: &Client, files: &Files, now: Time) -> Result<sharing::CertificateKey> {
    let key = sharing::CertificateKey::generate().context("making the certificate key")?;
    let mut data = BTreeMap::new();
    for (name, bytes) in files {
        let sealed = key.seal(name, bytes).with_context(|| format!("sealing {name}"))?;
        data.insert(name, STANDARD.encode(sealed));
    }
    for (resource, object) in rights() {
        super::ensure(client, &resource, NAMESPACE, &object).await.context("writing who may fetch the certificates")?;
    }
    // The end of a Secret of bootstrap tokens ends what it owns (kubeadm's `createShortLivedBootstrapToken`).
    let token = BootstrapToken::generate().context("making a token")?;
    let expires = now.after(SHARED_FOR).whole_seconds();
    let owner = objects::timer(&token, expires, "Proxy for managing TTL for the corten-certs secret");
    let owner =
        client.create(&SECRETS, NAMESPACE, &owner).await.context("writing until when certificates are shared")?;
    let owner: Value = serde_json::from_slice(&owner).context("reading until when certificates are shared")?;
    let owner = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "name": format!("{PREFIX}{}", token.id),
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
        "controller": true,
    });
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SECRET, "namespace": NAMESPACE, "ownerReferences": [owner] },
        "data": data,
    });
    match client.delete(&SECRETS, &Key::new(NAMESPACE, SECRET), &DeleteParams::default()).await {
        Err(error) if !error.is_not_found() => return Err(error).context("removing the certificates of before"),
        _ => {}
    }
    client.create(&SECRETS, NAMESPACE, &secret).await.context("sharing the certificates")?;
    Ok(key)
}

/// Who holds the token of a control plane may read what is sealed; who holds that of a node may not.
fn rights() -> [(Resource, Value); 2] {
    let mut role = objects::role(ROLE, json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }]));
    role["rules"][0]["resourceNames"] = json!([SECRET]);
    let group = json!({ "apiGroup": objects::RBAC, "kind": "Group", "name": CONTROL_PLANES });
    [(ROLES, role), (ROLE_BINDINGS, objects::binding(ROLE, "Role", ROLE, group))]
}

#[cfg(test)]
mod tests;
