//! etcd's API over a store of the data folder: over that of a control plane in this process, or over one that is there for others.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result};
use corten_etcd_server::{EtcdServer, Reserved, Settings};
use corten_pki::{EtcdAuthority, RENEWAL_INTERVAL};
use corten_store::{
    Store,
    embedded::{Embedded, Options},
    registry::ROOT,
};
use tokio::{net::TcpListener, sync::watch, time::sleep};

use crate::process;

/// Services, and which of them have which addresses and ports: one is deleted with the other, or an address is given twice or never
/// again.
const SERVICES: [&str; 2] = ["/registry/services/specs/", "/registry/ranges/"];

pub(crate) struct EtcdApi {
    server: EtcdServer,
    /// The store of leases.
    leases: Arc<Embedded>,
    listener: TcpListener,
    authority: Arc<EtcdAuthority>,
}

impl EtcdApi {
    /// Over the store that an API server of this process keeps: what is put past it would be in another form, past RBAC, admission
    /// and quotas, and would take addresses that it gives to others.
    pub(crate) async fn beside_api_server(data: &Path, address: SocketAddr, store: Arc<Embedded>) -> Result<Self> {
        let reason = "objects are put through the API server alone; `corten etcd` serves a store to other API servers";
        let lasting_reason =
            "services, and the addresses and ports that they have, are deleted through the API server alone";
        let reserved = Reserved {
            prefix: ROOT.into(),
            reason: reason.into(),
            lasting: SERVICES.map(Into::into).into(),
            lasting_reason: lasting_reason.into(),
        };
        Self::open(data, address, store, &data.join("leases"), Some(reserved)).await
    }

    /// Over a store that nobody else of this process uses.
    pub(crate) async fn alone(data: &Path, address: SocketAddr, store: Arc<Embedded>) -> Result<Self> {
        Self::open(data, address, store, &data.join("etcd/leases"), None).await
    }

    async fn open(
        data: &Path,
        address: SocketAddr,
        store: Arc<Embedded>,
        leases: &Path,
        reserved: Option<Reserved>,
    ) -> Result<Self> {
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("listening on {address} for etcd's API"))?;
        let address = listener.local_addr().context("asking for the listener's address")?;
        let authority = EtcdAuthority::load_or_create(&data.join("pki"), &names(address.ip()))
            .context("preparing the certificates of etcd's API")?;
        let leases = open_store(leases).await?;
        let url = |ip: IpAddr| format!("https://{}", SocketAddr::new(ip, address.port()));
        let urls = reached_at(address.ip()).into_iter().map(url).collect();
        let settings = Settings { store, beside: leases.clone(), reserved, urls };
        let server = EtcdServer::open(settings).await?;
        tracing::info!(%address, "etcd's API is up");
        Ok(Self { server, leases, listener, authority: Arc::new(authority) })
    }

    /// Until `stopping`.
    pub(crate) async fn serve(self, stopping: watch::Receiver<bool>) {
        let Self { server, leases, listener, authority } = self;
        let shown = authority.clone();
        let renewing = async move {
            loop {
                sleep(RENEWAL_INTERVAL).await;
                if let Err(error) = authority.renew() {
                    tracing::error!(%error, "the certificates of etcd's API cannot be renewed");
                }
            }
        };
        tokio::select! {
            () = server.serve(listener, Arc::new(move || shown.server_config()), stopping) => {}
            () = renewing => {}
        }
        leases.close().await;
    }
}

pub(crate) async fn open_store(dir: &Path) -> Result<Arc<Embedded>> {
    let dir = dir.to_owned();
    let open = move || Embedded::open(&dir, Options::default());
    let store = tokio::task::spawn_blocking(open).await.context("opening the store")?.context("opening the store")?;
    Ok(Arc::new(store))
}

/// What clients may call the server by.
fn names(ip: IpAddr) -> Vec<String> {
    let local = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let mut names = vec!["localhost".to_owned(), process::host_name()];
    for address in local.into_iter().chain(reached_at(ip)) {
        let address = address.to_string();
        if !names.contains(&address) {
            names.push(address);
        }
    }
    names
}

/// What the other members may call this machine's by: a member asks them under any of its machine's addresses, and etcd looks whether
/// that stands in its certificate.
pub(crate) fn names_of_member(ip: IpAddr) -> Vec<String> {
    let mut names = names(ip);
    for address in corten_network::addresses().iter().map(ToString::to_string) {
        if !names.contains(&address) {
            names.push(address);
        }
    }
    names
}

/// The addresses of this machine, where it listens to all of them.
fn reached_at(ip: IpAddr) -> Vec<IpAddr> {
    if !ip.is_unspecified() {
        return vec![ip];
    }
    let own: Vec<IpAddr> = corten_network::addresses();
    if own.is_empty() { vec![IpAddr::V4(Ipv4Addr::LOCALHOST)] } else { own }
}
