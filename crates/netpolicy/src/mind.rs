//! The mind: what a batch of news changes in the kernel, and what there is to say of it.

mod laying;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::Key;
use corten_reconcile::{Decision, Wait};

use crate::{
    base_chains::{self, PodMatch},
    compiled,
    elements::Elements,
    pod_sandbox::PodSandbox,
    pods::{Dirty, Pods},
    projections::{Namespace, NetworkPolicy, Pod},
    room::{NAMESPACE_RULES_MAX, ROOM},
    rules::{Change, Direction, ElementKey, Family, Rule, Set, Term, Value},
    shared::{Group, Member, Shared},
};
use laying::Entry;

/// The loop's name in journals.
pub const NAME: &str = "network-policy";
/// How many Pods a decision names.
const NAMES_MAX: usize = 10;

#[derive(Clone, Debug)]
pub enum Event {
    Pod(Box<Pod>),
    PodGone(Key),
    Namespace(Box<Namespace>),
    NamespaceGone(String),
    Policy(Box<NetworkPolicy>),
    PolicyGone(Key),
    /// A sandbox of this node has an address.
    Plugged(PodSandbox),
    /// It has none any more.
    Unplugged(String),
    /// Time has passed: a policy that there was no room for is tried again.
    Look,
}

/// What one batch of news leads to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// To be done at once, or not at all.
    pub changes: Vec<Change>,
    /// The sandboxes whose policies hold once that is done.
    pub laid: BTreeSet<String>,
    pub decisions: Vec<(Key, Decision)>,
    pub forgotten: Vec<Key>,
}

/// How an address of a Pod of this node is led: for each direction the policies that isolate it, if any.
#[derive(PartialEq, Eq)]
struct Led {
    sandbox: String,
    /// Nothing gets through: it is not known yet, or no more, what may.
    is_closed: bool,
    groups: BTreeMap<Direction, Option<Group>>,
    policies: BTreeSet<Key>,
}

/// What a step changes beside elements.
#[derive(Default)]
struct Draft {
    sets: BTreeSet<Set>,
    chains: BTreeMap<String, Vec<Rule>>,
    gone_chains: BTreeSet<String>,
    laid: BTreeSet<String>,
    /// Policies that are new, or say something else.
    changed: BTreeSet<Key>,
    /// Those that isolate others than before.
    moved: BTreeSet<Key>,
    /// Those of which there is something new to say.
    told: BTreeSet<Key>,
    /// Those that are closed now, or are no more.
    closings: BTreeSet<Key>,
    forgotten: Vec<Key>,
    /// Those of all Pods, in their order, once somebody has asked.
    addresses: Option<Vec<Vec<IpAddr>>>,
}

/// The mind. See the crate's documentation.
#[derive(Default)]
pub struct NetworkPolicies {
    node_name: String,
    pod_match: PodMatch,
    pods: Pods,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    policies: BTreeMap<Key, Entry>,
    /// The policies that there is no room for, and the one that was tried last.
    roomless: BTreeSet<Key>,
    tried: Key,
    /// How much the policies of one namespace may hold.
    room: usize,
    /// How many packet rules they may become.
    rules_max: usize,
    shared: Shared,
    elements: Elements,
    led: BTreeMap<IpAddr, Led>,
}

impl NetworkPolicies {
    pub fn new(node_name: &str) -> Self {
        let pods = Pods::new(node_name);
        Self { node_name: node_name.to_owned(), pods, room: ROOM, rules_max: NAMESPACE_RULES_MAX, ..Self::default() }
    }

    /// Pods' packets are known by this.
    #[must_use]
    pub fn with_pod_match(self, pod_match: PodMatch) -> Self {
        Self { pod_match, ..self }
    }

    /// Does it know the Pod that its node calls so?
    pub fn knows(&self, plugged: &PodSandbox) -> bool {
        self.pods.knows(&plugged.id())
    }

    /// The sandboxes it was told of.
    pub fn plugged(&self) -> &BTreeMap<String, PodSandbox> {
        self.pods.plugged()
    }

