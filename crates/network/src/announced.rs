//! Addresses of load balancers that this machine answers for: on the interface of its own address, where the kernel answers who asks for
//! them by ARP and NDP.
//!
//! They are marked by how they are kept: alone in their prefix, never the source of anything, and forgotten by the kernel unless they
//! are renewed. So what a process that was killed has left goes by itself, and sooner where another starts.

mod frames;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_machine::{MachineError, command};
use corten_proxy::{ANNOUNCED_TIMES, ANSWER_LIFETIME};
use serde::Deserialize;

use frames::Link;

/// The addresses of load balancers on this machine.
#[derive(Debug)]
pub struct AnnouncedAddresses {
    /// The machine's own.
    addresses: Vec<IpAddr>,
    /// How often each was made known; `None` before the first look, when what is marked is an earlier run's.
    known: Option<BTreeMap<IpAddr, u32>>,
}

/// As `ip -json address show` says it.
#[derive(Deserialize)]
struct Interface {
    #[serde(default)]
    ifindex: i32,
    #[serde(default)]
    ifname: String,
    /// What Ethernet calls it.
    #[serde(default)]
    address: String,
    #[serde(default)]
    addr_info: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    local: Option<IpAddr>,
    #[serde(default)]
    prefixlen: u8,
    /// Seconds; all bits set: for ever.
    valid_life_time: Option<u64>,
    preferred_life_time: Option<u64>,
}

impl AnnouncedAddresses {
    pub fn new(addresses: Vec<IpAddr>) -> Self {
        Self { addresses, known: None }
    }

    /// Has the kernel answer for these addresses until their time is over, and for none that were here before.
    ///
    /// # Errors
    /// The kernel refuses one, or the machine has no interface for it: the others are there.
    pub async fn apply(&mut self, wanted: &BTreeSet<IpAddr>) -> Result<(), MachineError> {
        let interfaces = interfaces().await?;
        let present: BTreeSet<(IpAddr, &str)> =
            interfaces.iter().flat_map(|it| it.marked().map(|address| (address, &*it.ifname))).collect();
        let mut lines = Vec::new();
        let is_ours = |it: &IpAddr| self.known.as_ref().is_none_or(|known| known.contains_key(it));
        for (address, name) in present.iter().filter(|it| !wanted.contains(&it.0) && is_ours(&it.0)) {
            lines.push(format!("address delete {} dev {name}", host(*address)));
        }
        let (mut places, mut missing) = (Vec::new(), None);
        for address in wanted {
            let Some(interface) = self.outward(&interfaces, *address) else {
                missing = Some(format!("no interface has an address of this node, to add {address} to"));
                continue;
            };
            let duplicate = if address.is_ipv6() { " nodad" } else { "" };
            lines.push(format!(
                "address replace {} dev {} valid_lft {} preferred_lft 0 noprefixroute{duplicate}",
                host(*address),
                interface.ifname,
                ANSWER_LIFETIME.as_secs()
            ));
            places.push((*address, interface));
        }
        let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
        if !lines.is_empty() {
            command::run("ip", &["-force", "-batch", "-"], &text).await?;
        }
        let mut known = self.known.take().unwrap_or_default();
        known.retain(|address, _| wanted.contains(address) && present.iter().any(|it| it.0 == *address));
        for (address, interface) in places {
            let n_times = known.entry(address).or_default();
            if *n_times < ANNOUNCED_TIMES {
                *n_times += 1;
                interface.make_known(address);
            }
        }
        self.known = Some(known);
        missing.map_or(Ok(()), |it| Err(MachineError::Missing(it)))
    }

    /// The interface of the node's address, of this family where it has one of it.
    fn outward<'a>(&self, interfaces: &'a [Interface], address: IpAddr) -> Option<&'a Interface> {
        let with = |own: &IpAddr| interfaces.iter().find(|it| it.addr_info.iter().any(|it| it.local == Some(*own)));
        let same = self.addresses.iter().filter(|it| it.is_ipv4() == address.is_ipv4());
        same.chain(&self.addresses).find_map(with)
    }
}

