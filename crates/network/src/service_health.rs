//! Answers load balancers that ask, at a port of each Service's own, whether this node has endpoints of it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_proxy::Health;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};

type Answers = BTreeMap<u16, Health>;

const CONNECTIONS_MAX: usize = 64;
const CONNECTION_DEADLINE: Duration = Duration::from_secs(10);
/// How soon a port that is taken is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// What is answered, at which ports.
#[derive(Debug)]
pub struct ServiceHealth(watch::Sender<Answers>);

impl Default for ServiceHealth {
    fn default() -> Self {
        Self(watch::Sender::new(Answers::new()))
    }
}

impl ServiceHealth {
    /// From now on this is answered, and nothing else.
    pub fn set(&self, health: Vec<Health>) {
        self.0.send_replace(health.into_iter().map(|it| (it.port, it)).collect());
    }

    /// Listens at each port as long as it has an answer. Returns at `shutdown`.
    pub async fn serve(&self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut answers = self.0.subscribe();
        let mut listening: BTreeMap<u16, JoinSet<()>> = BTreeMap::new();
        loop {
            let ports: Vec<u16> = answers.borrow_and_update().keys().copied().collect();
            listening.retain(|port, _| ports.contains(port));
            for port in ports {
                listening.entry(port).or_insert_with(|| {
                    let mut tasks = JoinSet::new();
                    tasks.spawn(listen(port, self.0.subscribe()));
                    tasks
                });
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                changed = answers.changed() => if changed.is_err() { return },
            }
        }
    }
}

async fn listen(port: u16, answers: watch::Receiver<Answers>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let listener = match bind(port).await {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(port, %error, "cannot answer load balancers at the health check port of a service");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    let answers = answers.clone();
                    connections.spawn(async move {
                        let _ = tokio::time::timeout(CONNECTION_DEADLINE, serve(stream, port, answers)).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(port, %error, "cannot accept a load balancer's connection");
                    tokio::time::sleep(RETRY).await;
                    break;
                }
            }
        }
    }
}

/// At all addresses of both families, where the machine has both.
async fn bind(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
        }
        other => other,
    }
}

async fn serve(stream: TcpStream, port: u16, answers: watch::Receiver<Answers>) {
    let service = service_fn(|_| {
        let answer = answers.borrow().get(&port).map_or_else(gone, answer);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).keep_alive(false);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(port, %error, "a load balancer's connection broke");
    }
}

fn gone() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// In upstream's words.
fn answer(health: &Health) -> Response<Full<Bytes>> {
    let body = json!({
        "service": { "namespace": health.service.namespace, "name": health.service.name },
        "localEndpoints": health.local_endpoints,
        "serviceProxyHealthy": true,
    });
    let mut response = Response::new(Full::from(body.to_string()));
    let has_endpoints = health.local_endpoints > 0;
    *response.status_mut() = if has_endpoints { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    headers.insert("x-content-type-options", http::HeaderValue::from_static("nosniff"));
    headers.insert("x-load-balancing-endpoint-weight", health.local_endpoints.into());
    response
}