    /// How many policies it knows, and how many elements its sets hold: for logs.
    pub fn counts(&self) -> (usize, usize) {
        (self.policies.len(), self.elements.n_elements())
    }

    /// Takes a batch of news in.
    pub fn step(&mut self, events: impl IntoIterator<Item = Event>) -> Step {
        let (mut dirty, mut draft) = (Dirty::default(), Draft::default());
        let mut policies: BTreeMap<Key, Option<Box<NetworkPolicy>>> = BTreeMap::new();
        let mut is_look = false;
        for event in events {
            is_look |= matches!(event, Event::Look);
            self.take_in(event, &mut dirty, &mut policies);
        }
        for (key, policy) in policies {
            self.set_policy(key, policy, &mut dirty, &mut draft);
        }
        for address in &dirty.addresses {
            self.lead(*address, &mut draft);
        }
        self.place(&mut dirty);
        self.lay_what_isolates(&mut draft);
        if is_look {
            self.try_again(&mut draft);
        }
        self.lead_past_closed(&mut draft);
        self.finish(draft)
    }

    /// Everything, for a kernel that holds whatever it holds: at the start, and after a transaction that failed. What goes on is
    /// not interrupted: it is one transaction, too, and what it lets through is remembered by the kernel beside the table.
    pub fn whole(&self) -> Vec<Change> {
        let mut chains: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
        for installed in self.policies.values().filter_map(|it| it.installed.as_ref()) {
            chains.extend(installed.chains.iter().map(|(name, rules)| (name.clone(), rules.clone())));
        }
        chains.extend(self.shared.groups.iter().map(|(group, number)| (group_chain(number), group_rules(group))));
        let mut changes = base_chains::changes(self.pod_match);
        changes.extend(self.shared.sets().into_iter().map(Change::Set));
        changes.extend(made(&chains));
        changes.extend(self.elements.all());
        changes
    }

    /// All sandboxes whose policies hold once [`NetworkPolicies::whole`] is done.
    pub fn laid(&self) -> BTreeSet<String> {
        self.led.values().filter(|it| !it.is_closed).map(|it| it.sandbox.clone()).collect()
    }

    /// What there is to say of every policy.
    pub fn decisions(&self) -> Vec<(Key, Decision)> {
        self.policies.iter().map(|(key, entry)| (key.clone(), self.decision(key, entry))).collect()
    }

    fn take_in(&mut self, event: Event, dirty: &mut Dirty, policies: &mut BTreeMap<Key, Option<Box<NetworkPolicy>>>) {
        match event {
            Event::Pod(pod) => self.pods.set(pod, dirty),
            Event::PodGone(key) => self.pods.remove(&key, dirty),
            Event::Namespace(namespace) => {
                let (name, labels) = (namespace.metadata.name, namespace.metadata.labels);
                if self.namespaces.get(&name) != Some(&labels) {
                    self.pods.mark_namespace(&name, dirty);
                    self.namespaces.insert(name, labels);
                }
            }
            Event::NamespaceGone(name) => {
                if self.namespaces.remove(&name).is_some() {
                    self.pods.mark_namespace(&name, dirty);
                }
            }
            Event::Policy(policy) => drop(policies.insert(policy.metadata.key(), Some(policy))),
            Event::PolicyGone(key) => drop(policies.insert(key, None)),
            Event::Plugged(plugged) => self.pods.plug(plugged, dirty),
            Event::Unplugged(sandbox) => self.pods.unplug(&sandbox, dirty),
            Event::Look => {}
        }
    }

    /// Finds anew in which sets Pods stand.
    fn place(&mut self, dirty: &mut Dirty) {
        for entry in std::mem::take(&mut dirty.gone) {
            for (set, key) in entry.places {
                self.elements.release(set, key);
                self.shared.rooms.shrink(set);
            }
        }
        for uid in &dirty.uids {
            let Some(places) = self.member(uid, |it| self.shared.places(&it)) else { continue };
            let Some(entry) = self.pods.entry_mut(uid) else { continue };
            let before = std::mem::replace(&mut entry.places, places);
            for (set, key) in entry.places.difference(&before) {
                self.elements.claim(*set, *key, Value::Nothing);
                self.shared.rooms.grow(*set);
            }
            for (set, key) in before.difference(&entry.places) {
                self.elements.release(*set, *key);
                self.shared.rooms.shrink(*set);
            }
        }
    }

