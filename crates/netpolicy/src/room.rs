//! Bounds what the policies of one namespace may take of a node's kernel memory.
//!
//! A user who may write policies chooses both how many peers they have and how many Pods each peer selects; without a bound their
//! product could fill the memory of every node. All sets that a namespace's policies name are counted together, each once, however
//! many of the policies name it.

use std::collections::BTreeMap;

use crate::rules::Set;

/// How much the sets of one namespace may hold on a node: addresses, ports and ranges, and what each set costs by itself.
pub(crate) const ROOM: usize = 262_144;
/// What a set costs by itself, in elements: the kernel's own bookkeeping, and that each Pod that changes is compared with it.
const SET_COST: usize = 64;
/// How many packet rules the policies of one namespace may become on a node. A packet that none of them allows meets them all.
pub(crate) const NAMESPACE_RULES_MAX: usize = 65_536;

#[derive(Default)]
struct Held {
    n_elements: usize,
    /// For each namespace, how many times its policies name the set.
    namespaces: BTreeMap<String, usize>,
}

#[derive(Default)]
pub(crate) struct Rooms {
    sets: BTreeMap<Set, Held>,
    taken: BTreeMap<String, usize>,
    /// The packet rules of each namespace's policies.
    rules: BTreeMap<String, usize>,
}

impl Rooms {
    /// A policy of this namespace names the set, which holds so many elements if nobody named it before.
    pub(crate) fn enter(&mut self, namespace: &str, set: Set, n_elements: usize) {
        let held = self.sets.entry(set).or_insert_with(|| Held { n_elements, ..Held::default() });
        let n_names = held.namespaces.entry(namespace.to_owned()).or_default();
        *n_names += 1;
        if *n_names == 1 {
            *self.taken.entry(namespace.to_owned()).or_default() += SET_COST + held.n_elements;
        }
    }

    pub(crate) fn leave(&mut self, namespace: &str, set: Set) {
        let Some(held) = self.sets.get_mut(&set) else { return };
        let Some(n_names) = held.namespaces.get_mut(namespace) else { return };
        *n_names -= 1;
        if *n_names > 0 {
            return;
        }
        held.namespaces.remove(namespace);
        if let Some(taken) = self.taken.get_mut(namespace) {
            *taken -= SET_COST + held.n_elements;
            if *taken == 0 {
                self.taken.remove(namespace);
            }
        }
        if held.namespaces.is_empty() {
            self.sets.remove(&set);
        }
    }

    pub(crate) fn grow(&mut self, set: Set) {
        let Some(held) = self.sets.get_mut(&set) else { return };
        held.n_elements += 1;
        for namespace in held.namespaces.keys() {
            *self.taken.entry(namespace.clone()).or_default() += 1;
        }
    }

    /// Of a set that nobody names any more nothing is counted.
    pub(crate) fn shrink(&mut self, set: Set) {
        let Some(held) = self.sets.get_mut(&set) else { return };
        held.n_elements -= 1;
        for namespace in held.namespaces.keys() {
            self.taken.entry(namespace.clone()).and_modify(|it| *it -= 1);
        }
    }

    pub(crate) fn add_rules(&mut self, namespace: &str, n_rules: usize) {
        if n_rules > 0 {
            *self.rules.entry(namespace.to_owned()).or_default() += n_rules;
        }
    }

    pub(crate) fn remove_rules(&mut self, namespace: &str, n_rules: usize) {
        let Some(all) = self.rules.get_mut(namespace) else { return };
        *all -= n_rules;
        if *all == 0 {
            self.rules.remove(namespace);
        }
    }

    pub(crate) fn n_rules(&self, namespace: &str) -> usize {
        self.rules.get(namespace).copied().unwrap_or_default()
    }

    pub(crate) fn taken(&self, namespace: &str) -> usize {
        self.taken.get(namespace).copied().unwrap_or_default()
    }

    pub(crate) fn cost(&self, set: Set) -> usize {
        self.sets.get(&set).map_or(0, |it| SET_COST + it.n_elements)
    }

    /// The namespaces that take more than this.
    pub(crate) fn overfull(&self, room: usize) -> Vec<String> {
        self.taken.iter().filter(|it| *it.1 > room).map(|it| it.0.clone()).collect()
    }
}
