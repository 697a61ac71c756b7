//! What a kubelet asks of the API about one volume of a Pod: its claim, the claim's volume, that volume's driver, and how far
//! it is attached. As its node, which may read just these (the node authorizer).

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Secret, SecretReference},
    resources::{CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS, VOLUME_ATTACHMENTS},
    storage::v1::CSIDriver,
    volumes::attachment_name,
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
    // A volume that does not grow needs none: who grows it says what is missing.
    read.expand_secrets = secrets(client, csi.node_expand_secret_ref.and_then(key_of)).await.unwrap_or_default();
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
    let texts = data.into_iter().map(|(name, value)| match String::from_utf8(value.0) {
        Ok(value) => Ok((name, value)),
        // CSI's words are texts: gRPC would not send another, and one that is changed is another secret.
        Err(_) => Err(format!(
            "the secret {} in the namespace {} has a value that is not UTF-8 and cannot be told to a driver: {name:?}",
            key.name, key.namespace
        )),
    });
    Ok(Secrets(texts.collect::<Result<_, _>>()?))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake::FakeApi;

    #[tokio::test]
    async fn a_secret_that_is_no_text_is_refused_and_not_changed() {
        let api = FakeApi::new();
        let secret = |data| json!({ "metadata": { "name": "key", "namespace": "ns" }, "data": data });
        let client = api.client();
        let read = || secrets(&client, Some(Key::new("ns", "key")));
        api.put("/api/v1/namespaces/ns/secrets/key", secret(json!({ "user": "w7w=" })));
        assert_eq!(read().await.expect("a text").0["user"], "\u{fc}");
        api.put("/api/v1/namespaces/ns/secrets/key", secret(json!({ "user": "YQ==", "key": "/w==" })));
        let refused = read().await.err();
        let why =
            "the secret key in the namespace ns has a value that is not UTF-8 and cannot be told to a driver: \"key\"";
        assert_eq!(refused.as_deref(), Some(why));
    }

    #[tokio::test]
    async fn a_driver_says_where_it_wants_tokens() {
        let api = FakeApi::new();
        let driver = |spec| json!({ "metadata": { "name": "d" }, "spec": spec });
        let inline = VolumeName::Driver { name: "d".into(), secret: None };
        for (spec, in_secrets) in [(json!({}), false), (json!({ "serviceAccountTokenInSecrets": true }), true)] {
            api.put("/apis/storage.k8s.io/v1/csidrivers/d", driver(spec));
            let read = read(&api.client(), "n1", "ns", &inline).await.expect("it is there");
            assert_eq!(read.tokens_in_secrets, in_secrets);
        }
    }
}
