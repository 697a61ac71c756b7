//! The kubelet's HTTPS server: what a node does and tells for those whom the cluster lets (mostly the API server, on behalf of
//! its users): logs, exec, attach, port-forward.
//!
//! What is served, and who may, is the table in `routes.rs`.

mod access;
mod answer;
mod certificate;
mod checkpoint;
mod configz;
mod containers;
mod logs;
mod metrics;
mod own_api;
mod routes;
mod run;
mod streams;
mod tls;
mod volumes;

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use corten_kubelet::ManagersConfig;
use corten_stream::{Addresses, Connected};
use http::{Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::{ServerConfig, server::ResolvesServerCert};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::{NodeHands, journals::Journals, measures::Measures, node_paths};
use access::Certified;
pub(crate) use answer::{Body, PlainTextError, json_body, plain, query, text};

pub use access::{Caller, Cluster, NodeAccess, OwnList};
pub use certificate::{Lasting, ServingKey};

const CONNECTIONS_MAX: usize = 1024;
/// Of one address. The API server has one for each log and each command, and is at one address with the node's own.
const CONNECTIONS_OF_ADDRESS_MAX: usize = CONNECTIONS_MAX / 2;
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(30);
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("the certificate, key or authority of the kubelet's server cannot be used: {0}")]
    Pem(String),
    #[error("set up TLS for the kubelet's server: {0}")]
    Tls(rustls::Error),
}

/// What a server is made of.
pub struct Serving {
    /// Its name.
    pub node: String,
    pub hands: NodeHands,
    pub port: u16,
    /// What CPUs and memory are handed out by: told to who asks what the node is set to.
    pub managers: ManagersConfig,
    /// The server's certificate and key, as they are at each handshake.
    pub own: Arc<dyn ResolvesServerCert>,
    /// Who signs the certificates of clients, as PEM.
    pub client_ca: String,
    pub cluster: Arc<dyn Cluster>,
    pub journals: Arc<dyn Journals>,
    pub measures: Arc<dyn Measures>,
}

/// See the module's documentation. Cheap to clone.
#[derive(Clone)]
pub struct KubeletServer {
    serving: Arc<Serving>,
    tls: Arc<ArcSwap<ServerConfig>>,
    room: Arc<Semaphore>,
    addresses: Addresses,
}

impl KubeletServer {
    /// # Errors
    /// The authority cannot be used.
    pub fn new(serving: Serving) -> Result<Self, ServerError> {
        let tls = tls::config(serving.own.clone(), &serving.client_ca)?;
        let tls = Arc::new(ArcSwap::from_pointee(tls));
        let addresses = Addresses::new(CONNECTIONS_OF_ADDRESS_MAX);
        Ok(Self { serving: Arc::new(serving), tls, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)), addresses })
    }

    /// From the next handshake on, `client_ca` (PEM) are who signs the certificates of clients.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn trust(&self, client_ca: &str) -> Result<(), ServerError> {
        self.tls.store(Arc::new(tls::config(self.serving.own.clone(), client_ca)?));
        Ok(())
    }

    pub(crate) fn hands(&self) -> &NodeHands {
        &self.serving.hands
    }

    pub(crate) fn managers(&self) -> &ManagersConfig {
        &self.serving.managers
    }

    fn cluster(&self) -> &dyn Cluster {
        &*self.serving.cluster
    }

    fn node(&self) -> &str {
        &self.serving.node
    }

    fn journals(&self) -> &dyn Journals {
        &*self.serving.journals
    }

    fn measures(&self) -> &dyn Measures {
        &*self.serving.measures
    }

    fn port(&self) -> u16 {
        self.serving.port
    }

    /// Serves until `shutdown` is ready; connections that are open then are ended.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = pin!(shutdown);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => match self.place(address.ip()) {
                    Some(place) => {
                        let server = self.clone();
                        connections.spawn(async move {
                            server.connection(stream).await;
                            drop(place);
                        });
                    }
                    None => tracing::warn!(%address, "too many connections to the kubelet, one is refused"),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the kubelet");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        connections.abort_all();
        let ended = timeout(SHUTDOWN_PATIENCE, async { while connections.join_next().await.is_some() {} });
        if ended.await.is_err() {
            tracing::warn!("connections to the kubelet do not end");
        }
    }

    fn place(&self, address: IpAddr) -> Option<(OwnedSemaphorePermit, Connected)> {
        let connected = self.addresses.admit(address)?;
        Some((self.room.clone().try_acquire_owned().ok()?, connected))
    }

    /// One connection, and the tunnel that it may become.
    async fn connection(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let tls = TlsAcceptor::from(self.tls.load_full());
        let stream = match timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "no TLS with the kubelet"),
            Err(_) => return tracing::debug!("no TLS with the kubelet in time"),
        };
        let caller = tls::caller(stream.get_ref().1.peer_certificates());
        let is_from_here = own_api::is_from_here(stream.get_ref().0);
        let tunnel = streams::Slot::default();
        let service = service_fn(|request: Request<Incoming>| {
            let (server, caller, tunnel) = (self.clone(), caller.clone(), tunnel.clone());
            async move { Ok::<_, Infallible>(server.answer((caller.as_ref(), is_from_here), request, &tunnel).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADERS);
        if let Err(error) = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await {
            tracing::debug!(%error, "a connection to the kubelet broke");
        }
        // The task of the connection owns what it has become.
        if let Some(tunnel) = tunnel.take() {
            tunnel.run().await;
        }
    }

    async fn answer(
        &self,
        certificate: (Option<&Certified>, bool),
        request: Request<Incoming>,
        tunnel: &streams::Slot,
    ) -> Response<Body> {
        self.route(certificate, request, tunnel).await.unwrap_or_else(|refused| {
            let mut response = Response::new(text(node_paths::without(self.hands().layout(), &refused.message)));
            *response.status_mut() = refused.status;
            plain(&mut response);
            // Strangers take no place for longer than they need to hear that.
            if refused.status == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(header::CONNECTION, http::HeaderValue::from_static("close"));
            }
            response
        })
    }

    async fn route(
        &self,
        (certificate, is_from_here): (Option<&Certified>, bool),
        request: Request<Incoming>,
        tunnel: &streams::Slot,
    ) -> Result<Response<Body>, PlainTextError> {
        let caller = access::authenticate(self.cluster(), certificate, &request, SystemTime::now()).await?;
        // Nobody else than root of this machine has the node's key, and nobody needs the cluster's leave for what is here.
        let is_own = is_from_here && certificate.is_some() && own_api::is_node(&self.serving.node, &caller);
        if is_own && own_api::is_of_api(request.uri().path()) {
            let call = routes::Call { server: self.clone(), request, names: Vec::new(), tunnel: tunnel.clone() };
            return own_api::answer(call).await;
        }
        // What is asked for is read once: the right to it and what is done come from the same row.
        let found = routes::find(request.method(), request.uri().path());
        access::authorize(self.cluster(), &caller, found.verb, found.access).await?;
        match found.route {
            Some(route) => {
                let call = routes::Call { server: self.clone(), request, names: found.names, tunnel: tunnel.clone() };
                (route.answer)(call).await
            }
            None if found.is_known => {
                Err(PlainTextError::new(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed"))
            }
            None => Err(PlainTextError::new(StatusCode::NOT_FOUND, "404 page not found\n")),
        }
    }
}
