//! Which policies the kernel is told of: those that isolate a Pod of this node, as far as there is room for them.
//!
//! One that is not installed for want of room still isolates its Pods, and allows nothing: it is *closed*.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::{Key, Selector};
use corten_reconcile::{Actor, Wait};

use super::{Draft, Led, NetworkPolicies};
use crate::{
    compiled::{self, Named, RULES_MAX, Wanted},
    pods::Dirty,
    projections::NetworkPolicy,
    room::{NAMESPACE_RULES_MAX, ROOM},
    rules::{Direction, Rule, Set, Value},
    shared::{Fresh, Member, Places},
};

pub(super) struct Entry {
    pub(super) policy: Box<NetworkPolicy>,
    pub(super) selector: Selector,
    number: u32,
    /// How many addresses of this node it isolates.
    n_isolated: usize,
    pub(super) installed: Option<InstalledPolicy>,
}

/// The part of a policy that the kernel has.
#[derive(Default)]
pub(super) struct InstalledPolicy {
    wanted: Wanted,
    pub(super) chains: BTreeMap<String, Vec<Rule>>,
    closed: Option<Closed>,
}

/// Why a policy allows nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// It would be so many packet rules.
    Rules(usize),
    /// The policies of its namespace would be too many packet rules.
    NamespaceRules,
    /// The sets of its namespace would hold too much.
    Room,
}

impl Entry {
    pub(super) fn isolates(&self, direction: Direction) -> bool {
        compiled::directions(&self.policy).contains(&direction)
    }

    /// Where what it allows in a direction is; nowhere if that is nothing. Packets meet one after the other those that allow something.
    pub(super) fn chain(&self, key: &Key, direction: Direction) -> Option<String> {
        let spec = &self.policy.spec;
        let rules = if direction == Direction::Ingress { &spec.ingress } else { &spec.egress };
        let allows = self.isolates(direction) && !rules.is_empty() && self.closed().is_none();
        allows.then(|| self.named(key).chain(direction))
    }

    fn named<'a>(&self, key: &'a Key) -> Named<'a> {
        Named { namespace: &key.namespace, name: &key.name, number: self.number }
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        self.installed.as_ref().and_then(|it| it.closed)
    }
}

impl Closed {
    pub(super) fn wait(self, namespace: &str, node_name: &str) -> Wait {
        let end = "its pods are isolated, and it allows nothing";
        match self {
            Self::Rules(n_rules) => {
                let message = format!("it would be {n_rules} packet rules, of at most {RULES_MAX}: {end}");
                Wait::new("TooManyRules", message, Actor::Author)
            }
            Self::NamespaceRules => {
                let message = format!(
                    "with it the policies of namespace {namespace} would be more than {NAMESPACE_RULES_MAX} packet rules on \
                     node {node_name}: {end}"
                );
                Wait::new("TooManyRules", message, Actor::Author)
            }
            Self::Room => {
                let message = format!(
                    "with it the policies of namespace {namespace} would hold more than {ROOM} addresses, ports and ranges on \
                     node {node_name}: {end}"
                );
                Wait::new("TooManyPeers", message, Actor::Author)
            }
        }
    }
}

impl NetworkPolicies {
    /// Takes a policy in that is new, has changed or is gone. It is installed when it is known whom it isolates.
    pub(super) fn set_policy(
        &mut self,
        key: Key,
        policy: Option<Box<NetworkPolicy>>,
        dirty: &mut Dirty,
        draft: &mut Draft,
    ) {
        if policy.is_some() && self.policies.get(&key).map(|it| &it.policy) == policy.as_ref() {
            return;
        }
        let before = self.policies.remove(&key);
        let allows = |it: &Entry| [&it.policy.spec.ingress, &it.policy.spec.egress].map(|it| !it.is_empty());
        let aim = |it: &Entry| (compiled::directions(&it.policy), allows(it), it.selector.clone());
        let aim_before = before.as_ref().map(aim);
        if let Some(policy) = policy {
            let number = before.as_ref().map_or_else(|| self.shared.policies.acquire(&key).0, |it| it.number);
            let (n_isolated, installed) = before.map_or((0, None), |it| (it.n_isolated, it.installed));
            let selector = policy.spec.pod_selector.selector();
            draft.told.insert(key.clone());
            draft.changed.insert(key.clone());
            self.policies.insert(key.clone(), Entry { policy, selector, number, n_isolated, installed });
        } else if let Some(before) = before {
            self.shared.policies.release(&key);
            self.give_up(&key, before.installed, draft);
            draft.forgotten.push(key.clone());
        }
        if self.policies.get(&key).map(aim) != aim_before {
            let of_it = self.pods.plugged().values().filter(|it| it.pod.namespace == key.namespace);
            dirty.addresses.extend(of_it.flat_map(|it| &it.addresses));
        }
    }

