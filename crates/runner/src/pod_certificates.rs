//! Certificates for a node's pods: makes keys and the requests for them, and follows what becomes of those.

use std::task::{Context, Poll};

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::{NODES, POD_CERTIFICATE_REQUESTS, SERVICE_ACCOUNTS};
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode};
use corten_kubelet::{
    CertificateAnswer, CertificateAsked, CertificateNews, CertificatePlace, CertificateWish, Event, PodRef, PrivateKey,
};
use corten_meta::{Key, ObjectMeta, Time};
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ECDSA_P521_SHA512, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize,
};
use serde::Deserialize;
use serde_json::json;

/// The requests that this node has made; followed from the first one on.
#[derive(Default)]
pub(crate) struct Requests(Option<Informer<CertificateNews>>);

impl Requests {
    pub(crate) fn follow(&mut self, client: &Client, node: &str) {
        self.0.get_or_insert_with(|| {
            let field_selector = format!("spec.nodeName={node}");
            let params = InformerParams { field_selector, ..InformerParams::all(POD_CERTIFICATE_REQUESTS) };
            Informer::decoding(client.clone(), params.seeded_by(node), |bytes| {
                let request: Request = decode(&bytes)?;
                Ok((Identity::of(&request.metadata), request.news()))
            })
        });
    }

    /// All news there is.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, most: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let Some(informer) = &mut self.0 else { return events };
        while events.len() < most
            && let Poll::Ready(event) = informer.poll_event(context)
        {
            match event {
                InformerEvent::Applied(news, identity) => {
                    events.push(Event::CertificateRequest { key: identity.key, news: Some(news) });
                }
                InformerEvent::Deleted(meta) => {
                    events.push(Event::CertificateRequest { key: meta.key(), news: None });
                }
                InformerEvent::Synced(_) => {}
            }
        }
        events
    }
}

#[derive(Deserialize)]
struct Request {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(rename = "podUID")]
    pod_uid: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Vec<Condition>,
    certificate_chain: String,
    begin_refresh_at: Option<Time>,
    not_after: Option<Time>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl Request {
    fn news(self) -> CertificateNews {
        CertificateNews { pod_uid: self.spec.pod_uid, answer: self.status.answer() }
    }
}

impl Status {
    fn answer(self) -> CertificateAnswer {
        for Condition { r#type, reason, message } in self.conditions {
            match (&*r#type, self.begin_refresh_at, self.not_after) {
                ("Issued", Some(begin_refresh_at), Some(not_after)) => {
                    return CertificateAnswer::Issued { chain: self.certificate_chain, begin_refresh_at, not_after };
                }
                ("Denied", ..) => return CertificateAnswer::Denied { reason, message },
                ("Failed", ..) => return CertificateAnswer::Failed { reason, message },
                _ => {}
            }
        }
        CertificateAnswer::Pending
    }
}

/// Makes a key and a PodCertificateRequest for it.
pub(crate) async fn request(
    client: &Client,
    node: &str,
    pod: &PodRef,
    account: &str,
    place: &CertificatePlace,
    wish: CertificateWish,
) -> Result<CertificateAsked, String> {
    let account_key = Key::new(&*pod.key.namespace, account);
    let read: Named = client
        .get_as(&SERVICE_ACCOUNTS, &account_key)
        .await
        .map_err(|it| format!("while fetching service account: {it}"))?;
    let account_uid = read.metadata.uid;
    let read: Named =
        client.get_as(&NODES, &Key::cluster(node)).await.map_err(|it| format!("while fetching node: {it}"))?;
    let node_uid = read.metadata.uid;
    let key_type = wish.key_type.clone();
    // A long RSA key takes seconds.
    let made = tokio::task::spawn_blocking(move || new_key(&key_type)).await;
    let (key, stub) = made.map_err(|it| it.to_string())?.map_err(|it| format!("while generating keypair: {it}"))?;
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "PodCertificateRequest",
        "metadata": {
            "namespace": pod.key.namespace,
            "generateName": "req-",
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": pod.key.name, "uid": pod.uid }],
        },
        "spec": {
            "signerName": wish.signer,
            "podName": pod.key.name,
            "podUID": pod.uid,
            "serviceAccountName": account,
            "serviceAccountUID": account_uid,
            "nodeName": node,
            "nodeUID": node_uid,
            "maxExpirationSeconds": wish.max_seconds,
            "stubPKCS10Request": STANDARD.encode(stub),
            "unverifiedUserAnnotations": wish.annotations,
        },
    });
    let created = client.create(&POD_CERTIFICATE_REQUESTS, &pod.key.namespace, &request).await;
    let created = created.and_then(|it| decode::<Named>(&it));
    let created = created.map_err(|it| format!("while creating PodCertificateRequest: {it}"))?;
    tracing::info!(request = created.metadata.name, volume = place.volume, "asked for a certificate");
    Ok(CertificateAsked { request: created.metadata.name, key: PrivateKey(key) })
}

#[derive(Deserialize)]
struct Named {
    metadata: ObjectMeta,
}

/// A key as PEM (PKCS #8), and an empty PKCS #10 request that it has signed (DER).
fn new_key(key_type: &str) -> Result<(String, Vec<u8>), String> {
    let made = match key_type {
        "RSA3072" => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        "RSA4096" => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        "ECDSAP256" => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        "ECDSAP384" => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        "ECDSAP521" => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
        "ED25519" => KeyPair::generate_for(&PKCS_ED25519),
        _ => return Err(format!("unknown key type {key_type:?}")),
    };
    let key = made.map_err(|it| it.to_string())?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(|it| it.to_string())?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_key_is_made() {
        for key_type in ["RSA3072", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"] {
            let (key, stub) = new_key(key_type).expect(key_type);
            assert!(key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{key_type}");
            assert!(key.ends_with("-----END PRIVATE KEY-----\n"), "{key_type}");
            assert!(!stub.is_empty());
        }
        assert_eq!(new_key("DSA").map(|_| ()), Err("unknown key type \"DSA\"".to_owned()));
    }
}
