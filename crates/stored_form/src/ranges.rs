//! What is given to Services, as Kubernetes keeps it: node ports as bits of one RangeAllocation, addresses as IPAddresses alone.
//!
//! Above there is a key for each port and address, below `ranges/servicenodeports` holds all ports, and an address is given where
//! its IPAddress is. A write that gives or takes a port changes the one allocation on condition that nobody else has.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use corten_api::cluster_network::NodePorts;
use corten_schema::proto::RangeAllocation;
use corten_store::{Entry, Operation, Range, Revision, Txn};

/// Above: a key for each address and for each port.
pub(crate) const ADDRESSES: &[u8] = b"/registry/ranges/serviceips/";
pub(crate) const PORTS: &[u8] = b"/registry/ranges/servicenodeports/";
/// Below: the IPAddresses, and the allocation of all ports.
pub(crate) const IP_ADDRESSES: &[u8] = b"/registry/ipaddresses/";
pub(crate) const ALLOCATION: &[u8] = b"/registry/ranges/servicenodeports";

/// The value is empty: the Service records the owner.
const ALLOCATED: &[u8] = b"{}";

/// What a key above stands for.
pub(crate) enum RangeKey<'a> {
    Address(&'a [u8]),
    Port(u16),
}

pub(crate) fn range_key(key: &[u8]) -> Option<RangeKey<'_>> {
    if let Some(address) = key.strip_prefix(ADDRESSES) {
        return Some(RangeKey::Address(address));
    }
    std::str::from_utf8(key.strip_prefix(PORTS)?).ok()?.parse().ok().map(RangeKey::Port)
}

pub(crate) fn key_of_address(address: &[u8]) -> Bytes {
    [IP_ADDRESSES, address].concat().into()
}

/// The entry above of one that stands below.
pub(crate) fn entry_of(key: Bytes, below: &Entry) -> Entry {
    let value = Bytes::from_static(ALLOCATED);
    Entry { key, value, unreadable: None, ..below.clone() }
}

/// The entry above of an IPAddress.
pub(crate) fn address_entry(below: &Entry) -> Option<Entry> {
    let address = below.key.strip_prefix(IP_ADDRESSES)?;
    Some(entry_of([ADDRESSES, address].concat().into(), below))
}

pub(crate) fn key_of_port(port: u16) -> Bytes {
    [PORTS, port.to_string().as_bytes()].concat().into()
}

/// The ports of an allocation.
pub(crate) struct Ports {
    allocation: RangeAllocation,
    first: u16,
    last: u16,
    given: BTreeSet<u16>,
}

impl Ports {
    /// # Errors
    /// What stands there is no allocation of ports.
    pub(crate) fn read(stored: Option<&[u8]>) -> Result<Self, String> {
        let allocation = match stored {
            Some(stored) => RangeAllocation::decode(stored).map_err(|it| it.to_string())?,
            // The range that kube-apiserver has by default (`--service-node-port-range`).
            None => RangeAllocation::new(&NodePorts::default().to_string()),
        };
        let bounds = allocation.range.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (first, last): (u16, u16) = bounds.ok_or_else(|| format!("{:?} is no range of ports", allocation.range))?;
        let mut given = BTreeSet::new();
        for (at, byte) in allocation.data.iter().rev().enumerate() {
            let bits = (0..8).filter(|bit| byte >> bit & 1 == 1);
            let port = |bit: usize| u16::try_from(usize::from(first) + at * 8 + bit).ok();
            given.extend(bits.filter_map(port).filter(|it| *it <= last));
        }
        Ok(Self { allocation, first, last, given })
    }

    pub(crate) fn given(&self) -> &BTreeSet<u16> {
        &self.given
    }

    pub(crate) fn is_given(&self, port: u16) -> bool {
        self.given.contains(&port)
    }