    /// An address is isolated by others than before.
    pub(super) fn count_isolated(&mut self, before: Option<&Led>, now: Option<&Led>, draft: &mut Draft) {
        for (led, other, is_now) in [(now, before, true), (before, now, false)] {
            let Some(led) = led else { continue };
            let stays = |key: &&Key| other.is_some_and(|it| it.sandbox == led.sandbox && it.policies.contains(key));
            for key in led.policies.iter().filter(|it| !stays(it)) {
                let Some(entry) = self.policies.get_mut(key) else { continue };
                entry.n_isolated = if is_now { entry.n_isolated + 1 } else { entry.n_isolated.saturating_sub(1) };
                draft.told.insert(key.clone());
                draft.moved.insert(key.clone());
            }
        }
    }

    /// Lays the policies that isolate somebody here, and takes those away that no longer do.
    pub(super) fn lay_what_isolates(&mut self, draft: &mut Draft) {
        let touched: BTreeSet<Key> = draft.changed.union(&draft.moved).cloned().collect();
        let isolates = |this: &Self, key: &Key| this.policies.get(key).is_some_and(|it| it.n_isolated > 0);
        for key in touched.iter().filter(|it| !isolates(self, it)).collect::<Vec<_>>() {
            let installed = self.policies.get_mut(key).and_then(|it| it.installed.take());
            self.give_up(key, installed, draft);
        }
        self.close_the_largest(draft);
        for key in touched.iter().filter(|it| isolates(self, it)).collect::<Vec<_>>() {
            if draft.changed.contains(key) || self.policies.get(key).is_some_and(|it| it.installed.is_none()) {
                self.lay(key, self.room, usize::MAX, draft);
                self.close_the_longest(&key.namespace, draft);
            }
        }
    }

    /// Tries one of the policies again that there was no room for.
    pub(super) fn try_again(&mut self, draft: &mut Draft) {
        let behind = self.roomless.iter().find(|it| **it > self.tried);
        let Some(key) = behind.or_else(|| self.roomless.first()).cloned() else { return };
        self.tried = key.clone();
        // One at the edge would else come and go with every Pod.
        self.lay(&key, self.room / 4 * 3, self.rules_max / 4 * 3, draft);
    }

    /// Leads addresses past the policies that allow nothing now, and again to those that do.
    pub(super) fn lead_past_closed(&mut self, draft: &mut Draft) {
        let closings = std::mem::take(&mut draft.closings);
        if closings.is_empty() {
            return;
        }
        let is_led = |it: &Led| it.policies.iter().any(|it| closings.contains(it));
        let addresses: Vec<IpAddr> = self.led.iter().filter(|it| is_led(it.1)).map(|it| *it.0).collect();
        addresses.into_iter().for_each(|it| self.lead(it, draft));
    }

    /// Compiles a policy and gives up what it was before, within so much room and so many rules for its namespace.
    fn lay(&mut self, key: &Key, room: usize, rules_max: usize, draft: &mut Draft) {
        let Some(entry) = self.policies.get_mut(key) else { return };
        let before = entry.installed.take().unwrap_or_default();
        let (mut wanted, selectors) = compiled::wanted(&entry.policy);
        let n_rules = wanted.n_rules();
        let mut closed = (n_rules > RULES_MAX).then_some(Closed::Rules(n_rules));
        let others = self.shared.rooms.n_rules(&key.namespace) - before.wanted.rule_cost();
        if closed.is_none() && others.saturating_add(wanted.rule_cost()) > rules_max {
            closed = Some(Closed::NamespaceRules);
        }
        if closed.is_some() {
            wanted.closed();
        }
        // What both name keeps its number, and the kernel its set.
        let fresh = self.shared.acquire(&key.namespace, &wanted, selectors, &mut self.elements);
        self.shared.release(&key.namespace, &before.wanted, &mut self.elements);
        draft.sets.extend(&fresh.sets);
        if !self.fill(&key.namespace, &fresh, room, draft) {
            closed = Some(Closed::Room);
            self.shared.release(&key.namespace, &wanted, &mut self.elements);
            wanted.closed();
        }
        if before.closed != closed {
            draft.told.insert(key.clone());
            draft.closings.insert(key.clone());
        }
        self.write(key, InstalledPolicy { wanted, closed, ..before }, draft);
    }

