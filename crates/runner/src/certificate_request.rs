//! Asks for a certificate by a CertificateSigningRequest, and waits for it.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::CERTIFICATE_SIGNING_REQUESTS;
use corten_client::{Backoff, Client, Error, decode};
use corten_meta::{Key, ObjectMeta};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

const AGAIN_FIRST: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// What is asked of which signer.
#[derive(Clone, Copy, Debug)]
pub struct CertificateWish<'a> {
    /// The signing request, as PEM.
    pub request: &'a str,
    pub signer: &'a str,
    pub usages: &'a [&'a str],
}

/// Makes the object; its key.
///
/// # Errors
/// The server refuses it, or does not answer.
pub async fn request_certificate(client: &Client, wish: CertificateWish<'_>) -> Result<Key, Error> {
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": { "generateName": "csr-" },
        "spec": { "request": STANDARD.encode(wish.request), "signerName": wish.signer, "usages": wish.usages },
    });
    let made = client.create(&CERTIFICATE_SIGNING_REQUESTS, "", &request).await?;
    let made: Request = decode(&made)?;
    Ok(made.metadata.key())
}

/// The certificate, as PEM, once there is one.
///
/// # Errors
/// The request was denied or has failed, or the server does not answer.
pub async fn signed_certificate(client: &Client, key: &Key) -> Result<String, String> {
    let mut backoff = Backoff::new(AGAIN_FIRST, AGAIN_MAX, 1);
    loop {
        let request: Request = client.get_as(&CERTIFICATE_SIGNING_REQUESTS, key).await.map_err(|it| it.to_string())?;
        let Status { certificate, conditions } = request.status;
        let refused = conditions.iter().flatten().find(|it| it["type"] == "Denied" || it["type"] == "Failed");
        if let Some(refused) = refused {
            return Err(format!("signing request {}: {}: {}", key.name, refused["type"], refused["message"]));
        }
        if !certificate.is_empty() {
            let pem = STANDARD.decode(certificate).map_err(|it| it.to_string())?;
            return String::from_utf8(pem).map_err(|it| it.to_string());
        }
        sleep(backoff.delay()).await;
    }
}

#[derive(Deserialize)]
struct Request {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    certificate: String,
    conditions: Option<Vec<Value>>,
}
