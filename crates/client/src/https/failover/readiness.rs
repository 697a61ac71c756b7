//! A server that answers, and can do nothing: its etcd is gone, or what listens at its address is no API server. Where it has said so twice,
//! another one is asked that is ready, as a balancer before the servers would see to.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};

use super::{FailoverTransport, PATIENCE, Server};
use crate::https::Patience;

/// So long an answer is waited for, connecting included.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// So often in a row a server is not ready before it is left: one that is busy for a moment stays.
const FAILURES_MAX: u32 = 2;

impl FailoverTransport {
    /// Asks the current server whether it is ready. Whoever keeps the connection calls it again and again.
    pub async fn check_ready(&self) {
        let Some((server, others)) = self.current_and_others() else { return };
        let is_ready = server.is_ready().await;
        if self.count(&server, is_ready) < FAILURES_MAX {
            return;
        }
        for other in others {
            if !other.is_ready().await {
                other.transport.close().await;
                continue;
            }
            {
                let mut servers = self.servers.lock();
                if Arc::ptr_eq(&servers.current, &server) {
                    self.move_to(&mut servers, &other);
                }
            }
            // Watches would stay there for ever: nothing is said on them any more, and the connection lives.
            server.transport.close().await;
            return;
        }
    }

    /// The others in the order in which they are asked; `None` where there are none.
    fn current_and_others(&self) -> Option<(Arc<Server>, Vec<Arc<Server>>)> {
        let servers = self.servers.lock();
        let (current, n) = (servers.current.clone(), servers.all.len());
        let at = servers.all.iter().position(|it| Arc::ptr_eq(it, &current))?;
        let others: Vec<_> = servers.all.iter().cycle().skip(at + 1).take(n.checked_sub(1)?).cloned().collect();
        (!others.is_empty()).then_some((current, others))
    }

    /// How often in a row the server was not ready.
    fn count(&self, server: &Arc<Server>, is_ready: bool) -> u32 {
        let mut servers = self.servers.lock();
        let is_current = Arc::ptr_eq(&servers.current, server);
        servers.n_unready = if is_ready || !is_current { 0 } else { servers.n_unready + 1 };
        servers.n_unready
    }
}

impl Server {
    async fn is_ready(&self) -> bool {
        let request = Request::get("/readyz").body(Bytes::new()).expect("it is a request");
        let patience = Patience { connect: ANSWERED_WITHIN, ..PATIENCE };
        match tokio::time::timeout(ANSWERED_WITHIN, self.transport.try_send(request, patience)).await {
            Ok(Ok(response)) => says_ready(response.status()),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

/// Who may not ask, or asks too often, learns nothing of the server.
fn says_ready(status: StatusCode) -> bool {
    !status.is_server_error() && !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND)
}
