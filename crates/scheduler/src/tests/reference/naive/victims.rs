//! Who leaves which node for a pod that fits nowhere.

use std::collections::BTreeSet;

use super::{Pod, World};

impl World {
    /// Of each node that is as cheap as any, the victims.
    pub(in super::super) fn cheapest_victims(&self, pod: &Pod) -> Vec<Vec<(String, String)>> {
        if self.refusal(pod).is_some() {
            return Vec::new();
        }
        let resolvable = (0..self.nodes.len()).filter(|it| self.rejection(pod, *it).is_some_and(|it| !it.1));
        let candidates: Vec<(usize, Vec<&Pod>, usize)> = resolvable
            .map(|it| (it, self.victims(pod, it)))
            .filter(|it| !it.1.0.is_empty())
            .map(|(node, (victims, n_violations))| (node, victims, n_violations))
            .collect();
        let cost = |(_, victims, n_violations): &(usize, Vec<&Pod>, usize)| {
            let highest = victims.iter().map(|it| it.priority).max().expect("there are victims");
            let sum: i64 = victims.iter().map(|it| i64::from(it.priority) + (1 << 31)).sum();
            let earliest = victims.iter().filter(|it| it.priority == highest).map(|it| it.started).min();
            (*n_violations, highest, sum, victims.len(), std::cmp::Reverse(earliest))
        };
        let least = candidates.iter().map(cost).min();
        let cheapest = candidates.iter().filter(|it| Some(cost(it)) == least);
        let named = |(node, victims, _): &(usize, Vec<&Pod>, usize)| {
            let mut named: Vec<_> = victims.iter().map(|it| (format!("n{node}"), it.name.clone())).collect();
            named.sort();
            named
        };
        cheapest.map(named).collect()
    }

    /// Those that leave the node, and how many of them a budget would keep.
    fn victims(&self, pod: &Pod, idx: usize) -> (Vec<&Pod>, usize) {
        let mut lower: Vec<&Pod> = self.on(idx).filter(|it| it.priority < pod.priority).collect();
        lower.sort_by_key(|it| (std::cmp::Reverse(it.priority), it.started, it.namespace, it.name.clone()));
        let without = |gone: &[&Pod]| {
            let stays = |it: &&Pod| !gone.iter().any(|gone| gone.name == it.name);
            Self { pods: self.pods.iter().filter(stays).cloned().collect(), ..self.clone() }
        };
        let mut gone = lower.clone();
        if without(&gone).rejection(pod, idx).is_some() {
            return (Vec::new(), 0);
        }
        let kept = self.kept_by_budgets(&lower);
        let (first, then): (Vec<&Pod>, Vec<&Pod>) = lower.iter().partition(|it| kept.contains(&it.name));
        for pod_back in first.into_iter().chain(then) {
            let rest: Vec<&Pod> = gone.iter().copied().filter(|it| it.name != pod_back.name).collect();
            if without(&rest).rejection(pod, idx).is_none() {
                gone = rest;
            }
        }
        let n_violations = gone.iter().filter(|it| kept.contains(&it.name)).count();
        (gone, n_violations)
    }

    /// Those that a budget would not let go after those before them.
    fn kept_by_budgets(&self, pods: &[&Pod]) -> BTreeSet<String> {
        let mut left: Vec<i64> = self.budgets.iter().map(|it| it.allowed).collect();
        let mut kept = BTreeSet::new();
        for pod in pods {
            for (budget, left) in self.budgets.iter().zip(&mut left) {
                if budget.namespace == pod.namespace && budget.app == pod.app {
                    *left -= 1;
                    if *left < 0 {
                        kept.insert(pod.name.clone());
                    }
                }
            }
        }
        kept
    }
}
