//! The server as a whole: who it is, what it opens, and what runs until it is stopped.

use std::sync::Arc;

use bytes::Bytes;
use corten_store::{Error, LocalStore, Operation, Txn};
use rustls::ServerConfig;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use uuid::Uuid;

pub use crate::core::Reserved;
use crate::{
    core::{Core, Identity},
    lease,
    leases::Leases,
    serve,
};

/// Stands in the store beside, and says by what clients tell this server from others.
const IDENTITY: &[u8] = b"identity";

pub struct Settings {
    /// What is served.
    pub store: Arc<dyn LocalStore>,
    /// Where leases lie, and who the server is.
    pub beside: Arc<dyn LocalStore>,
    /// Keys that clients may read and delete, and not put.
    pub reserved: Option<Reserved>,
    /// Where clients reach it.
    pub urls: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("reading the leases: {0}")]
pub struct OpenError(String);

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[derive(Clone)]
pub struct EtcdServer {
    pub(crate) core: Arc<Core>,
}

impl EtcdServer {
    /// # Errors
    /// The store beside cannot be read, or written the first time.
    pub async fn open(settings: Settings) -> Result<Self, OpenError> {
        let Settings { store, beside, reserved, urls } = settings;
        let identity = identity(&*beside).await?;
        let leases = Leases::open(&*store, beside).await?;
        Ok(Self {
            core: Arc::new(Core { store, leases, identity, reserved, urls, snapshots: Arc::new(Semaphore::new(1)) }),
        })
    }

    /// Answers clients with a certificate that `tls` takes, and ends leases in time, until `stopping`.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>,
        stopping: watch::Receiver<bool>,
    ) {
        let leases = lease::end_in_time(self.core.clone(), stopping.clone());
        tokio::join!(serve::serve(self.core.clone(), listener, tls, stopping), leases);
    }
}

async fn identity(beside: &dyn LocalStore) -> Result<Identity, Error> {
    let stands = beside.get(IDENTITY).await?.map(|it| it.value);
    if let Some((cluster, member)) = stands.as_deref().and_then(|it| it.split_first_chunk::<8>())
        && let Ok(member) = member.try_into()
    {
        return Ok(Identity { cluster: u64::from_be_bytes(*cluster), member: u64::from_be_bytes(member) });
    }
    let (cluster, member) = Uuid::new_v4().as_u64_pair();
    let value = Bytes::from([cluster.to_be_bytes(), member.to_be_bytes()].concat());
    let operations = vec![Operation::Put { key: Bytes::from_static(IDENTITY), value }];
    beside.commit(Txn { compares: Vec::new(), operations }).await?;
    Ok(Identity { cluster, member })
}
