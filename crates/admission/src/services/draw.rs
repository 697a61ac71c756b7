//! Looks for a free address or port. The search begins where a fresh identifier says, so that one that was given back is
//! not the next to be given, and spares the low end of each range for those who ask for a number of their choice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use corten_api::resources::{IP_ADDRESSES, SERVICE_CIDRS};
use corten_cacher::watch_cache::Caches;
use corten_kinds::service_allocation::{Family, Holds, Source};
use corten_meta::address::Cidr;
use serde_json::Value;

use crate::cluster::Cluster;

/// The range that says of which families the cluster is.
pub(super) const DEFAULT_RANGE: &str = "kubernetes";
const FULL: &str = "range is full";
const TAKEN_ADDRESS: &str = "provided IP is already allocated";
const TAKEN_PORT: &str = "provided port is already allocated";

pub(super) struct Draw<'a> {
    cluster: &'a Cluster,
    claimed: &'a mut Holds,
    blocks: Vec<Block>,
    families: Vec<Family>,
}

/// One range of addresses.
#[derive(Clone, Copy)]
struct Block {
    first: u128,
    n_addresses: u128,
    family: Family,
}

/// The ranges of Services' addresses, ready or not.
pub fn ranges(caches: &Caches) -> Vec<Cidr> {
    let snapshot = caches.get(&SERVICE_CIDRS).map(|it| it.snapshot());
    let objects = snapshot.iter().flat_map(|it| it.iter()).map(|it| it.parse());
    let of_object = |object: Value| {
        let texts = object["spec"]["cidrs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.filter_map(Cidr::parse).collect::<Vec<_>>()
    };
    objects.flat_map(of_object).collect()
}

fn is_ready(range: &Value) -> bool {
    let mut conditions = range["status"]["conditions"].as_array().into_iter().flatten();
    range["metadata"]["deletionTimestamp"].is_null()
        && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

impl<'a> Draw<'a> {
    pub(super) fn new(cluster: &'a Cluster, claimed: &'a mut Holds) -> Self {
        let (mut blocks, mut families) = (Vec::new(), Vec::new());
        let snapshot = cluster.caches().get(&SERVICE_CIDRS).map(|it| it.snapshot());
        let mut objects: Vec<Value> = snapshot.iter().flat_map(|it| it.iter()).map(|it| it.parse()).collect();
        objects.sort_by_key(|it| it["metadata"]["name"] != DEFAULT_RANGE);
        for range in objects.iter().filter(|it| is_ready(it)) {
            let texts = range["spec"]["cidrs"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let of_range: Vec<Block> = texts.filter_map(Block::parse).collect();
            if range["metadata"]["name"] == DEFAULT_RANGE {
                families = of_range.iter().map(|it| it.family).collect();
            }
            blocks.extend(of_range);
        }
        if families.is_empty() {
            families = blocks.iter().map(|it| it.family).collect();
            families.dedup();
        }
        Self { cluster, claimed, blocks, families }
    }

    /// A number that differs from draw to draw, and not from one run of the simulator to the next.
    fn chance(&self) -> u128 {
        let hash = corten_meta::stable_hash(self.cluster.new_uid().as_bytes());
        u128::from(hash ^ (hash >> 29))
    }

    /// Does an object say that the address is somebody's?
    fn is_named(&self, address: IpAddr) -> bool {
        let cache = self.cluster.caches().get(&IP_ADDRESSES);
        cache.is_some_and(|it| it.get("", &address.to_string()).is_some())
    }
}

/// The ports from the first that are given last: as upstream's `calculateRangeOffset`.
fn ports_spared(n: u128) -> u128 {
    if n <= 16 { 0 } else { (n / 32).clamp(16, 128) }
}

/// The numbers below `n`, from `start` on and around, those below `spared` last.
fn around(n: u128, spared: u128, start: u128) -> impl Iterator<Item = u128> {
    let turned = move |from: u128, n: u128| (0..n).map(move |it| from + (start % n + it) % n);
    turned(spared, n - spared).chain(turned(0, spared))
}

impl Source for Draw<'_> {
    fn families(&self) -> Vec<Family> {
        self.families.clone()
    }

    fn any_address(&mut self, family: Family) -> Result<IpAddr, String> {
        let chance = self.chance();
        let mut taken = self.cluster.ranges.lock();
        let free = self.blocks.iter().filter(|it| it.family == family).find_map(|block| {
            let all = around(block.n_addresses, block.spared(), chance).map(|it| block.address(it));
            let mut free = all.filter(|it| !taken.addresses.contains(it) && !self.is_named(*it));
            free.next()
        });
        let address = free.ok_or(FULL)?;
        taken.addresses.insert(address);
        self.claimed.addresses.insert(address);
        Ok(address)
    }

    fn address(&mut self, address: IpAddr) -> Result<(), String> {
        if !self.blocks.iter().any(|it| it.holds(address)) {
            return Err("the provided network does not match the current range".into());
        }
        let mut taken = self.cluster.ranges.lock();
        if self.is_named(address) || !taken.addresses.insert(address) {
            return Err(TAKEN_ADDRESS.into());
        }
        self.claimed.addresses.insert(address);
        Ok(())
    }

    fn any_port(&mut self) -> Result<u16, String> {
        let chance = self.chance();
        let mut taken = self.cluster.ranges.lock();
        let (first, last) = (*self.cluster.node_ports.0.start(), *self.cluster.node_ports.0.end());
        let n = u128::from(last - first) + 1;
        let all = around(n, ports_spared(n), chance);
        let mut all = all.filter_map(|it| u16::try_from(it).ok()).map(|it| first + it);
        let port = all.find(|it| !taken.ports.contains(it)).ok_or(FULL)?;
        taken.ports.insert(port);
        self.claimed.ports.insert(port);
        Ok(port)
    }

    fn port(&mut self, port: u16) -> Result<(), String> {
        let ports = &self.cluster.node_ports;
        if !ports.contains(port) {
            return Err(format!("provided port is not in the valid range. The range of valid ports is {ports}"));
        }
        if !self.cluster.ranges.lock().ports.insert(port) {
            return Err(TAKEN_PORT.into());
        }
        self.claimed.ports.insert(port);
        Ok(())
    }
}

impl Block {
    /// Without the address of the network itself, and of IPv4 without the last, which means all of it.
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?);
        let (start, bits, family) = match address {
            IpAddr::V4(it) => (u128::from(it.to_bits()), 32_u32, Family::V4),
            IpAddr::V6(it) => (it.to_bits(), 128, Family::V6),
        };
        // As in `ipallocator`: of a wide range only the first 2^64 addresses are used.
        let size = 1_u128 << bits.checked_sub(length)?.min(64);
        let reserved = if family == Family::V4 { 2 } else { 1 };
        let n_addresses = size.checked_sub(reserved).filter(|it| *it > 0)?;
        Some(Self { first: start + 1, n_addresses, family })
    }

    fn spared(&self) -> u128 {
        let n = self.n_addresses;
        if n < 16 { 0 } else { (n / 16).clamp(16, 256).min(n - 1) }
    }

    fn address(&self, offset: u128) -> IpAddr {
        let number = self.first + offset;
        match self.family {
            Family::V4 => {
                Ipv4Addr::from_bits(u32::try_from(number).expect("a range of 32 bits ends below 2^32")).into()
            }
            Family::V6 => Ipv6Addr::from_bits(number).into(),
        }
    }

    fn holds(&self, address: IpAddr) -> bool {
        let number = match address {
            IpAddr::V4(it) => u128::from(it.to_bits()),
            IpAddr::V6(it) => it.to_bits(),
        };
        Family::of(address) == self.family && (self.first..=self.first + (self.n_addresses - 1)).contains(&number)
    }
}