    /// Asks about a Pod as peers see it.
    fn member<T>(&self, uid: &str, ask: impl FnOnce(Member<'_>) -> T) -> Option<T> {
        let pod = &self.pods.entry(uid)?.pod;
        let addresses = self.pods.addresses(uid);
        Some(ask(Member { pod, addresses: &addresses, namespaces: &self.namespaces }))
    }

    /// Leads an address of this node to the policies that isolate whoever has it.
    fn lead(&mut self, address: IpAddr, draft: &mut Draft) {
        let now = self.pods.owner(address).and_then(|it| self.led(it));
        let (before, family) = (self.led.remove(&address), Family::of(address));
        for (direction, group) in now.iter().flat_map(|it| &it.groups) {
            let value = group.as_ref().map_or(Value::Accept, |it| Value::Goto(self.acquire_group(it, draft)));
            let place = (Set::Groups(*direction, family), ElementKey::Address(address));
            if before.is_some() {
                self.elements.release(place.0, place.1);
            }
            self.elements.claim(place.0, place.1, value);
        }
        let itself = (Set::Itself(family), ElementKey::Pair(address));
        match (&before, &now) {
            (None, Some(_)) => self.elements.claim(itself.0, itself.1, Value::Nothing),
            (Some(before), None) => {
                self.elements.release(itself.0, itself.1);
                for direction in before.groups.keys() {
                    self.elements.release(Set::Groups(*direction, family), ElementKey::Address(address));
                }
            }
            _ => {}
        }
        for group in before.iter().flat_map(|it| it.groups.values().flatten()) {
            self.shared.groups.release(group);
        }
        if before != now {
            self.count_isolated(before.as_ref(), now.as_ref(), draft);
        }
        if let Some(now) = now {
            if !now.is_closed {
                draft.laid.insert(now.sandbox.clone());
            }
            self.led.insert(address, now);
        }
    }

    /// Of a Pod that nobody has told of nothing gets through: its address leads nowhere, or where that does not suffice to no policy.
    fn led(&self, plugged: &PodSandbox) -> Option<Led> {
        let sandbox = plugged.sandbox.clone();
        if !self.pods.knows(&plugged.id()) {
            let groups = Direction::BOTH.map(|it| (it, Some((it, BTreeSet::new())))).into();
            let closed = Led { sandbox, is_closed: true, groups, policies: BTreeSet::new() };
            return (self.pod_match == PodMatch::Addresses).then_some(closed);
        }
        let labels = self.pods.entry(&plugged.id()).map(|it| &it.pod.metadata.labels);
        let selects = |it: &Entry| labels.is_some_and(|labels| it.selector.matches(labels));
        let isolating: Vec<_> = self.of_namespace(&plugged.pod.namespace).filter(|it| selects(it.1)).collect();
        let group = |direction| {
            let is_isolated = isolating.iter().any(|(_, it)| it.isolates(direction));
            let chains = || isolating.iter().filter_map(|(key, it)| it.chain(key, direction)).collect();
            (direction, is_isolated.then(|| (direction, chains())))
        };
        Some(Led {
            sandbox,
            is_closed: false,
            groups: Direction::BOTH.map(group).into(),
            policies: isolating.into_iter().map(|it| it.0.clone()).collect(),
        })
    }

    fn of_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Entry)> {
        self.policies.range(Key::new(namespace, "")..).take_while(move |(key, _)| key.namespace == namespace)
    }

    /// The chain of a group, made where there is none yet.
    fn acquire_group(&mut self, group: &Group, draft: &mut Draft) -> String {
        let (number, is_new) = self.shared.groups.acquire(group);
        if is_new {
            draft.chains.insert(group_chain(number), group_rules(group));
        }
        group_chain(number)
    }

