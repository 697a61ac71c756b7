//! The rules, written down as plainly as they are.

mod scores;
mod victims;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

pub(super) const APPS: &[&str] = &["web", "db"];
pub(super) const IMAGES: &[(&str, i64)] = &[("small:1", 1 << 20), ("large:1", 3 << 28), ("huge:1", 3 << 30)];
pub(super) use volumes::{Claim, Place, State, Storage, Volume};

const HOSTNAME: &str = "kubernetes.io/hostname";

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) zone: Option<&'static str>,
    pub(super) cpu_millis: i64,
    pub(super) memory_mib: i64,
    pub(super) pods_max: usize,
    /// The effect of its taint, if it has one.
    pub(super) taint: &'static str,
    pub(super) is_cordoned: bool,
    pub(super) images: BTreeSet<usize>,
    /// Its label `cores`.
    pub(super) cores: i64,
    /// It declares that it can do what some pods need.
    pub(super) has_feature: bool,
    pub(super) n_devices: usize,
    /// How many volumes it takes, where there is a limit; nothing at all: it does not have the driver.
    pub(super) volumes_max: Option<Option<usize>>,
}

#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) namespace: &'static str,
    pub(super) app: &'static str,
    /// 0: it asks for none.
    pub(super) cpu_millis: i64,
    pub(super) memory_mib: i64,
    pub(super) priority: i32,
    /// At this minute.
    pub(super) started: i64,
    pub(super) has_port: bool,
    pub(super) tolerates: bool,
    pub(super) zone: Option<&'static str>,
    /// One of these must hold, where there are any.
    pub(super) required: Vec<Requirement>,
    pub(super) prefers: Option<(&'static str, i64)>,
    pub(super) image: Option<usize>,
    pub(super) terms: Vec<Term>,
    pub(super) spread: Option<Spread>,
    pub(super) needs_feature: bool,
    /// Some of the claims for volumes there are.
    pub(super) claims: Vec<usize>,
    pub(super) devices: Devices,
    pub(super) node: Option<usize>,
}

