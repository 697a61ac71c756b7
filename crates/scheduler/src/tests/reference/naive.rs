//! The rules, written down as plainly as they are.

use std::collections::{BTreeMap, BTreeSet};

pub(super) const APPS: &[&str] = &["web", "db"];
pub(super) const IMAGES: &[(&str, i64)] = &[("small:1", 1 << 20), ("large:1", 3 << 28), ("huge:1", 3 << 30)];
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
    pub(super) prefers: Option<(&'static str, i64)>,
    pub(super) image: Option<usize>,
    pub(super) terms: Vec<Term>,
    pub(super) spread: Option<Spread>,
    pub(super) node: Option<usize>,
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

    /// Why the pod cannot run there, and whether that stays so whoever leaves the node.
    fn rejection(&self, pod: &Pod, idx: usize) -> Option<(Vec<&'static str>, bool)> {
        let node = &self.nodes[idx];
        if node.is_cordoned {
            return Some((vec!["node(s) were unschedulable"], true));
        }
        if node.taint == "NoSchedule" && !pod.tolerates {
            return Some((vec!["node(s) had untolerated taint(s)"], true));
        }
        if pod.zone.is_some() && pod.zone != node.zone {
            return Some((vec!["node(s) didn't match Pod's node affinity/selector"], true));
        }
        if pod.has_port && self.on(idx).any(|it| it.has_port) {
            return Some((vec!["node(s) didn't have free ports for the requested pod ports"], false));
        }
        self.lacks(pod, idx).or_else(|| self.spread_rejection(pod, idx)).or_else(|| self.affinity_rejection(pod, idx))
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
        for node in (0..self.nodes.len()).filter(|it| pod.zone.is_none() || pod.zone == self.nodes[*it].zone) {
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
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (reasons, _) in (0..self.nodes.len()).filter_map(|it| self.rejection(pod, it)) {
            reasons.into_iter().for_each(|it| *counts.entry(it).or_default() += 1);
        }
        let mut reasons: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        reasons.sort();
        format!("0/{} nodes are available: {}.", self.nodes.len(), reasons.join(", "))
    }

    /// Those that can run the pod and have the highest score.
    pub(super) fn best_nodes(&self, pod: &Pod) -> Vec<usize> {
        let feasible: Vec<usize> = (0..self.nodes.len()).filter(|it| self.rejection(pod, *it).is_none()).collect();
        let columns = [
            (3, reversed(feasible.iter().map(|it| self.n_avoided(pod, *it)).collect())),
            (2, to_most(feasible.iter().map(|it| self.n_preferred(pod, *it)).collect())),
            (1, feasible.iter().map(|it| self.least_allocated(pod, *it)).collect()),
            (1, feasible.iter().map(|it| self.balanced(pod, *it)).collect()),
            (2, self.spread_scores(pod, &feasible)),
            (2, self.affinity_scores(pod, &feasible)),
            (1, feasible.iter().map(|it| self.locality(pod, *it)).collect()),
        ];
        let total = |at: usize| columns.iter().map(|(weight, column)| weight * column[at]).sum::<i64>();
        let best = (0..feasible.len()).map(total).max();
        (0..feasible.len()).filter(|it| Some(total(*it)) == best).map(|it| feasible[it]).collect()
    }

    fn n_avoided(&self, pod: &Pod, idx: usize) -> i64 {
        i64::from(self.nodes[idx].taint == "PreferNoSchedule" && !pod.tolerates)
    }

    fn n_preferred(&self, pod: &Pod, idx: usize) -> i64 {
        pod.prefers.filter(|it| self.nodes[idx].zone == Some(it.0)).map_or(0, |it| it.1)
    }

    fn least_allocated(&self, pod: &Pod, idx: usize) -> i64 {
        let node = &self.nodes[idx];
        let cpu = |it: &Pod| if it.cpu_millis > 0 { it.cpu_millis } else { 100 };
        let memory = |it: &Pod| if it.memory_mib > 0 { it.memory_mib } else { 200 };
        let left = |used: i64, total: i64| if used > total { 0 } else { (total - used) * 100 / total };
        let cpus = self.on(idx).map(cpu).sum::<i64>() + cpu(pod);
        let memories = self.on(idx).map(memory).sum::<i64>() + memory(pod);
        (left(cpus, node.cpu_millis) + left(memories, node.memory_mib)) / 2
    }

    fn balanced(&self, pod: &Pod, idx: usize) -> i64 {
        if pod.cpu_millis == 0 && pod.memory_mib == 0 {
            return 0;
        }
        let node = &self.nodes[idx];
        let used = |extra: Option<&Pod>| {
            let pods: Vec<&Pod> = self.on(idx).chain(extra).collect();
            let cpu: i64 = pods.iter().map(|it| it.cpu_millis).sum();
            let memory: i64 = pods.iter().map(|it| it.memory_mib).sum();
            [(cpu, node.cpu_millis), (memory, node.memory_mib)]
        };
        // 100 where both are used to the same share, 50 where one is full and the other empty.
        let evenness = |used: [(i64, i64); 2]| {
            let [cpu, memory] = used.map(|(part, total)| if part > total { 1.0 } else { float(part) / float(total) });
            whole((1.0 - (cpu - memory).abs() / 2.0) * 100.0)
        };
        let improvement = evenness(used(Some(pod))) - evenness(used(None));
        50 + (50 + improvement) / 2
    }

    /// The pod's own constraint, or the system's for pods of the Service: with the key, how many more, and whether all must have
    /// the label.
    fn soft_constraints(&self, pod: &Pod) -> (Vec<(&'static str, i64)>, bool) {
        match &pod.spread {
            Some(it) if it.is_hard => (Vec::new(), true),
            Some(it) => (vec![(it.key, it.max_skew)], true),
            None if self.has_service && pod.namespace == "default" && pod.app == APPS[0] => {
                (vec![(HOSTNAME, 3), ("zone", 5)], false)
            }
            None => (Vec::new(), false),
        }
    }

    fn spread_scores(&self, pod: &Pod, feasible: &[usize]) -> Vec<i64> {
        let (constraints, needs_labels) = self.soft_constraints(pod);
        if constraints.is_empty() {
            return vec![0; feasible.len()];
        }
        let counts = |node: usize| !needs_labels || constraints.iter().all(|it| self.label(node, it.0).is_some());
        let counted: Vec<usize> = feasible.iter().copied().filter(|it| counts(*it)).collect();
        let may_run = |node: usize| pod.zone.is_none() || pod.zone == self.nodes[node].zone;
        let mut raw = Vec::new();
        for idx in feasible.iter().filter(|it| counted.contains(it)) {
            let mut sum = 0.0;
            for (key, max_skew) in &constraints {
                let Some(domain) = self.label(*idx, key) else { continue };
                let in_domain =
                    |it: &usize| self.label(*it, key).as_ref() == Some(&domain) && may_run(*it) && counts(*it);
                let (count, n_domains) = if *key == HOSTNAME {
                    (self.n_like(pod, *idx), counted.len())
                } else {
                    let domains: BTreeSet<Option<String>> = counted.iter().map(|it| self.label(*it, key)).collect();
                    let all = (0..self.nodes.len()).filter(in_domain);
                    (all.map(|it| self.n_like(pod, it)).sum(), domains.len())
                };
                let n_domains = i64::try_from(n_domains).expect("few");
                sum += float(count) * float(n_domains + 2).ln() + float(max_skew - 1);
            }
            raw.push((*idx, whole(sum.round())));
        }
        let least = raw.iter().map(|it| it.1).min().unwrap_or(0);
        let most = raw.iter().map(|it| it.1).max().unwrap_or(0);
        let score = |idx: &usize| match raw.iter().find(|it| it.0 == *idx) {
            None => 0,
            Some(_) if most == 0 => 100,
            Some((_, it)) => 100 * (most + least - it) / most,
        };
        feasible.iter().map(score).collect()
    }

    fn affinity_scores(&self, pod: &Pod, feasible: &[usize]) -> Vec<i64> {
        let pull = |idx: usize| -> i64 {
            let of = |owner: &Pod, other: &Pod, node: usize, hard: i64| -> i64 {
                let weight = |it: &Term| match (it.is_anti, it.weight) {
                    (false, None) => hard,
                    (true, None) => 0,
                    (false, Some(weight)) => weight,
                    (true, Some(weight)) => -weight,
                };
                let met = owner.terms.iter().filter(|it| it.matches(owner, other) && self.same(it.key, node, idx));
                met.map(weight).sum()
            };
            let placed = self.pods.iter().filter_map(|it| Some((it, it.node?)));
            placed.map(|(it, node)| of(pod, it, node, 0) + of(it, pod, node, 1)).sum()
        };
        let raw: Vec<i64> = feasible.iter().map(|it| pull(*it)).collect();
        let least = raw.iter().min().copied().unwrap_or(0);
        let range = raw.iter().max().copied().unwrap_or(0) - least;
        let score = |it: &i64| if range > 0 { whole(100.0 * (float(it - least) / float(range))) } else { 0 };
        raw.iter().map(score).collect()
    }

    fn locality(&self, pod: &Pod, idx: usize) -> i64 {
        let Some(image) = pod.image.filter(|it| self.nodes[idx].images.contains(it)) else { return 0 };
        let n_nodes = self.nodes.iter().filter(|it| it.images.contains(&image)).count();
        let count = |it: usize| float(i64::try_from(it).expect("few"));
        let sum = whole(float(IMAGES[image].1) * (count(n_nodes) / count(self.nodes.len())));
        let (least, most) = (23 << 20, 1000 << 20);
        100 * (sum.clamp(least, most) - least) / (most - least)
    }

    /// Of each node that is as cheap as any, the victims.
    pub(super) fn cheapest_victims(&self, pod: &Pod) -> Vec<Vec<(String, String)>> {
        let resolvable = (0..self.nodes.len()).filter(|it| self.rejection(pod, *it).is_some_and(|it| !it.1));
        let candidates: Vec<(usize, Vec<&Pod>)> =
            resolvable.map(|it| (it, self.victims(pod, it))).filter(|it| !it.1.is_empty()).collect();
        let cost = |victims: &[&Pod]| {
            let highest = victims.iter().map(|it| it.priority).max().expect("there are victims");
            let sum: i64 = victims.iter().map(|it| i64::from(it.priority) + (1 << 31)).sum();
            let earliest = victims.iter().filter(|it| it.priority == highest).map(|it| it.started).min();
            (highest, sum, victims.len(), std::cmp::Reverse(earliest))
        };
        let least = candidates.iter().map(|it| cost(&it.1)).min();
        let cheapest = candidates.iter().filter(|it| Some(cost(&it.1)) == least);
        let named = |(node, victims): &(usize, Vec<&Pod>)| {
            let mut named: Vec<_> = victims.iter().map(|it| (format!("n{node}"), it.name.clone())).collect();
            named.sort();
            named
        };
        cheapest.map(named).collect()
    }

    fn victims(&self, pod: &Pod, idx: usize) -> Vec<&Pod> {
        let mut lower: Vec<&Pod> = self.on(idx).filter(|it| it.priority < pod.priority).collect();
        lower.sort_by_key(|it| (std::cmp::Reverse(it.priority), it.started, it.namespace, it.name.clone()));
        let without = |gone: &[&Pod]| {
            let stays = |it: &&Pod| !gone.iter().any(|gone| gone.name == it.name);
            Self { pods: self.pods.iter().filter(stays).cloned().collect(), ..self.clone() }
        };
        let mut gone = lower.clone();
        if without(&gone).rejection(pod, idx).is_some() {
            return Vec::new();
        }
        for pod_back in lower {
            let rest: Vec<&Pod> = gone.iter().copied().filter(|it| it.name != pod_back.name).collect();
            if without(&rest).rejection(pod, idx).is_none() {
                gone = rest;
            }
        }
        gone
    }
}

fn to_most(raw: Vec<i64>) -> Vec<i64> {
    let most = raw.iter().max().copied().unwrap_or(0);
    raw.into_iter().map(|it| if most == 0 { it } else { it * 100 / most }).collect()
}

fn reversed(raw: Vec<i64>) -> Vec<i64> {
    to_most(raw).into_iter().map(|it| 100 - it).collect()
}

#[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
fn float(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, reason = "cut off, as upstream does it")]
fn whole(number: f64) -> i64 {
    number as i64
}