    /// Gives back what nobody names any more, and says what differs.
    fn finish(&mut self, draft: Draft) -> Step {
        let Draft { mut sets, mut chains, mut gone_chains, laid, told, forgotten, .. } = draft;
        for number in self.shared.groups.settle().into_keys() {
            // What has come and gone within this step the kernel never sees.
            if chains.remove(&group_chain(number)).is_none() {
                gone_chains.insert(group_chain(number));
            }
        }
        self.shared.policies.settle();
        let gone_sets = self.shared.settle();
        self.give_up_places(&gone_sets);
        // The kernel never sees what was tried in vain.
        let unseen: Vec<Set> = sets.intersection(&gone_sets).copied().collect();
        sets.retain(|it| !gone_sets.contains(it));
        let mut changes: Vec<Change> = sets.into_iter().map(Change::Set).collect();
        changes.extend(made(&chains));
        let (out, put) = self.elements.difference(|it| gone_sets.contains(&it));
        changes.extend(out.into_iter().chain(put));
        // First emptied, since they name each other.
        changes.extend(gone_chains.iter().cloned().map(Change::Chain));
        changes.extend(gone_chains.into_iter().map(Change::DropChain));
        changes.extend(gone_sets.into_iter().filter(|it| !unseen.contains(it)).map(Change::DropSet));
        let told = told.into_iter().filter_map(|key| {
            let decision = self.decision(&key, self.policies.get(&key)?);
            Some((key, decision))
        });
        Step { changes, laid, decisions: told.collect(), forgotten }
    }

    fn give_up_places(&mut self, gone: &BTreeSet<Set>) {
        if gone.is_empty() {
            return;
        }
        for entry in self.pods.entries_mut() {
            let lost: Vec<_> = entry.places.iter().filter(|it| gone.contains(&it.0)).copied().collect();
            for (set, key) in lost {
                entry.places.remove(&(set, key));
                self.elements.release(set, key);
            }
        }
    }

    fn decision(&self, key: &Key, entry: &Entry) -> Decision {
        let labels = |it: &PodSandbox| self.pods.entry(&it.id()).map(|it| &it.pod.metadata.labels);
        let is_selected = |it: &&PodSandbox| {
            it.pod.namespace == key.namespace && labels(it).is_some_and(|it| entry.selector.matches(it))
        };
        let mut names: Vec<&str> = self.pods.plugged().values().filter(is_selected).map(|it| &*it.pod.name).collect();
        names.sort_unstable();
        let directions = compiled::directions(&entry.policy).into_iter().map(Direction::word);
        let effect = format!(
            "isolates {} on node {} ({})",
            named(&names),
            self.node_name,
            directions.collect::<Vec<_>>().join(", ")
        );
        let waits: Vec<Wait> = entry.closed().map(|it| it.wait(&key.namespace, &self.node_name)).into_iter().collect();
        Decision { by: NAME.to_owned(), effects: vec![effect], waits, ..Decision::default() }
    }
}

/// `2 pods: a, b`
fn named(names: &[&str]) -> String {
    match names {
        [] => "no pod".to_owned(),
        [one] => format!("1 pod: {one}"),
        many => {
            let shown = many.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
            let more = many.len().saturating_sub(NAMES_MAX);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} pods: {shown}{rest}", many.len())
        }
    }
}

fn group_chain(number: u32) -> String {
    format!("group/{number}")
}

/// Whoever is isolated by several policies is reached by what any of them allows.
fn group_rules((_, chains): &Group) -> Vec<Rule> {
    let jumps = chains.iter().map(|it| vec![Term::Jump(it.clone())]);
    jumps.chain([vec![Term::Drop]]).collect()
}

/// First all chains, since they name each other, then what is in them.
fn made(chains: &BTreeMap<String, Vec<Rule>>) -> Vec<Change> {
    let all = chains.keys().cloned().map(Change::Chain);
    let rules = chains.iter().flat_map(|(name, rules)| rules.iter().map(|it| Change::Rule(name.clone(), it.clone())));
    all.chain(rules).collect()
}