    /// Puts all Pods into sets that are new; nothing is done where they hold too much.
    fn fill(&mut self, namespace: &str, fresh: &Fresh, room: usize, draft: &mut Draft) -> bool {
        let Some(mut left) = room.checked_sub(self.shared.rooms.taken(namespace)) else { return false };
        if fresh.is_empty() {
            return true;
        }
        let all = draft.addresses.get_or_insert_with(|| self.pods.all_addresses());
        let mut found: Vec<(String, Places)> = Vec::new();
        for ((uid, entry), addresses) in self.pods.entries().zip(all) {
            let member = Member { pod: &entry.pod, addresses, namespaces: &self.namespaces };
            let places = self.shared.fresh_places(fresh, &member);
            let Some(rest) = left.checked_sub(places.len()) else { return false };
            left = rest;
            if !places.is_empty() {
                found.push((uid.clone(), places));
            }
        }
        for (uid, mut places) in found {
            for (set, key) in &places {
                self.elements.claim(*set, *key, Value::Nothing);
                self.shared.rooms.grow(*set);
            }
            if let Some(entry) = self.pods.entry_mut(&uid) {
                entry.places.append(&mut places);
            }
        }
        true
    }

    /// Where Pods have come and there is no room any more, the policies go that take most of it.
    fn close_the_largest(&mut self, draft: &mut Draft) {
        for namespace in self.shared.rooms.overfull(self.room) {
            let mut installed: Vec<(usize, Key)> = Vec::new();
            for (key, entry) in self.of_namespace(&namespace) {
                let Some(it) = &entry.installed else { continue };
                let sets: BTreeSet<Set> = self.shared.sets_of(&it.wanted).collect();
                installed.push((sets.into_iter().map(|it| self.shared.rooms.cost(it)).sum(), key.clone()));
            }
            installed.sort();
            while self.shared.rooms.taken(&namespace) > self.room
                && let Some((_, key)) = installed.pop()
            {
                self.close(&key, Closed::Room, draft);
            }
        }
    }

    /// Where the policies of a namespace are too many packet rules, those go that are most of them.
    fn close_the_longest(&mut self, namespace: &str, draft: &mut Draft) {
        while self.shared.rooms.n_rules(namespace) > self.rules_max {
            let cost = |it: &Entry| it.installed.as_ref().map_or(0, |it| it.wanted.rule_cost());
            let longest = self.of_namespace(namespace).max_by_key(|(key, it)| (cost(it), *key));
            let Some(key) = longest.map(|it| it.0.clone()) else { return };
            self.close(&key, Closed::NamespaceRules, draft);
        }
    }

    fn close(&mut self, key: &Key, why: Closed, draft: &mut Draft) {
        let Some(mut installed) = self.policies.get_mut(key).and_then(|it| it.installed.take()) else { return };
        self.shared.release(&key.namespace, &installed.wanted, &mut self.elements);
        installed.wanted.closed();
        installed.closed = installed.closed.or(Some(why));
        draft.told.insert(key.clone());
        draft.closings.insert(key.clone());
        self.write(key, installed, draft);
    }

    /// Says what differs between the chains of a policy and those that it now has.
    fn write(&mut self, key: &Key, mut installed: InstalledPolicy, draft: &mut Draft) {
        let Some(entry) = self.policies.get_mut(key) else { return };
        let chains = installed.wanted.chains(&entry.named(key), &self.shared);
        let before = std::mem::replace(&mut installed.chains, chains);
        for (name, rules) in installed.chains.iter().filter(|it| before.get(it.0) != Some(it.1)) {
            draft.gone_chains.remove(name);
            draft.chains.insert(name.clone(), rules.clone());
        }
        for name in before.into_keys().filter(|it| !installed.chains.contains_key(it)) {
            drop_chain(name, draft);
        }
        if matches!(installed.closed, Some(Closed::Room | Closed::NamespaceRules)) {
            self.roomless.insert(key.clone());
        } else {
            self.roomless.remove(key);
        }
        entry.installed = Some(installed);
    }

    fn give_up(&mut self, key: &Key, installed: Option<InstalledPolicy>, draft: &mut Draft) {
        let Some(installed) = installed else { return };
        self.shared.release(&key.namespace, &installed.wanted, &mut self.elements);
        self.roomless.remove(key);
        installed.chains.into_keys().for_each(|it| drop_chain(it, draft));
    }
}

/// A chain that this same step has put in, or has written anew, goes, too.
fn drop_chain(name: String, draft: &mut Draft) {
    draft.chains.remove(&name);
    draft.gone_chains.insert(name);
}
