//! The cluster's name server on this node: sockets before, and other servers behind, what `corten_dns` answers.
//!
//! It listens on the node's own addresses, at a port of its own: 53 may be somebody else's, and Pods come by way of the
//! Service `kube-dns`. Who is neither a Pod of this node nor the node itself is refused with a bare header, which is never
//! longer than what it asked with: this is no open resolver, and nothing is amplified by it.

mod clients;
mod exchange;
mod forward;
mod probe;
mod tcp;
mod udp;
mod upstreams;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use clients::Clients;
use corten_dns::{Name, Outcome, Query, Question, Rejected, Zone, answer, chased, fail, parse, reject, relay};
use forward::Forwarder;
pub(crate) use probe::answers;
use tokio::{
    net::{TcpListener, UdpSocket},
    sync::Semaphore,
    task::JoinSet,
};
pub use upstreams::servers_of_machine;

/// Questions that other servers are asked at the same time.
const IN_FLIGHT_MAX: usize = 1024;
/// How often the list of other servers is looked at.
const KEEP_INTERVAL: Duration = Duration::from_secs(5);

/// What a name server is told.
pub struct DnsOptions {
    pub addresses: Vec<IpAddr>,
    /// The first free one is taken.
    pub ports: RangeInclusive<u16>,
    /// The networks of Pods, as `10.244.0.0/24`. They and this machine may ask.
    pub networks: Vec<String>,
    /// Is it another node's address? Its Pods may ask.
    pub is_peer: IsPeer,
    /// By which this server itself may be found in the machine's list of servers.
    pub own_names: Vec<IpAddr>,
    /// Who is asked for other names; looked at every few seconds.
    pub servers: ListServers,
    /// Names of others that have IPv4 alone are given addresses by this, where Pods have IPv6 alone.
    pub ipv4: Option<Ipv4Way>,
    /// Domains whose names others are asked for, each its own servers. Of several that a name is within the longest is its.
    pub stub_domains: Vec<(Name, Vec<SocketAddr>)>,
}

/// How what has IPv4 alone is reached by IPv6.
pub struct Ipv4Way {
    pub way_to: fn(Ipv4Addr) -> Option<Ipv6Addr>,
    /// Looked at every few seconds.
    pub ways_out: fn() -> WaysOut,
}

/// What of the world outside this machine reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaysOut {
    pub ipv4: bool,
    pub ipv6: bool,
}

pub type IsPeer = Box<dyn Fn(IpAddr) -> bool + Send + Sync>;
pub type ListServers = Box<dyn Fn() -> Vec<SocketAddr> + Send + Sync>;

/// Bound, and not serving yet.
pub struct DnsServer {
    sockets: Vec<(UdpSocket, TcpListener)>,
    port: u16,
    name_server: Arc<NameServer>,
}

/// Where the next zone is put.
#[derive(Clone)]
pub struct ZoneSlot(Arc<NameServer>);

/// What all tasks share.
struct NameServer {
    zone: ArcSwap<Zone>,
    turn: AtomicUsize,
    clients: Clients,
    forwarder: Arc<Forwarder>,
    in_flight: Arc<Semaphore>,
}

/// What became of a packet.
enum Handled {
    /// No answer is due.
    Silence,
    /// The answer has been written.
    Answered,
    /// Another server has to be asked first.
    Later(Box<Later>),
}

/// A query that waits for another server.
struct Later {
    question: Question,
    /// What led there, where that was the zone.
    aliases: Vec<Name>,
}

