//! What a node has of its cluster: clients, whom to trust, and when to end. The cluster is in this process, or on another machine.

use std::sync::Arc;

use corten_access::Identity;
use corten_client::{Client, KeptAnswers, RequestTallies, Transport};
use corten_meta::Time;
use corten_pki::Authority;
use corten_runner::{JournalBook, Stopping};
use tokio::sync::watch;

use crate::{
    in_process::{self, OwnServer},
    process::Clock,
};

/// What a node shows API servers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientCertificate {
    /// None where it shows none: it is in the process of its API server.
    pub(crate) until: Option<Time>,
    /// So often another one was due and was not got.
    pub(crate) renew_errors: u64,
}

/// Whose certificates the cluster believes.
pub(crate) trait ClusterTrust: Send + Sync {
    /// Every authority that is trusted, as PEM.
    fn ca_pem(&self) -> String;
    /// The one that signs.
    fn signer_pem(&self) -> String;
    /// Tells when another one is trusted.
    fn changes(&self) -> watch::Receiver<()>;
    /// By which the node itself is believed.
    fn client_certificate(&self) -> ClientCertificate {
        ClientCertificate::default()
    }
}

impl ClusterTrust for Authority {
    fn ca_pem(&self) -> String {
        self.ca_pem()
    }

    fn signer_pem(&self) -> String {
        self.signer_pem()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes()
    }
}

/// How the API server is reached.
pub(crate) enum ServerAccess {
    InProcess(OwnServer),
    /// Whoever asks, asks as the node: it has no other certificate.
    /// What is answered is kept for a start while nobody answers.
    Remote(Arc<dyn Transport>, KeptAnswers, RequestTallies),
}

/// What a node has of its cluster.
pub(crate) struct ClusterAccess {
    pub(crate) server: ServerAccess,
    pub(crate) trust: Arc<dyn ClusterTrust>,
    pub(crate) clock: Clock,
    pub(crate) journal: Arc<JournalBook>,
    pub(crate) stop: watch::Sender<bool>,
}

impl ClusterAccess {
    /// A client that speaks as `who`, or as the node where it has no other name.
    pub(crate) fn client(&self, who: Identity) -> Client {
        match &self.server {
            ServerAccess::InProcess(server) => in_process::client(server, who),
            ServerAccess::Remote(transport, kept, requests) => {
                Client::new(transport.clone()).with_kept(kept.clone()).with_request_tallies(requests.clone())
            }
        }
    }

    /// What the node's clients count.
    pub(crate) fn requests(&self) -> &RequestTallies {
        match &self.server {
            ServerAccess::InProcess(own) => &own.requests,
            ServerAccess::Remote(_, _, requests) => requests,
        }
    }

    /// Becomes ready when the node is to end.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.when_stopping().now()
    }

    /// As [`ClusterAccess::stopping`], for who begins more than once.
    pub(crate) fn when_stopping(&self) -> Stopping {
        Stopping::new(self.stop.subscribe())
    }

    /// What tells everything that waits for [`ClusterAccess::stopping`].
    pub(crate) fn begin_stop_later(&self) -> watch::Sender<bool> {
        self.stop.clone()
    }
}
