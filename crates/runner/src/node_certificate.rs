//! Keeps what a kubelet serves with: asks for it by a CertificateSigningRequest under the names of its Node, and again
//! before it ends or when the names change.
//!
//! Until the first one is signed the kubelet has none to show. Keys are made and kept by the [`ServingKeys`].

use std::{pin::pin, sync::Arc, time::Duration};

use corten_api::resources::NODES;
use corten_client::{Backoff, BoxFuture, Client};
use corten_meta::{Key, Time};
use corten_reconcile::{LoopMetric, MetricKind};
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use crate::{
    Clock, JournalBook,
    certificate_request::{CertificateWish, request_certificate, signed_certificate},
};

const SIGNER: &str = "kubernetes.io/kubelet-serving";
/// How often to look whether names have changed, or the end is near.
const PERIOD: Duration = Duration::from_secs(60);
const AGAIN_FIRST: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(30);
/// A Node that begins has addresses soon, and until it has a certificate nobody can ask its kubelet.
const SOON_MAX: Duration = Duration::from_millis(500);
/// client-go's `certificateWaitTimeout`.
const SIGNED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// After so much of its life a certificate is replaced, in parts of ten. Upstream draws a part between seven and nine.
const TENTHS: u32 = 8;

static RENEW_ERRORS: LoopMetric = LoopMetric {
    name: "kubelet_server_expiration_renew_errors",
    help: "[ALPHA] Counter of certificate renewal errors.",
    labels: &[],
    kind: MetricKind::Counter,
};

/// What a certificate is good for, and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingCertificate {
    pub from: Time,
    pub until: Time,
    pub names: ServingNames,
}

/// Sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingNames {
    pub dns: Vec<String>,
    pub addresses: Vec<String>,
}

/// Makes keys, and keeps the one that is in use with its certificate.
pub trait ServingKeys: Send + Sync {
    /// What is shown now.
    fn current(&self) -> Option<ServingCertificate>;

    /// A signing request for a new key, as PEM.
    ///
    /// # Errors
    /// A name that no certificate can hold, or no randomness.
    fn request(&self, names: &ServingNames) -> Result<String, String>;

    /// Shows the certificate (PEM) that the last request was answered with, from now on.
    ///
    /// # Errors
    /// It does not belong to the request's key, or cannot be kept.
    fn install(&self, certificate: &str) -> Result<(), String>;

    /// Returns when another certificate may be wanted at once: the authority that signs is another.
    fn outdated(&self) -> BoxFuture<'_, ()>;
}

/// Runs until `shutdown` is ready. `client` speaks as the node.
pub async fn run_node_certificate(
    client: Client,
    node: String,
    keys: Arc<dyn ServingKeys>,
    (clock, journal): (Clock, Arc<JournalBook>),
    shutdown: impl Future<Output = ()> + Send,
) {
    journal.of_node().begin(&RENEW_ERRORS);
    let requester = ServingCertificateRequester { client, node, keys, clock };
    let work = async {
        let mut backoff = Backoff::new(AGAIN_FIRST, AGAIN_MAX, 1);
        let mut soon = Backoff::new(AGAIN_FIRST, SOON_MAX, 2);
        loop {
            let step = requester.step().await;
            if matches!(step, Err(NoCertificate::NotRenewed(_))) {
                journal.of_node().observe::<&str>(&RENEW_ERRORS, &[], 1.0);
            }
            match step {
                Ok(()) => {
                    backoff.reset();
                    soon.reset();
                    // The end of the wait is the time to look again, not a failure.
                    let _ = timeout(PERIOD, requester.keys.outdated()).await;
                }
                Err(NoCertificate::NodeHasNoAddresses) => sleep(soon.delay()).await,
                Err(NoCertificate::Unknown(reason) | NoCertificate::NotRenewed(reason)) => {
                    tracing::debug!(reason, "no certificate to serve the kubelet's API with yet");
                    sleep(backoff.delay()).await;
                }
            }
        }
    };
    let shutdown = pin!(shutdown);
    tokio::select! {
        biased;
        () = shutdown => {}
        () = work => {}
    }
}

struct ServingCertificateRequester {
    client: Client,
    node: String,
    keys: Arc<dyn ServingKeys>,
    clock: Clock,
}

/// Why there is none yet.
#[derive(Debug)]
enum NoCertificate {
    /// It has not said yet that it is there, or where.
    NodeHasNoAddresses,
    /// Whether another one is due.
    Unknown(String),
    NotRenewed(String),
}

impl ServingCertificateRequester {
    async fn step(&self) -> Result<(), NoCertificate> {
        let node: Node = match self.client.get_as(&NODES, &Key::cluster(&*self.node)).await {
            Err(error) if error.is_not_found() => return Err(NoCertificate::NodeHasNoAddresses),
            node => node.map_err(|it| NoCertificate::Unknown(it.to_string()))?,
        };
        let names = node.names();
        if names == ServingNames::default() {
            return Err(NoCertificate::NodeHasNoAddresses);
        }
        if self.keys.current().is_some_and(|it| it.names == names && !is_due(&it, (self.clock)())) {
            return Ok(());
        }
        self.renew(&names).await.map_err(NoCertificate::NotRenewed)
    }

    async fn renew(&self, names: &ServingNames) -> Result<(), String> {
        let key = self.ask(names).await?;
        let signed = timeout(SIGNED_WITHIN, signed_certificate(&self.client, &key)).await;
        let late = |_| format!("signing request {} was not answered in time", key.name);
        let certificate = signed.map_err(late)??;
        self.keys.install(&certificate)?;
        tracing::info!(request = key.name, "the kubelet serves with a new certificate");
        Ok(())
    }

    async fn ask(&self, names: &ServingNames) -> Result<Key, String> {
        let request = self.keys.request(names)?;
        // Signers of Kubernetes before v1.27 refuse a request without the second.
        let usages = &["digital signature", "key encipherment", "server auth"];
        let wish = CertificateWish { request: &request, signer: SIGNER, usages };
        request_certificate(&self.client, wish).await.map_err(|it| it.to_string())
    }
}

fn is_due(certificate: &ServingCertificate, now: Time) -> bool {
    let life = certificate.until.since(certificate.from);
    // One that was made while the clock was ahead serves nobody yet.
    now < certificate.from || now >= certificate.from.after(life / 10 * TENTHS)
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    r#type: String,
    address: String,
}

impl Node {
    fn names(&self) -> ServingNames {
        let of = |kinds: &[&str]| {
            let mut found: Vec<String> = self
                .status
                .addresses
                .iter()
                .filter(|it| kinds.contains(&&*it.r#type))
                .map(|it| it.address.clone())
                .collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        ServingNames {
            dns: of(&["Hostname", "InternalDNS", "ExternalDNS"]),
            addresses: of(&["InternalIP", "ExternalIP"]),
        }
    }
}

#[cfg(test)]
mod tests;