impl DnsServer {
    /// Takes a port on every address, for UDP and TCP.
    ///
    /// # Errors
    /// If no port of the range is free on all of them.
    pub async fn bind(options: DnsOptions, zone: Zone) -> io::Result<Self> {
        let mut last = io::Error::other("no port was offered");
        for port in options.ports.clone() {
            match bind(&options.addresses, port).await {
                Ok(sockets) => {
                    let own = options.addresses.iter().map(|it| SocketAddr::new(*it, port)).collect();
                    let name_server = NameServer {
                        zone: ArcSwap::from_pointee(zone),
                        turn: AtomicUsize::new(0),
                        clients: Clients::new(&options.networks, options.is_peer),
                        forwarder: Arc::new(Forwarder::new(
                            own,
                            options.own_names,
                            options.servers,
                            options.stub_domains,
                            options.ipv4,
                        )?),
                        in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
                    };
                    return Ok(Self { sockets, port, name_server: Arc::new(name_server) });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn zone(&self) -> ZoneSlot {
        ZoneSlot(self.name_server.clone())
    }

    /// Serves until `stopping` is ready.
    pub async fn serve(self, stopping: impl Future<Output = ()> + Send) {
        let mut tasks = JoinSet::new();
        for (udp, tcp) in self.sockets {
            tasks.spawn(udp::serve(udp, self.name_server.clone()));
            tasks.spawn(tcp::serve(tcp, self.name_server.clone()));
        }
        let forwarder = self.name_server.forwarder.clone();
        tasks.spawn(async move {
            let mut every = tokio::time::interval(KEEP_INTERVAL);
            loop {
                every.tick().await;
                forwarder.keep().await;
            }
        });
        stopping.await;
        tasks.shutdown().await;
    }
}

async fn bind(addresses: &[IpAddr], port: u16) -> io::Result<Vec<(UdpSocket, TcpListener)>> {
    let mut sockets = Vec::new();
    for address in addresses {
        sockets.push((UdpSocket::bind((*address, port)).await?, TcpListener::bind((*address, port)).await?));
    }
    Ok(sockets)
}

impl ZoneSlot {
    /// Answers with it from now on, unless it knows less.
    pub fn publish(&self, zone: Zone) {
        if zone.may_follow(&self.0.zone.load()) {
            self.0.zone.store(Arc::new(zone));
        }
    }
}

impl NameServer {
    /// Answers what can be answered without waiting. `limit` is that of the way the answer goes, where it has one.
    fn handle(&self, packet: &[u8], from: IpAddr, limit: Option<usize>, out: &mut Vec<u8>) -> Handled {
        let query = match parse(packet) {
            Ok(query) => query,
            Err(Rejected::Silence) => return Handled::Silence,
            Err(Rejected::Code(code)) => {
                let code = if self.clients.admit(from) { code } else { corten_dns::REFUSED };
                reject(packet, code, out);
                return Handled::Answered;
            }
        };
        if !self.clients.admit(from) {
            reject(packet, corten_dns::REFUSED, out);
            return Handled::Answered;
        }
        let limit = limit.unwrap_or_else(|| query.udp_limit());
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let zone = self.zone.load();
        let later = match answer(&query, &zone, turn, limit, out) {
            Outcome::Answered => return Handled::Answered,
            Outcome::Elsewhere => Later { question: query.question, aliases: Vec::new() },
            Outcome::Alias(aliases) => {
                let name = *aliases.last().expect("an alias stands for something");
                Later { question: Question { name, ..query.question }, aliases }
            }
        };
        if let Some(found) = self.forwarder.known(&later.question) {
            later.answer(&query, &found, limit, out);
            return Handled::Answered;
        }
        Handled::Later(Box::new(later))
    }

    /// Asks another server and answers.
    async fn finish(&self, packet: &[u8], later: &Later, limit: Option<usize>) -> Vec<u8> {
        let mut out = Vec::new();
        let found = self.forwarder.look_up(&later.question).await;
        // It was read before.
        let Ok(query) = parse(packet) else { return out };
        let limit = limit.unwrap_or_else(|| query.udp_limit());
        match found {
            Some(found) => later.answer(&query, &found, limit, &mut out),
            None => fail(&query, corten_dns::SERVER_FAILURE, limit, &mut out),
        }
        out
    }

    fn overloaded(packet: &[u8], limit: Option<usize>, out: &mut Vec<u8>) {
        if let Ok(query) = parse(packet) {
            fail(&query, corten_dns::SERVER_FAILURE, limit.unwrap_or_else(|| query.udp_limit()), out);
        }
    }
}

impl Later {
    fn answer(&self, query: &Query<'_>, found: &corten_dns::CachedAnswer, limit: usize, out: &mut Vec<u8>) {
        // What no longer holds shall not be kept by anybody.
        let age = if found.is_stale { u32::MAX } else { found.age };
        if self.aliases.is_empty() {
            relay(query, &found.reading, age, limit, out);
        } else {
            chased(query, &self.aliases, &found.reading, age, limit, out);
        }
    }
}

#[cfg(test)]
mod tests;
