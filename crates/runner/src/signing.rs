//! Gives approved signing requests their certificates. It only carries: the key stays with the [`Signer`], and so do the
//! rules of what is signed.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use corten_api::resources::CERTIFICATE_SIGNING_REQUESTS;
use corten_client::{Backoff, Client, Error, Informer, InformerEvent, InformerParams, PatchType};
use corten_meta::{Key, ObjectMeta};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::Clock;

const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// What is asked for.
pub struct SigningRequest<'a> {
    /// PEM.
    pub request: &'a str,
    pub signer: &'a str,
    pub usages: &'a [String],
    pub expiration_seconds: Option<i64>,
}

/// Who has the authority's key.
pub trait Signer: Send + Sync {
    /// Is this one of its names?
    fn answers_to(&self, signer: &str) -> bool;

    /// The certificate as PEM.
    ///
    /// # Errors
    /// Why it does not sign this.
    fn sign(&self, request: &SigningRequest<'_>) -> Result<String, String>;
}

/// Runs until `shutdown` is ready.
pub async fn run_signing(
    client: Client,
    signer: Arc<dyn Signer>,
    clock: Clock,
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut shutdown = pin!(shutdown);
    let mut requests = Informer::new(client.clone(), InformerParams::all(CERTIFICATE_SIGNING_REQUESTS));
    let mut request_signer = RequestSigner { client, signer, clock, again: BTreeMap::new() };
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX, 1);
    let mut retry_at = None;
    loop {
        let due = async {
            match retry_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            event = requests.next() => match event {
                InformerEvent::Applied(object, identity) => request_signer.take(identity.key, object).await,
                InformerEvent::Deleted(gone) => { request_signer.again.remove(&gone.key()); }
                InformerEvent::Synced(_) => {}
            },
            () = due => request_signer.try_again().await,
        }
        if request_signer.again.is_empty() {
            backoff.reset();
            retry_at = None;
        } else if retry_at.is_none_or(|it| it <= Instant::now()) {
            retry_at = Some(Instant::now() + backoff.delay());
        }
    }
}

struct RequestSigner {
    client: Client,
    signer: Arc<dyn Signer>,
    clock: Clock,
    /// Answers that could not be written.
    again: BTreeMap<Key, Bytes>,
}

impl RequestSigner {
    async fn take(&mut self, key: Key, object: Bytes) {
        self.again.remove(&key);
        let request: Request = match corten_client::decode(&object) {
            Ok(request) => request,
            Err(error) => return tracing::warn!(%key, %error, "a signing request cannot be read"),
        };
        let Some(status) = self.answer(&request) else { return };
        let patch = json!({ "metadata": { "resourceVersion": request.metadata.resource_version }, "status": status });
        let written = self.client.patch(&CERTIFICATE_SIGNING_REQUESTS, &key, "status", &PatchType::Merge, &patch).await;
        match written {
            Ok(_) => {}
            // It has changed or is gone, and that comes as an event of its own.
            Err(Error::Status(status)) if status.is_conflict() || status.is_not_found() => {}
            Err(error) => {
                tracing::warn!(%key, %error, "a certificate cannot be delivered");
                self.again.insert(key, object);
            }
        }
    }

    async fn try_again(&mut self) {
        for (key, object) in std::mem::take(&mut self.again) {
            self.take(key, object).await;
        }
    }

    /// What is to be written into the request's `status`; `None` where there is nothing to do.
    fn answer(&self, request: &Request) -> Option<Value> {
        let Request { spec, status, .. } = request;
        let said = |what: &str| status.conditions.iter().flatten().any(|it| it["type"] == what);
        let is_open = said("Approved") && !said("Denied") && !said("Failed") && status.certificate.is_empty();
        if !is_open || !self.signer.answers_to(&spec.signer_name) {
            return None;
        }
        let pem = String::from_utf8(STANDARD.decode(&spec.request).ok()?).ok()?;
        let asked = SigningRequest {
            request: &pem,
            signer: &spec.signer_name,
            usages: &spec.usages,
            expiration_seconds: spec.expiration_seconds,
        };
        Some(match self.signer.sign(&asked) {
            Ok(certificate) => json!({ "certificate": STANDARD.encode(certificate) }),
            Err(reason) => {
                let now = (self.clock)().to_string();
                let failed = json!({
                    "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": reason,
                    "lastUpdateTime": now, "lastTransitionTime": now,
                });
                let conditions: Vec<Value> = status.conditions.iter().flatten().cloned().chain([failed]).collect();
                json!({ "conditions": conditions })
            }
        })
    }
}

/// A CertificateSigningRequest, as far as signing goes.
#[derive(Deserialize)]
struct Request {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    request: String,
    signer_name: String,
    #[serde(default)]
    usages: Vec<String>,
    expiration_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Value>>,
    certificate: String,
}

#[cfg(test)]
mod tests;