/// What a node must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Requirement {
    InZone(&'static str),
    NotInZone(&'static str),
    HasZone,
    HasNoZone,
    MoreCores(i64),
    FewerCores(i64),
    Named(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Devices {
    None,
    /// So many of any node.
    Own(usize),
    /// One that it has been given already, of this node.
    At(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Budget {
    pub(super) namespace: &'static str,
    pub(super) app: &'static str,
    pub(super) allowed: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) is_anti: bool,
    /// None: it is required.
    pub(super) weight: Option<i64>,
    pub(super) key: &'static str,
    pub(super) app: &'static str,
    pub(super) company: Company,
}

/// The namespaces of a term.
#[derive(Clone, Copy, Debug)]
pub(super) enum Company {
    Own,
    Named(&'static str),
    Team(&'static str),
    All,
}

#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) is_hard: bool,
    pub(super) key: &'static str,
    pub(super) max_skew: i64,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) pods: Vec<Pod>,
    /// A Service of the first app, in the namespace default.
    pub(super) has_service: bool,
    pub(super) budgets: Vec<Budget>,
    pub(super) storage: Storage,
    /// Pods for which room is kept on the node that they have here.
    pub(super) nominated: Vec<Pod>,
    /// All pods whose claims for devices have theirs, those that leave among them.
    pub(super) given: Vec<Pod>,
}

impl Term {
    fn matches(&self, owner: &Pod, other: &Pod) -> bool {
        let team = if other.namespace == "other" { "red" } else { "blue" };
        let is_near = match self.company {
            Company::Own => owner.namespace == other.namespace,
            Company::Named(name) => name == other.namespace,
            Company::Team(name) => name == team,
            Company::All => true,
        };
        is_near && self.app == other.app
    }

    fn is(&self, is_anti: bool, is_required: bool) -> bool {
        self.is_anti == is_anti && self.weight.is_none() == is_required
    }
}

impl World {
    fn on(&self, node: usize) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(move |it| it.node == Some(node))
    }

    fn label(&self, node: usize, key: &str) -> Option<String> {
        match key {
            HOSTNAME => Some(format!("n{node}")),
            _ => self.nodes[node].zone.map(str::to_owned),
        }
    }

    fn same(&self, key: &str, one: usize, other: usize) -> bool {
        self.label(one, key).is_some() && self.label(one, key) == self.label(other, key)
    }

    fn holds(&self, requirement: Requirement, idx: usize) -> bool {
        let node = &self.nodes[idx];
        match requirement {
            Requirement::InZone(zone) => node.zone == Some(zone),
            Requirement::NotInZone(zone) => node.zone != Some(zone),
            Requirement::HasZone => node.zone.is_some(),
            Requirement::HasNoZone => node.zone.is_none(),
            Requirement::MoreCores(cores) => node.cores > cores,
            Requirement::FewerCores(cores) => node.cores < cores,
            Requirement::Named(named) => named == idx,
        }
    }

    /// May the pod run there by its node selector and affinity?
    fn selects(&self, pod: &Pod, idx: usize) -> bool {
        (pod.zone.is_none() || pod.zone == self.nodes[idx].zone)
            && (pod.required.is_empty() || pod.required.iter().any(|it| self.holds(*it, idx)))
    }

    /// Does the pod name all nodes that it may run on, and not this one?
    fn is_unnamed(pod: &Pod, idx: usize) -> bool {
        !pod.required.is_empty()
            && pod.required.iter().all(|it| matches!(it, Requirement::Named(named) if *named != idx))
    }

    /// Why the pod cannot run there, and whether that stays so whoever leaves the node. Pods that are as important and nominated to
    /// the node may come there or not.
    fn rejection(&self, pod: &Pod, idx: usize) -> Option<(Vec<&'static str>, bool)> {
        let goes_before = |it: &&Pod| it.node == Some(idx) && it.priority >= pod.priority;
        let mut with = self.clone();
        with.pods.extend(self.nominated.iter().filter(goes_before).cloned());
        with.rejection_by_placed(pod, idx).or_else(|| self.rejection_by_placed(pod, idx))
    }

    fn rejection_by_placed(&self, pod: &Pod, idx: usize) -> Option<(Vec<&'static str>, bool)> {
        let node = &self.nodes[idx];
        if Self::is_unnamed(pod, idx) {
            return Some((vec!["node(s) didn't satisfy plugin(s) [NodeAffinity]"], true));
        }
        if node.is_cordoned {
            return Some((vec!["node(s) were unschedulable"], true));
        }
        if node.taint == "NoSchedule" && !pod.tolerates {
            return Some((vec!["node(s) had untolerated taint(s)"], true));
        }
        if !self.selects(pod, idx) {
            return Some((vec!["node(s) didn't match Pod's node affinity/selector"], true));
        }
        if pod.has_port && self.on(idx).any(|it| it.has_port) {
            return Some((vec!["node(s) didn't have free ports for the requested pod ports"], false));
        }
        let of_features =
            || (pod.needs_feature && !node.has_feature).then(|| vec!["node(s) didn't match Pod's required features"]);
        self.lacks(pod, idx)
            .or_else(|| self.volume_rejection(pod, idx))
            .or_else(|| self.spread_rejection(pod, idx))
            .or_else(|| self.affinity_rejection(pod, idx))
            .or_else(|| self.device_rejection(pod, idx).map(|it| (vec![it], true)))
            .or_else(|| of_features().map(|it| (it, true)))
    }

    /// Who leaves keeps the devices that its claim was given.
    fn device_rejection(&self, pod: &Pod, idx: usize) -> Option<&'static str> {
        let given = |it: &Pod| match it.devices {
            Devices::None => 0,
            Devices::Own(count) => {
                if it.node == Some(idx) {
                    count
                } else {
                    0
                }
            }
            Devices::At(node) => usize::from(node == idx),
        };
        match pod.devices {
            Devices::None => None,
            Devices::At(node) => (node != idx).then_some("resourceclaim not available on the node"),
            Devices::Own(count) => {
                let taken: usize = self.given.iter().map(given).sum();
                (count + taken > self.nodes[idx].n_devices).then_some("cannot allocate all claims")
            }
        }
    }

    fn lacks(&self, pod: &Pod, idx: usize) -> Option<(Vec<&'static str>, bool)> {
        let node = &self.nodes[idx];
        let (mut reasons, mut is_final) = (Vec::new(), false);
        if self.on(idx).count() + 1 > node.pods_max {
            reasons.push("Too many pods");
        }
        let cpu: i64 = self.on(idx).map(|it| it.cpu_millis).sum();
        if pod.cpu_millis > 0 && pod.cpu_millis > node.cpu_millis - cpu {
            reasons.push("Insufficient cpu");
            is_final |= pod.cpu_millis > node.cpu_millis;
        }
        let memory: i64 = self.on(idx).map(|it| it.memory_mib).sum();
        if pod.memory_mib > 0 && pod.memory_mib > node.memory_mib - memory {
            reasons.push("Insufficient memory");
            is_final |= pod.memory_mib > node.memory_mib;
        }
        (!reasons.is_empty()).then_some((reasons, is_final))
    }

    /// Those of the pod's own kind on a node.
    fn n_like(&self, pod: &Pod, node: usize) -> i64 {
        self.on(node).map(|it| i64::from(it.namespace == pod.namespace && it.app == pod.app)).sum()
    }

    fn spread_rejection(&self, pod: &Pod, idx: usize) -> Option<(Vec<&'static str>, bool)> {
        let spread = pod.spread.as_ref().filter(|it| it.is_hard)?;
        let Some(here) = self.label(idx, spread.key) else {
            return Some((vec!["node(s) didn't match pod topology spread constraints (missing required label)"], true));
        };
        let mut domains: BTreeMap<String, i64> = BTreeMap::new();
        for node in (0..self.nodes.len()).filter(|it| self.selects(pod, *it)) {
            if let Some(domain) = self.label(node, spread.key) {
                *domains.entry(domain).or_default() += self.n_like(pod, node);
            }
        }
        let fewest = domains.values().min().copied().unwrap_or(0);
        let skew = domains.get(&here).copied().unwrap_or(0) + 1 - fewest;
        (skew > spread.max_skew).then_some((vec!["node(s) didn't match pod topology spread constraints"], false))
    }

    fn affinity_rejection(&self, pod: &Pod, idx: usize) -> Option<(Vec<&'static str>, bool)> {
        let placed = || self.pods.iter().filter_map(|it| Some((it, it.node?)));
        let wanted: Vec<&Term> = pod.terms.iter().filter(|it| it.is(false, true)).collect();
        // A pod that matches all terms counts for each of them, where its node has the label.
        let matching = || placed().filter(|(other, _)| wanted.iter().all(|it| it.matches(pod, other)));
        let is_met = |term: &&&Term| matching().any(|(_, node)| self.same(term.key, node, idx));
        let has_labels = wanted.iter().all(|it| self.label(idx, it.key).is_some());
        let any_counted = matching().any(|(_, node)| wanted.iter().any(|it| self.label(node, it.key).is_some()));
        let is_first = !any_counted && wanted.iter().all(|it| it.matches(pod, pod));
        if !wanted.is_empty() && !(has_labels && (wanted.iter().all(|it| is_met(&it)) || is_first)) {
            return Some((vec!["node(s) didn't match pod affinity rules"], true));
        }
        let mut unwanted = pod.terms.iter().filter(|it| it.is(true, true));
        if unwanted.any(|term| placed().any(|(it, node)| term.matches(pod, it) && self.same(term.key, node, idx))) {
            return Some((vec!["node(s) didn't match pod anti-affinity rules"], false));
        }
        let repels = |(other, node): (&Pod, usize)| {
            other.terms.iter().any(|it| it.is(true, true) && it.matches(other, pod) && self.same(it.key, node, idx))
        };
        placed().any(repels).then_some((vec!["node(s) didn't satisfy existing pods anti-affinity rules"], false))
    }

    pub(super) fn message(&self, pod: &Pod) -> String {
        if let Some(refusal) = self.refusal(pod) {
            return format!("0/{} nodes are available: {refusal}.", self.nodes.len());
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (reasons, _) in (0..self.nodes.len()).filter_map(|it| self.rejection(pod, it)) {
            reasons.into_iter().for_each(|it| *counts.entry(it).or_default() += 1);
        }
        let mut reasons: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        reasons.sort();
        format!("0/{} nodes are available: {}.", self.nodes.len(), reasons.join(", "))
    }
}

#[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
fn float(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, reason = "cut off, as upstream does it")]
fn whole(number: f64) -> i64 {
    number as i64
}
