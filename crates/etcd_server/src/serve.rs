//! Connections: TLS with a certificate of the client, then HTTP/2.

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{core::Core, handshakes::Handshakes, method};

/// Of clients that have shown a certificate.
const CONNECTIONS_MAX: usize = 4_096;
/// kube-apiserver has one for each watch.
const STREAMS_MAX: u32 = 16_384;
const WINDOW_BYTES: u32 = 4 << 20;
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// A client that is gone without a word.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(30);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(10);
/// What is under way has so long to end.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// TLS as it is at each handshake: certificates are renewed.
pub(crate) type Tls = Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>;

/// Until `stopping`.
pub(crate) async fn serve(core: Arc<Core>, listener: TcpListener, tls: Tls, stopping: watch::Receiver<bool>) {
    let (mut connections, mut ended) = (JoinSet::new(), stopping.clone());
    let mut handshakes = Handshakes::new();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut ended) => break,
            Some(_) = connections.join_next() => {}
            stream = handshakes.next() => if connections.len() < CONNECTIONS_MAX {
                connections.spawn(converse(core.clone(), stream, stopping.clone()));
            } else {
                tracing::warn!(CONNECTIONS_MAX, "a client of etcd's API is refused: there are as many as there may be");
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => handshakes.begin(from.ip(), secured(stream, tls())),
                Err(error) => {
                    tracing::debug!(%error, "a client of etcd's API cannot be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop((listener, handshakes));
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_WAIT, all).await.is_err() {
        connections.shutdown().await;
    }
}

/// Ready when it is to end, or when nobody can say so any more.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|it| *it).await;
}

async fn secured(stream: TcpStream, tls: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a client of etcd's API is answered in larger pieces");
    }
    match timeout(HANDSHAKE_WAIT, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::info!(%error, "a client of etcd's API is refused"),
        Err(_) => tracing::debug!("a client of etcd's API does not end its handshake"),
    }
    None
}

pub(crate) async fn converse(
    core: Arc<Core>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut stopping: watch::Receiver<bool>,
) {
    let told = stopping.clone();
    let answer = service_fn(move |request| {
        let (core, stopping) = (core.clone(), told.clone());
        let answering = method::respond(core, stopping, request);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WAIT);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of a client of etcd's API broke");
    }
}