impl Interface {
    fn marked(&self) -> impl Iterator<Item = IpAddr> {
        let is_marked = |it: &&Address| {
            let is_alone = it.local.is_some_and(|local| it.prefixlen == if local.is_ipv4() { 32 } else { 128 });
            let is_short = it.valid_life_time.is_some_and(|it| it <= ANSWER_LIFETIME.as_secs());
            is_alone && is_short && it.preferred_life_time == Some(0)
        };
        self.addr_info.iter().filter(is_marked).filter_map(|it| it.local)
    }

    fn make_known(&self, address: IpAddr) {
        // What is no Ethernet has nobody on its link that would have to be told.
        let Some(mac) = frames::mac(&self.address) else { return };
        if let Err(error) = frames::make_known(Link { index: self.ifindex, mac }, address) {
            tracing::warn!(%address, interface = self.ifname, %error, "cannot make known on the link that the address is here");
        }
    }
}

/// Takes away all that are marked.
pub(crate) async fn remove() -> Result<(), MachineError> {
    AnnouncedAddresses::new(Vec::new()).apply(&BTreeSet::new()).await
}

async fn interfaces() -> Result<Vec<Interface>, MachineError> {
    let listed = command::run("ip", &["-json", "address", "show"], "").await?;
    let unreadable = |error: serde_json::Error| MachineError::Command {
        program: "ip -json address show".into(),
        message: error.to_string(),
    };
    serde_json::from_str(&listed).map_err(unreadable)
}

fn host(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::tests::{block, run};

    fn addresses(texts: &[&str]) -> BTreeSet<IpAddr> {
        texts.iter().map(|it| it.parse().expect("an address")).collect()
    }

    #[test]
    fn the_kernel_answers_for_what_is_wanted_and_for_nothing_else() {
        crate::nft::tests::in_own_network(|| {
            run("ip link add wire type veth peer name far");
            run("ip address add 192.168.0.1/24 dev wire");
            run("ip address add fd00::1/64 dev wire nodad");
            run("ip link set lo up");
            run("ip link set wire up");
            run("ip link set far up");
            let own = || vec!["192.168.0.1".parse().expect("an address"), "fd00::1".parse().expect("an address")];
            // Somebody's own address, alone in its prefix, is left alone.
            run("ip address add 192.168.0.77/32 dev wire");
            let listed = || {
                let listed = run("ip -o address show dev wire");
                let words = listed.lines().filter_map(|it| it.split_whitespace().nth(3));
                words.filter(|it| !it.starts_with("fe80")).map(str::to_owned).collect::<Vec<_>>()
            };
            let mut announced = AnnouncedAddresses::new(own());
            block(announced.apply(&addresses(&["192.168.0.200", "fd00::200"]))).expect("they are added");
            block(announced.apply(&addresses(&["192.168.0.200", "fd00::200"]))).expect("they are renewed");
            let mut there = listed();
            there.sort();
            let expected = ["192.168.0.1/24", "192.168.0.200/32", "192.168.0.77/32", "fd00::1/64", "fd00::200/128"];
            assert_eq!(there, expected);
            assert_eq!(announced.known.as_ref().map(|it| it.values().copied().collect()), Some(vec![2, 2]));
            // They are the source of nothing.
            assert!(run("ip route get 192.168.0.9").contains("src 192.168.0.1 "));
            assert!(run("ip route get fd00::9").contains("src fd00::1 "));
            // Another run does not know them, and takes away what it does not want; what comes later is not its own.
            let mut next = AnnouncedAddresses::new(own());
            block(next.apply(&addresses(&["192.168.0.201"]))).expect("the others are removed");
            let mut there = listed();
            there.sort();
            assert_eq!(there, ["192.168.0.1/24", "192.168.0.201/32", "192.168.0.77/32", "fd00::1/64"]);
            run("ip address add 192.168.0.202/32 dev wire valid_lft 20 preferred_lft 0");
            block(next.apply(&addresses(&[]))).expect("its own is removed");
            assert!(listed().contains(&"192.168.0.202/32".to_owned()) && listed().len() == 4, "{:?}", listed());
            block(remove()).expect("all are removed");
            assert_eq!(listed().len(), 3, "{:?}", listed());
            let mut strange = AnnouncedAddresses::new(addresses(&["10.9.9.9"]).into_iter().collect());
            let error = block(strange.apply(&addresses(&["10.0.0.5"]))).expect_err("there is no such interface");
            assert!(error.to_string().contains("no interface has an address of this node"), "{error}");
        });
    }
}
