//! One server behind an APIService, and what was heard of it last.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use corten_cacher::{body::Body, watch_cache::Caches};
use corten_openapi::{AggregatedVersion, Swagger};
use corten_webhook::{Client, Clients, NoEndpoint, Proof};
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    condition::Condition,
    counted::Counted,
    kept::{Answer, Connection, Failed},
    server::{CONNECTIONS_MAX, Server},
    spec::Spec,
};

/// From the first packet to the end of the TLS handshake.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Says that a request comes from an API server that has passed it on: one that leads back here must not go round.
pub(crate) const PASSED_ON: http::HeaderName = http::HeaderName::from_static("x-corten-passed-on");

pub(crate) struct Backend {
    pub(crate) spec: Spec,
    /// What it is shown to prove who asks, as PEM.
    pub(crate) certificate: String,
    client: Result<Arc<Client>, String>,
    /// Which others may lead to, too.
    pub(crate) server: Server,
    /// Which endpoint is asked next.
    turn: AtomicUsize,
    condition: Mutex<Option<Condition>>,
    pub(crate) heard: ArcSwap<AggregatedVersion>,
    pub(crate) known: Mutex<DocumentTags>,
    /// The APIService was written: its condition may be gone.
    pub(crate) written: Notify,
    /// A request did not come there: whether it answers is to be looked at now.
    pub(crate) unreached: Notify,
}

/// By what it is told that a document has not changed.
#[derive(Clone, Default)]
pub(crate) struct DocumentTags {
    /// The address of the document of OpenAPI v3, with its hash.
    pub(crate) v3_url: String,
    pub(crate) v2_tag: String,
    /// What the document of v3 was made of, where the server has none.
    pub(crate) made_of: Option<Arc<Swagger>>,
}

impl Backend {
    pub(crate) fn new(spec: Spec, clients: &Clients, credential: &corten_pki::Credential, server: Server) -> Self {
        let proof = Proof::Certificate {
            chain: credential.certificate.clone().into_bytes(),
            key: credential.key.clone().into_bytes(),
        };
        let client = spec.config.clone().and_then(|mut config| {
            config.proof = Some(proof);
            clients.client(&config).map_err(|it| it.0)
        });
        Self {
            certificate: credential.certificate.clone(),
            client,
            server,
            turn: AtomicUsize::new(0),
            condition: Mutex::new(None),
            heard: ArcSwap::from_pointee(spec.unheard()),
            known: Mutex::default(),
            written: Notify::new(),
            unreached: Notify::new(),
            spec,
        }
    }

    /// Takes over what was found out before, if only the certificate or a priority has changed.
    pub(crate) fn inherit(&self, before: &Self) {
        if before.spec.config != self.spec.config {
            return;
        }
        *self.condition.lock() = before.condition.lock().clone();
        let heard = AggregatedVersion {
            group_priority: self.spec.group_priority,
            version_priority: self.spec.version_priority,
            ..(**before.heard.load()).clone()
        };
        self.heard.store(Arc::new(heard));
        *self.known.lock() = before.known.lock().clone();
    }

    pub(crate) fn endpoints(&self, caches: &Caches) -> Result<Vec<SocketAddr>, NoEndpoint> {
        corten_webhook::endpoints(caches, &self.spec.namespace, &self.spec.service, self.spec.port)
    }

    /// Is there nobody who could be asked?
    pub(crate) fn leads_nowhere(&self, caches: &Caches) -> bool {
        self.endpoints(caches).is_err_and(|it| !matches!(it, NoEndpoint::ExternalName(_)))
    }

    pub(crate) fn condition(&self) -> Option<Condition> {
        self.condition.lock().clone()
    }

    pub(crate) fn is_available(&self) -> bool {
        self.condition.lock().as_ref().is_some_and(|it| it.is_available)
    }

    /// What was found before.
    pub(crate) fn found(&self, condition: Condition) -> Option<Condition> {
        let is_current = condition.is_available;
        if !is_current {
            // Whoever is there again is met anew.
            self.server.kept.end_all();
        }
        let before = self.condition.lock().replace(condition);
        let heard = self.heard.load_full();
        if heard.is_current && !is_current {
            self.heard.store(Arc::new(AggregatedVersion { is_current, ..(*heard).clone() }));
        }
        before
    }

    /// The name it is asked under.
    pub(crate) fn authority(&self) -> String {
        format!("{}.{}.svc", self.spec.service, self.spec.namespace)
    }

    /// # Errors
    /// None can be made of what the APIService says.
    pub(crate) fn client(&self) -> Result<&Client, String> {
        self.client.as_deref().map_err(String::clone)
    }

    /// The answer of the endpoint whose turn it is, over a connection that is there already where one is idle.
    pub(crate) async fn ask(&self, caches: &Caches, mut request: Request<Body>) -> Result<Response<Answer>, String> {
        let kept = &self.server.kept;
        let client = self.client.as_ref().map(Arc::downgrade).unwrap_or_default();
        // What an external name leads to now is not known without asking.
        let endpoints = self.endpoints(caches).ok();
        kept.tidy(|it| endpoints.as_ref().is_none_or(|them| them.contains(&it.to())));
        let chosen = endpoints.and_then(|it| self.chosen(&it));
        if let Some(connection) = kept.take(|it| it.is_of(&client) && chosen.is_none_or(|to| it.to() == to)) {
            match connection.ask(request, kept).await {
                Ok(answer) => return Ok(answer),
                Err(Failed { unsent: Some(unsent), .. }) => request = unsent,
                Err(Failed { reason, unsent: None }) => return Err(reason),
            }
        }
        let stream = self.connected(chosen).await?;
        let (to, socket) = (stream.to(), stream.socket());
        let fresh = Connection::over(stream, to, socket, client).await?;
        fresh.ask(request, kept).await.map_err(|it| it.reason)
    }

    /// Each endpoint in its turn.
    fn chosen(&self, endpoints: &[SocketAddr]) -> Option<SocketAddr> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        endpoints.get(turn % endpoints.len().max(1)).copied()
    }

    /// Ends connections that have been idle for long.
    pub(crate) fn tidy(&self) {
        self.server.kept.tidy(|_| true);
    }

    /// A connection to `first`, or another endpoint where that takes none, over which it was proved who is there.
    pub(crate) async fn connected(&self, first: Option<SocketAddr>) -> Result<Counted, String> {
        let client = self.client()?;
        let place = self.server.place().or_else(|| {
            // Idle ones, which other threads opened, have no right to a place that somebody needs.
            self.server.kept.end_all();
            self.server.place()
        });
        let place = place.ok_or_else(|| format!("there are {CONNECTIONS_MAX} connections to it already"))?;
        let connecting = tokio::time::timeout(CONNECT_DEADLINE, client.connect(first)).await;
        let connected = connecting.map_err(|_| "i/o timeout".to_owned())?;
        let stream = connected.map_err(|it| match it {
            corten_webhook::Error::Unanswered { reason, .. } => reason.to_string(),
            other => other.to_string(),
        })?;
        Ok(Counted::new(stream, place))
    }
}
