//! What a node has of its cluster: clients, whom to trust, and when to end. The cluster is in this process, or on another machine.

use std::sync::Arc;

use corten_access::Identity;
use corten_apiserver::Server;
use corten_client::{Client, KeptAnswers, Transport};
use corten_pki::Authority;
use corten_runner::JournalBook;
use tokio::sync::watch;

use crate::{in_process, process::Clock};

/// Whose certificates the cluster believes.
pub(crate) trait ClusterTrust: Send + Sync {
    /// Every authority that is trusted, as PEM.
    fn ca_pem(&self) -> String;
    /// The one that signs.
    fn signer_pem(&self) -> String;
    /// Tells when another one is trusted.
    fn changes(&self) -> watch::Receiver<()>;
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

/// Tells when the control plane, or the node, begins to stop.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    pub(crate) fn new(told: watch::Receiver<bool>) -> Self {
        Self(told)
    }

    pub(crate) fn now(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.0.clone();
        async move {
            // An error says that the control plane is gone: that is a stop, too.
            let _ = stopping.wait_for(|it| *it).await;
        }
    }
}

/// How the API server is reached.
pub(crate) enum ServerAccess {
    InProcess(Server),
    /// Whoever asks, asks as the node: it has no other certificate.
    /// What is answered is kept for a start while nobody answers.
    Remote(Arc<dyn Transport>, KeptAnswers),
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
            ServerAccess::Remote(transport, kept) => Client::new(transport.clone()).with_kept(kept.clone()),
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
