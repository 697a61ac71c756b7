//! What nodes score, each plugin's points over all nodes that can run the pod.

use std::collections::BTreeSet;

use super::{APPS, HOSTNAME, IMAGES, Pod, Term, World, float, whole};

impl World {
    /// Those that can run the pod and have the highest score.
    pub(in super::super) fn best_nodes(&self, pod: &Pod) -> Vec<usize> {
        let fits = |it: &usize| self.refusal(pod).is_none() && self.rejection(pod, *it).is_none();
        let feasible: Vec<usize> = (0..self.nodes.len()).filter(fits).collect();
        let columns = [
            (3, reversed(feasible.iter().map(|it| self.n_avoided(pod, *it)).collect())),
            (2, to_most(feasible.iter().map(|it| self.n_preferred(pod, *it)).collect())),
            (1, feasible.iter().map(|it| self.least_allocated(pod, *it)).collect()),
            (1, feasible.iter().map(|it| self.balanced(pod, *it)).collect()),
            (2, self.spread_scores(pod, &feasible)),
            (2, self.affinity_scores(pod, &feasible)),
            (1, feasible.iter().map(|it| self.locality(pod, *it)).collect()),
            (1, feasible.iter().map(|it| self.volume_score(pod, *it)).collect()),
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
        let may_run = |node: usize| self.selects(pod, node);
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
}

fn to_most(raw: Vec<i64>) -> Vec<i64> {
    let most = raw.iter().max().copied().unwrap_or(0);
    raw.into_iter().map(|it| if most == 0 { it } else { it * 100 / most }).collect()
}

fn reversed(raw: Vec<i64>) -> Vec<i64> {
    to_most(raw).into_iter().map(|it| 100 - it).collect()
}
