//! The way to a cluster with several API servers: to the one that was asked last, and to the next where that cannot be connected to.
//!
//! Only a request that no server has seen is sent again. What became of one that was under way is for its sender to find out.

mod readiness;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::{Failed, HttpsTransport, Patience, TargetError};
use crate::{Body, BoxFuture, Transport, TransportError, kubeconfig::RestConfig};

/// What the certificate of an API server must name, at whatever address it is. Each API server's does; no kubelet can have one that
/// does, though its certificate, of the same authority, names an address at which an API server may have been before.
pub const API_SERVER_NAME: &str = "kubernetes.default.svc";

/// A connection that is silent is given up after this, however many servers are known when it is made.
const PATIENCE: Patience =
    Patience { connect: Duration::from_secs(10), silent: Duration::from_secs(5), unanswered: Duration::from_secs(5) };

/// How long each server is waited for, round after round, until it is connected to. A machine that is gone says nothing; one behind
/// a slow or lossy network is reached by a later round.
const CONNECT: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(3), PATIENCE.connect];

/// The way to one of several API servers.
pub trait ServerTransport: Send + Sync {
    /// Sends it, and says of one without an answer whether the server may have seen it.
    fn try_send(&self, request: Request<Bytes>, patience: Patience) -> BoxFuture<'_, Result<Response<Body>, Failed>>;

    /// Ends the connection and everything that is under way on it.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The host and port of the server.
    fn host(&self) -> Option<Arc<str>>;
}

/// Prepares the way to a server, without connecting yet.
pub type ReachServer = Arc<dyn Fn(&RestConfig) -> Result<Arc<dyn ServerTransport>, TargetError> + Send + Sync>;

/// Speaks to one of several API servers of a cluster.
pub struct FailoverTransport {
    reach: ReachServer,
    target: RestConfig,
    servers: Mutex<Servers>,
    moves: watch::Sender<()>,
}

struct Servers {
    /// In the order in which they are asked, in a circle.
    all: Vec<Arc<Server>>,
    current: Arc<Server>,
    /// How often in a row it was not ready.
    n_unready: u32,
}

struct Server {
    /// Its address, and which name its certificate must have.
    target: RestConfig,
    transport: Arc<dyn ServerTransport>,
}

impl fmt::Debug for FailoverTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailoverTransport").field("server", &self.server()).finish_non_exhaustive()
    }
}

impl FailoverTransport {
    /// The server of `target` and all of `servers` are known by [`API_SERVER_NAME`], or by the name that `target` says. `first` is asked
    /// first.
    ///
    /// # Errors
    /// As of [`HttpsTransport::new`], about any of them.
    pub fn new(target: RestConfig, servers: &[String], first: &str) -> Result<Self, TargetError> {
        Self::by(Arc::new(|target| Ok(Arc::new(HttpsTransport::new(target)?))), target, servers, first)
    }

    /// As [`FailoverTransport::new`], where servers are reached another way.
    ///
    /// # Errors
    /// As of `reach`, about any of them.
    pub fn by(reach: ReachServer, target: RestConfig, servers: &[String], first: &str) -> Result<Self, TargetError> {
        let current = Arc::new(Server::new(&reach, &target, first)?);
        let alone = Servers { all: vec![current.clone()], current, n_unready: 0 };
        let servers = Mutex::new(alone.with(&reach, &target, servers)?);
        Ok(Self { reach, target, servers, moves: watch::Sender::new(()) })
    }

    /// The cluster has these servers from now on. The one that is asked stays until it is gone, with all that is under way there.
    ///
    /// # Errors
    /// As of [`FailoverTransport::new`].
    pub fn set_servers(&self, servers: &[String]) -> Result<(), TargetError> {
        let mut current = self.servers.lock();
        *current = current.with(&self.reach, &self.target, servers)?;
        Ok(())
    }

    /// The one that is asked now.
    pub fn server(&self) -> String {
        self.servers.lock().current.target.server.clone()
    }

    /// How the one that is asked now is spoken to.
    pub fn current_target(&self) -> RestConfig {
        self.servers.lock().current.target.clone()
    }

    /// Tells when another one is asked.
    pub fn moves(&self) -> watch::Receiver<()> {
        self.moves.subscribe()
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let (n, mut server) = {
            let servers = self.servers.lock();
            (servers.all.len(), servers.current.clone())
        };
        let mut refusals: Vec<String> = Vec::new();
        let rounds = if n > 1 { &CONNECT[..] } else { &[PATIENCE.connect] };
        for &connect in rounds {
            let begun = Instant::now();
            refusals.clear();
            for _ in 0..n {
                match server.transport.try_send(request.clone(), Patience { connect, ..PATIENCE }).await {
                    Ok(response) => return Ok(response),
                    Err(failed) if !failed.is_unsent => return Err(failed.error),
                    Err(failed) => refusals.push(failed.error.0),
                }
                server = self.leave(&server);
            }
            // None of them was slow: more time changes nothing.
            if begun.elapsed() < connect {
                break;
            }
        }
        Err(TransportError(refusals.join("; ")))
    }

    /// The one to ask in the place of `left`, for everybody: where somebody else was quicker, the one they have come to.
    fn leave(&self, left: &Arc<Server>) -> Arc<Server> {
        let mut servers = self.servers.lock();
        if !Arc::ptr_eq(&servers.current, left) {
            return servers.current.clone();
        }
        let next = servers.after(left);
        self.move_to(&mut servers, &next);
        next
    }

    fn move_to(&self, servers: &mut Servers, next: &Arc<Server>) {
        if !Arc::ptr_eq(&servers.current, next) {
            tracing::info!(from = servers.current.url(), to = next.url(), "another API server is asked");
            servers.current = next.clone();
            servers.n_unready = 0;
            self.moves.send_replace(());
        }
    }
}

impl Servers {
    /// Those of `urls` in their order, and behind them the server of `target`, whose address may be that of a balancer.
    fn with(&self, reach: &ReachServer, target: &RestConfig, urls: &[String]) -> Result<Self, TargetError> {
        let mut all: Vec<Arc<Server>> = Vec::new();
        for url in urls.iter().chain([&target.server]) {
            if all.iter().any(|it| it.url() == url) {
                continue;
            }
            let server = match self.all.iter().find(|it| it.url() == url) {
                Some(server) => server.clone(),
                None => Arc::new(Server::new(reach, target, url)?),
            };
            all.push(server);
        }
        if !all.iter().any(|it| it.url() == self.current.url()) {
            all.insert(0, self.current.clone());
        }
        Ok(Self { all, current: self.current.clone(), n_unready: self.n_unready })
    }

    fn after(&self, server: &Arc<Server>) -> Arc<Server> {
        let at = self.all.iter().position(|it| Arc::ptr_eq(it, server)).map_or(0, |it| it + 1);
        self.all[at % self.all.len()].clone()
    }
}

impl Server {
    fn new(reach: &ReachServer, target: &RestConfig, url: &str) -> Result<Self, TargetError> {
        let mut target = target.clone();
        url.clone_into(&mut target.server);
        target.server_name.get_or_insert_with(|| API_SERVER_NAME.to_owned());
        Ok(Self { transport: reach(&target)?, target })
    }

    fn url(&self) -> &str {
        &self.target.server
    }
}

impl Transport for FailoverTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(self.exchange(request))
    }

    fn host(&self) -> Option<Arc<str>> {
        self.servers.lock().current.transport.host()
    }
}
