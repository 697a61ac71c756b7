//! Connections that have left HTTP, until they end by themselves or the server stops.

use std::{io, time::Duration};

use bytes::Bytes;
use corten_access::Recheck;
use corten_cacher::body::BoxError;
use corten_meta::Status;
use corten_stream::{Accepted, Copied, Limits, Messages};
use http_body::Body;
use hyper::upgrade::Upgraded;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet};

/// True from the moment the server begins to stop.
type Stopping = watch::Receiver<bool>;

const STOP_DEADLINE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Tunnels {
    limits: Limits,
    tasks: Mutex<JoinSet<()>>,
}

impl Tunnels {
    /// Until both sides have ended, or nobody may have the tunnel any more.
    pub fn keep(&self, stopping: Stopping, recheck: Recheck, client: Accepted, other: Upgraded) {
        self.own(stopping, recheck.refused(), client.tunnel(other, self.limits));
    }

    /// As [`Tunnels::keep`], as soon as the other side is there; the client hears why it is not.
    pub fn keep_when(
        &self,
        stopping: Stopping,
        recheck: Recheck,
        client: Accepted,
        dialing: impl Future<Output = Result<Upgraded, Status>> + Send + 'static,
    ) {
        let limits = self.limits;
        self.own(stopping, recheck.refused(), async move {
            // Boxed: what dials is several times as large as what copies, and soon done.
            match Box::pin(dialing).await {
                Ok(other) => client.tunnel(other, limits).await,
                Err(status) => {
                    let status = serde_json::to_vec(&status).map_err(io::Error::other)?;
                    client.fail(&status, limits).await.map(|()| Copied::default())
                }
            }
        });
    }

    /// Sends an answer as messages. Such bodies end by themselves where they may not be read any more.
    pub fn send<B>(&self, stopping: Stopping, client: Messages, body: B)
    where
        B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        self.own(stopping, std::future::pending(), client.send(body, self.limits));
    }

    fn own(
        &self,
        mut stopping: Stopping,
        refused: impl Future<Output = Status> + Send + 'static,
        work: impl Future<Output = io::Result<Copied>> + Send + 'static,
    ) {
        let tunnel = async move {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|it| *it) => {}
                status = refused => tracing::info!(%status.message, "a tunnel is cut: its right has ended"),
                ended = work => match ended {
                    Ok(copied) => tracing::debug!(?copied, "a tunnel has ended"),
                    Err(error) => tracing::debug!(%error, "a tunnel broke"),
                }
            }
        };
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(tunnel);
    }

    /// Waits for all of them, which end by themselves once the server stops.
    pub async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_DEADLINE, all).await.is_err() {
            tracing::warn!("tunnels did not end in time");
        }
    }
}
