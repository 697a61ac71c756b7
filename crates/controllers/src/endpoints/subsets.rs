//! Addresses grouped by the ports they have in common, ready ones and others, and cut off at a thousand.

use std::collections::{BTreeMap, BTreeSet};

use crate::projections::{EndpointAddress, EndpointPort, EndpointSubset};

const ADDRESSES_MAX: usize = 1000;

/// Each address with its ports, and whether it is ready at each.
#[derive(Default)]
pub(super) struct Subsets(BTreeMap<EndpointAddress, BTreeMap<Option<EndpointPort>, bool>>);

impl Subsets {
    pub(super) fn add(&mut self, address: EndpointAddress, is_ready: bool, port: Option<EndpointPort>) {
        *self.0.entry(address).or_default().entry(port).or_default() |= is_ready;
    }

    /// Whole subsets, in one order for one content.
    fn packed(self) -> Vec<EndpointSubset> {
        let mut by_ports: BTreeMap<BTreeSet<Option<EndpointPort>>, EndpointSubset> = BTreeMap::new();
        for (address, ports) in self.0 {
            let (ready, unready): (BTreeMap<_, _>, BTreeMap<_, _>) = ports.into_iter().partition(|it| it.1);
            if !ready.is_empty() {
                by_ports.entry(ready.into_keys().collect()).or_default().addresses.push(address.clone());
            }
            if !unready.is_empty() {
                by_ports.entry(unready.into_keys().collect()).or_default().not_ready_addresses.push(address);
            }
        }
        let whole = |(ports, subset): (BTreeSet<Option<EndpointPort>>, EndpointSubset)| EndpointSubset {
            ports: ports.into_iter().flatten().collect(),
            ..subset
        };
        by_ports.into_iter().map(whole).collect()
    }

    /// Ready addresses go before others; of the last kind that has a place, each subset gets its share. Says whether
    /// anything was left out.
    pub(super) fn cut(self) -> (Vec<EndpointSubset>, bool) {
        let mut subsets = self.packed();
        let n_ready: usize = subsets.iter().map(|it| it.addresses.len()).sum();
        let n_unready: usize = subsets.iter().map(|it| it.not_ready_addresses.len()).sum();
        if n_ready + n_unready <= ADDRESSES_MAX {
            return (subsets, false);
        }
        let cuts_ready = n_ready > ADDRESSES_MAX;
        let (room, n_all) = if cuts_ready { (ADDRESSES_MAX, n_ready) } else { (ADDRESSES_MAX - n_ready, n_unready) };
        let mut left = room;
        for subset in &mut subsets {
            let list = if cuts_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
            let share = (list.len() * room).div_ceil(n_all).min(left);
            left -= share;
            list.truncate(share);
            if cuts_ready {
                subset.not_ready_addresses.clear();
            }
        }
        (subsets, true)
    }
}
