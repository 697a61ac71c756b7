//! What a kubelet asks of the API about one volume of a Pod: its claim, the claim's volume, that volume's driver, and how far
//! it is attached. As its node, which may read just these (the node authorizer).

use aws_lc_rs::digest::{SHA256, digest};
use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Secret, SecretReference},
    resources::{CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS, VOLUME_ATTACHMENTS},
    storage::v1::CSIDriver,
};
use corten_client::{Client, Error};
use corten_kubelet::{Secrets, VolumeName, VolumeRead};
use corten_meta::{Key, Resource};
use serde::de::DeserializeOwned;

/// Reads all there is to say of a volume; an error is in the words of the kubelet's `desiredStateOfWorldPopulator`.
pub(crate) async fn read(
    client: &Client,
    node: &str,
    namespace: &str,
    name: &VolumeName,
) -> Result<Box<VolumeRead>, String> {
    let claim = match name {
        VolumeName::Driver { name, secret } => {
            let driver = driver(client, name).await.map_err(|it| format!("kubernetes.io/csi: {it}"))?;
            let (driver, tokens_in_secrets) = driver.unzip();
            let tokens_in_secrets = tokens_in_secrets == Some(true);
            let secret = secret.as_ref().map(|it| Key::new(namespace, it.as_str()));
            let publish_secrets = secrets(client, secret).await?;
            return Ok(Box::new(VolumeRead { driver, tokens_in_secrets, publish_secrets, ..VolumeRead::default() }));
        }
        VolumeName::Claim(claim) => claim,
    };
    let key = Key::new(namespace, claim.as_str());
    let read = client.get_as::<PersistentVolumeClaim>(&PERSISTENT_VOLUME_CLAIMS, &key).await;
    let claim = read
        .map_err(|it| format!("error processing PVC {namespace}/{claim}: failed to fetch PVC from API server: {it}"))?;
    let named = claim.spec.as_ref().and_then(|it| it.volume_name.clone()).filter(|it| !it.is_empty());
    let is_bound = claim.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Bound");
    let mut read = VolumeRead { claim: Some(claim), ..VolumeRead::default() };
    // Before that the node may not look at the volume.
    let Some(volume) = named.filter(|_| is_bound) else { return Ok(Box::new(read)) };
    let fetched = found::<PersistentVolume>(client, &PERSISTENT_VOLUMES, &volume).await;
    read.volume = fetched.map_err(|it| format!("failed to fetch PV {volume} from API server: {it}"))?;
    let csi = read.volume.as_ref().and_then(|it| it.spec.as_ref()?.csi.as_ref());
    let Some(csi) = csi.cloned() else { return Ok(Box::new(read)) };
    let (name, handle) = (csi.driver, csi.volume_handle);
    read.stage_secrets = secrets(client, csi.node_stage_secret_ref.and_then(key_of)).await?;
    read.publish_secrets = secrets(client, csi.node_publish_secret_ref.and_then(key_of)).await?;
    let fetched = driver(client, &name).await;
    let fetched = fetched.map_err(|it| format!("failed to fetch CSIDriver {name} from API server: {it}"))?;
    (read.driver, read.tokens_in_secrets) = fetched.map_or((None, false), |it| (Some(it.0), it.1));
    if read.driver.as_ref().is_none_or(|it| it.spec.attach_required != Some(false)) {
        let name = attachment_name(&handle, &name, node);
        let fetched = found(client, &VOLUME_ATTACHMENTS, &name).await;
        read.attachment = fetched.map_err(|it| format!("failed to fetch VolumeAttachment {name}: {it}"))?;
    }
    Ok(Box::new(read))
}

/// A driver's object, and whether it takes tokens among Secrets alone.
async fn driver(client: &Client, name: &str) -> Result<Option<(CSIDriver, bool)>, Error> {
    let Some(found) = found::<serde_json::Value>(client, &CSI_DRIVERS, name).await? else { return Ok(None) };
    let in_secrets = found["spec"]["serviceAccountTokenInSecrets"] == true;
    Ok(Some((corten_client::decode(found.to_string().as_bytes())?, in_secrets)))
}

fn key_of(reference: SecretReference) -> Option<Key> {
    Some(Key::new(reference.namespace?, reference.name?))
}

/// What a Secret says, as text; a driver is told nothing where none is named.
pub(crate) async fn secrets(client: &Client, secret: Option<Key>) -> Result<Secrets, String> {
    let Some(key) = secret else { return Ok(Secrets::default()) };
    let read = client.get_as::<Secret>(&SECRETS, &key).await;
    let failed = |it: Error| {
        format!("failed to find the secret {} in the namespace {} with error: {it}", key.name, key.namespace)
    };
    let data = read.map_err(failed)?.data.unwrap_or_default();
    Ok(Secrets(data.into_iter().map(|it| (it.0, String::from_utf8_lossy(&it.1.0).into_owned())).collect()))
}

async fn found<T: DeserializeOwned>(client: &Client, resource: &Resource, name: &str) -> Result<Option<T>, Error> {
    match client.get_as(resource, &Key::cluster(name)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        // The node authorizer says no more of an attachment that is not there.
        Err(Error::Status(status)) if status.code == 403 && resource.plural == VOLUME_ATTACHMENTS.plural => Ok(None),
        Err(error) => Err(error),
    }
}

/// As upstream's `getAttachmentName`: of handle, driver and node.
pub(crate) fn attachment_name(handle: &str, driver: &str, node: &str) -> String {
    let hash = digest(&SHA256, format!("{handle}{driver}{node}").as_bytes());
    let hex: String = hash.as_ref().iter().map(|it| format!("{it:02x}")).collect();
    format!("csi-{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_is_named_as_upstream_names_it() {
        let name = attachment_name("vol", "driver", "node");
        assert_eq!(name.len(), "csi-".len() + 64);
        assert_ne!(name, attachment_name("vol", "driver", "other"));
    }
}