    fn written(mut self) -> Bytes {
        let bytes = self.given.last().map_or(0, |last| usize::from(last - self.first) / 8 + 1);
        let mut data = vec![0_u8; bytes];
        for port in &self.given {
            let bit = usize::from(port - self.first);
            data[bytes - 1 - bit / 8] |= 1 << (bit % 8);
        }
        self.allocation.data = data;
        self.allocation.encode().into()
    }
}

/// What a transaction gives and takes, taken out of it.
#[derive(Default)]
pub(crate) struct PortChanges {
    /// On condition that they are given (`true`) or free.
    expected: BTreeMap<u16, bool>,
    /// Given from now on, or free.
    changed: BTreeMap<u16, bool>,
}

impl PortChanges {
    pub(crate) fn taken_out_of(txn: &mut Txn) -> Self {
        let mut taken = Self::default();
        txn.compares.retain(|it| match range_key(&it.key) {
            Some(RangeKey::Port(port)) => {
                taken.expected.insert(port, it.mod_revision != 0);
                false
            }
            // The IPAddress is compared in the same transaction.
            Some(RangeKey::Address(_)) => false,
            None => true,
        });
        txn.operations.retain(|it| {
            let (key, is_given) = match it {
                Operation::Put { key, .. } => (key, true),
                Operation::Delete { key } => (key, false),
            };
            match range_key(key) {
                Some(RangeKey::Port(port)) => {
                    taken.changed.insert(port, is_given);
                    false
                }
                Some(RangeKey::Address(_)) => false,
                None => true,
            }
        });
        taken
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.expected.is_empty() && self.changed.is_empty()
    }

    /// The allocation after the changes; where a condition does not hold, the port of which it does not.
    pub(crate) fn applied(&self, mut ports: Ports) -> Result<Bytes, u16> {
        let within = ports.first..=ports.last;
        // A port beyond the range of others can be given to nobody.
        let is_refused = |(port, is_given): (&u16, &bool)| {
            let beyond = !within.contains(port) && self.changed.get(port) == Some(&true);
            (beyond || ports.is_given(*port) != *is_given).then_some(*port)
        };
        if let Some(port) = self.expected.iter().find_map(is_refused) {
            return Err(port);
        }
        for (port, is_given) in &self.changed {
            if *is_given && within.contains(port) {
                ports.given.insert(*port);
            } else {
                ports.given.remove(port);
            }
        }
        Ok(ports.written())
    }
}

/// What is asked of a range above, which is asked of another one below.
pub(crate) enum Asked {
    /// What stands below is what is shown.
    Stored(Range),
    Addresses(Range),
    Ports(Range),
}

pub(crate) fn asked(range: Range) -> Asked {
    if range.start.starts_with(ADDRESSES) {
        Asked::Addresses(range)
    } else if range.start.starts_with(PORTS) {
        Asked::Ports(range)
    } else {
        Asked::Stored(range)
    }
}

/// The one key of the allocation.
pub(crate) fn allocation_range() -> Range {
    let end = [ALLOCATION, b"\0"].concat();
    Range { start: Bytes::from_static(ALLOCATION), end: std::ops::Bound::Excluded(end.into()) }
}

/// The changes above that one of the allocation is.
///
/// # Errors
/// What stands there is no allocation of ports.
pub(crate) fn port_changes(
    previous: Option<&Entry>,
    entry: Option<&Entry>,
    revision: Revision,
) -> Result<Vec<corten_store::Change>, String> {
    let ports = |it: Option<&Entry>| Ports::read(it.map(|it| &*it.value));
    let (before, after) = (ports(previous)?, ports(entry)?);
    let change = |port: u16, entry: Option<&Entry>, previous: Option<&Entry>| {
        let above = |below: &Entry| entry_of(key_of_port(port), below);
        corten_store::Change {
            revision,
            key: key_of_port(port),
            entry: entry.map(above),
            previous: previous.map(above),
        }
    };
    let gained = after.given.difference(&before.given).map(|port| change(*port, entry, None));
    let lost = before.given.difference(&after.given).map(|port| change(*port, None, previous));
    Ok(gained.chain(lost).collect())
}
