//! The servers the machine itself asks: those of its resolv.conf, without this very server.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::ListServers;
use crate::pod_files::resolv_conf;

const PORT: u16 = 53;
/// A server that did not answer is asked after the others for so long.
const SHUNNED: Duration = Duration::from_secs(10);

/// In the order in which they are asked.
pub(super) struct Upstreams {
    servers: ListServers,
    own: Vec<SocketAddr>,
    own_names: Vec<IpAddr>,
    list: Mutex<Vec<Upstream>>,
}

#[derive(Clone, Copy)]
struct Upstream {
    address: SocketAddr,
    failed: Option<Instant>,
}

impl Upstreams {
    pub(super) fn new(own: Vec<SocketAddr>, own_names: Vec<IpAddr>, servers: ListServers) -> Self {
        Self { servers, own, own_names, list: Mutex::default() }
    }

    /// Takes the machine's present servers; did they change?
    pub(super) fn reread(&self) -> bool {
        let mut new: Vec<SocketAddr> = Vec::new();
        for address in (self.servers)() {
            let is_own = self.own.contains(&address) || self.own_names.contains(&address.ip());
            if !is_own && !new.contains(&address) {
                new.push(address);
            }
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.iter().map(|it| it.address).eq(new.iter().copied()) {
            return false;
        }
        *list = new.into_iter().map(|address| Upstream { address, failed: None }).collect();
        true
    }

    /// All, those first that answer.
    pub(super) fn in_order(&self) -> Vec<SocketAddr> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        list.sort_by_key(|it| it.failed.is_some_and(|it| it.elapsed() < SHUNNED));
        list.into_iter().map(|it| it.address).collect()
    }

    pub(super) fn answered(&self, address: SocketAddr, well: bool) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = list.iter_mut().find(|it| it.address == address) {
            it.failed = if well { None } else { Some(Instant::now()) };
        }
    }
}

/// Those of the machine's resolv.conf.
pub fn servers_of_machine() -> Vec<SocketAddr> {
    resolv_conf().servers.iter().filter_map(|it| address(it)).collect()
}

/// An address of resolv.conf. One with a zone (`fe80::1%eth0`) cannot be asked.
fn address(text: &str) -> Option<SocketAddr> {
    let address = text.parse::<IpAddr>().ok();
    if address.is_none() {
        tracing::debug!(server = text, "a name server of this machine is left out");
    }
    address.map(|it| SocketAddr::new(it, PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_lists_itself_and_asks_the_silent_last() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let names = vec![IpAddr::from([10, 96, 0, 10])];
        let listed = ["10.96.0.10:53", "192.0.2.7:53", "192.0.2.1:53", "192.0.2.1:53", "192.0.2.2:53"];
        let servers = Box::new(move || listed.iter().map(|it| at(it)).collect());
        let upstreams = Upstreams::new(vec![at("192.0.2.7:53")], names, servers);
        assert!(upstreams.reread());
        assert_eq!(upstreams.in_order(), [at("192.0.2.1:53"), at("192.0.2.2:53")]);
        assert!(!upstreams.reread());
        upstreams.answered(at("192.0.2.1:53"), false);
        assert_eq!(upstreams.in_order(), [at("192.0.2.2:53"), at("192.0.2.1:53")]);
        upstreams.answered(at("192.0.2.1:53"), true);
        assert_eq!(upstreams.in_order(), [at("192.0.2.1:53"), at("192.0.2.2:53")]);
        assert_eq!(address("fe80::1%eth0"), None);
    }
}
