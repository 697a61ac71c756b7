//! Flows of protocols that have no end: the kernel goes on sending them where they once went, until it is told to forget.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use corten_proxy::{
    Frontend, Stale,
    rules::{Backend, Family, Protocol},
};

use super::{
    message::{ACK, Bytes, attributes},
    socket::Socket,
};

const CONNTRACK: u16 = 1;
const GET: u16 = 1;
const DELETE: u16 = 2;
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
const ID: u16 = 12;
const ZONE: u16 = 18;

/// Which flows are to be forgotten?
pub(super) trait Judge {
    fn is_stale(&self, flow: &Flow) -> bool;
    fn has(&self, family: Family) -> bool;
}

/// Where the first packet of a flow was sent, and who answers.
pub(super) struct Flow {
    family: Family,
    from: IpAddr,
    to: Backend,
    answers: Backend,
}

impl Flow {
    fn fronts(&self) -> [Frontend; 2] {
        let front = |address| Frontend { family: self.family, address, protocol: Protocol::Udp, port: self.to.port };
        [front(Some(self.to.address)), front(None)]
    }
}

/// What a batch of changes left behind.
pub(super) struct StaleFlows(BTreeSet<Stale>);

impl StaleFlows {
    pub(super) fn new(stale: BTreeSet<Stale>) -> Self {
        Self(stale)
    }
}

impl Judge for StaleFlows {
    fn is_stale(&self, flow: &Flow) -> bool {
        let backend = (flow.answers != flow.to).then_some(flow.answers);
        flow.fronts().into_iter().any(|front| self.0.contains(&Stale { front, backend }))
    }

    fn has(&self, family: Family) -> bool {
        self.0.iter().any(|it| it.front.family == family)
    }
}

/// Where all fronts lead.
pub(super) struct BackendsByFrontend(pub(super) BTreeMap<Frontend, BTreeSet<Backend>>);

impl Judge for BackendsByFrontend {
    fn is_stale(&self, flow: &Flow) -> bool {
        let [exact, any] = flow.fronts();
        let backends = self.0.get(&exact).or_else(|| self.0.get(&any).filter(|_| flow.answers != flow.to));
        backends.is_some_and(|it| !it.contains(&flow.answers))
    }

    fn has(&self, family: Family) -> bool {
        self.0.keys().any(|it| it.family == family)
    }
}

/// All flows of these addresses, at either end.
pub(super) struct Ends(pub(super) BTreeSet<IpAddr>);

impl Judge for Ends {
    fn is_stale(&self, flow: &Flow) -> bool {
        [flow.from, flow.to.address, flow.answers.address].iter().any(|it| self.0.contains(it))
    }

    fn has(&self, family: Family) -> bool {
        self.0.iter().any(|it| Family::of(*it) == family)
    }
}

/// Forgets what is stale; gives how many flows that were.
pub(super) fn forget(judge: &dyn Judge) -> io::Result<usize> {
    let mut socket = Socket::open()?;
    let mut n_forgotten = 0;
    for family in Family::BOTH.into_iter().filter(|it| judge.has(*it)) {
        let number = if family == Family::V4 { 2 } else { 10 };
        let mut requests = Vec::new();
        socket.dump(
            CONNTRACK << 8 | GET,
            number,
            |_| {},
            |body| {
                if flow(family, body).is_some_and(|it| judge.is_stale(&it)) {
                    requests.push(deletion(number, body));
                }
            },
        )?;
        for request in requests {
            match socket.ask(&request, |_| {}) {
                Ok(()) => n_forgotten += 1,
                // It ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(n_forgotten)
}

/// Names the flow as the kernel did.
fn deletion(family: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.message(CONNTRACK << 8 | DELETE, ACK, 1, family, |it| {
        for (kind, value) in attributes(body) {
            match kind {
                ORIGINAL => it.nest(ORIGINAL, |it| it.0.extend(value)),
                ID | ZONE => it.attribute(kind, value),
                _ => {}
            }
        }
    });
    bytes.0
}

/// `None` for flows of other protocols.
fn flow(family: Family, body: &[u8]) -> Option<Flow> {
    let find = |kind: u16| attributes(body).find(|it| it.0 == kind).map(|it| it.1);
    let (from, to) = tuple(family, find(ORIGINAL)?)?;
    let (answers, _) = tuple(family, find(REPLY)?)?;
    Some(Flow { family, from: from.address, to, answers })
}

/// Source and destination.
fn tuple(family: Family, bytes: &[u8]) -> Option<(Backend, Backend)> {
    let part = |kind: u16| attributes(bytes).find(|it| it.0 == kind).map(|it| it.1);
    let (ip, protocol) = (part(1)?, part(2)?);
    let of = |bytes, kind: u16| attributes(bytes).find(|it| it.0 == kind).map(|it| it.1);
    if of(protocol, 1)?.first() != Some(&Protocol::Udp.number()) {
        return None;
    }
    let address = |side: u16| -> Option<IpAddr> {
        Some(match family {
            Family::V4 => Ipv4Addr::from(*of(ip, side)?.first_chunk::<4>()?).into(),
            Family::V6 => Ipv6Addr::from(*of(ip, side + 2)?.first_chunk::<16>()?).into(),
        })
    };
    let port = |side: u16| -> Option<u16> { Some(u16::from_be_bytes(*of(protocol, side + 1)?.first_chunk::<2>()?)) };
    let end = |side: u16| -> Option<Backend> { Some(Backend { address: address(side)?, port: port(side)? }) };
    Some((end(1)?, end(2)?))
}
