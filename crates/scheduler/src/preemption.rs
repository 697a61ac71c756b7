//! DefaultPreemption: which pods of lower priority leave which node, so that a pod which fits nowhere has its room.
//!
//! The steps are upstream's `Evaluator.Preempt` and `SelectVictimsOnNode`: on each node that pods turned it down from, all pods
//! of lower priority are taken away; if it fits then, they come back one after the other, the most important first, as long
//! as it still fits. Of the nodes, the one is chosen whose victims matter least.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
    sync::Arc,
};

use corten_meta::{Key, Time};

use crate::{
    PLUGINS, PodInfo, Snapshot,
    among::Among,
    budgets::Budgets,
    cycle::{Failure, Tally, first_rejection, nominated_before},
    entry::Entry,
    framework::{Reason, Rejection},
    profile::Profile,
    snapshot::Row,
    trial::Trial,
    victims::Unit,
};

/// A node, and the pods that must leave it.
pub(crate) struct Candidate {
    pub(crate) node_idx: usize,
    /// The most important first.
    pub(crate) victims: Vec<Victim>,
    pub(crate) n_violations: usize,
}

pub(crate) struct Victim {
    pub(crate) key: Key,
    pub(crate) priority: i32,
    pub(crate) start_time: Option<Time>,
}

/// Why there is no candidate.
pub(crate) struct NoCandidate {
    /// In upstream's words.
    pub(crate) message: String,
    /// A node without less important pods would still turn the pod down for what runs elsewhere.
    pub(crate) is_among: bool,
}

/// The candidate whose victims matter least.
pub(crate) fn cheapest(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().reduce(|best, it| if it.cost().is_better(&best.cost()) { it } else { best })
}

/// What preemption looks at.
pub(crate) struct Preemption<'a> {
    pub(crate) pod: &'a PodInfo,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) profile: &'a Profile,
    pub(crate) pods: &'a BTreeMap<Key, Entry>,
    pub(crate) budgets: &'a Budgets,
}

impl<'a> Preemption<'a> {
    /// The candidates among these nodes, looked at from `offset` on; or why there is none.
    pub(crate) fn find(&self, nodes: &[usize], offset: usize) -> Result<Vec<Candidate>, NoCandidate> {
        let n_wanted = self.n_wanted(nodes.len());
        let (mut candidates, mut tally, mut n_sound, mut is_among) = (Vec::new(), Tally::default(), 0, false);
        let mut among = None;
        for at in 0..nodes.len() {
            let idx = nodes[(at + offset) % nodes.len()];
            if !self.has_victims(idx) {
                tally.count(0, Reason::Text(NO_VICTIMS), 1);
                continue;
            }
            let among: &Among<'a> =
                among.get_or_insert_with(|| Among::of(self.pod, self.snapshot, &self.profile.arguments));
            let mut rejection = Rejection::default();
            match self.victims_on(idx, among.clone(), &mut rejection) {
                Err(plugin_idx) => {
                    is_among |= plugin_idx.is_some_and(|it| PLUGINS[it].filter_among.is_some());
                    tally.add(0, rejection.reasons());
                }
                Ok(candidate) => {
                    n_sound += usize::from(candidate.n_violations == 0);
                    candidates.push(candidate);
                    if n_sound > 0 && candidates.len() >= n_wanted {
                        break;
                    }
                }
            }
        }
        if candidates.is_empty() {
            return Err(NoCandidate { message: self.refusal(nodes.len(), tally), is_among });
        }
        Ok(candidates)
    }

    /// The plugin that would turn the node down without all pods there that matter less, too.
    pub(crate) fn rejected_without_lower(&self, idx: usize) -> Option<usize> {
        let row = self.snapshot.row_at(idx);
        let mut trial = Trial::new(self.pod, row, Among::of(self.pod, self.snapshot, &self.profile.arguments));
        self.lower(&row).for_each(|it| trial.remove(it));
        self.rejected_by(&row, &mut trial, &mut Rejection::default())
    }

    /// Does the pod not fit the node as it is, and would it without these?
    pub(crate) fn helps(&self, candidate: &Candidate) -> bool {
        let row = self.snapshot.row_at(candidate.node_idx);
        let mut trial = Trial::new(self.pod, row, Among::of(self.pod, self.snapshot, &self.profile.arguments));
        let mut rejection = Rejection::default();
        if self.rejected_by(&row, &mut trial, &mut rejection).is_none() {
            return false;
        }
        candidate.victims.iter().filter_map(|it| row.pods.get(&it.key)).for_each(|it| trial.remove(it));
        self.rejected_by(&row, &mut trial, &mut rejection).is_none()
    }

    fn lower(&self, row: &Row<'a>) -> impl Iterator<Item = &'a Arc<PodInfo>> {
        let groups = &self.snapshot.pod_groups;
        let priority = groups.priority_of(self.pod);
        row.pods.values().filter(move |it| groups.priority_of(it) < priority)
    }

    /// Of so many nodes at most it is asked whether it helps that others leave them: are there more with any that could?
    pub(crate) fn is_much_to_ask(&self, nodes: &[usize], n_max: usize) -> bool {
        nodes.iter().filter(|it| self.has_victims(**it)).nth(n_max).is_some()
    }

    /// Is a pod there that may be evicted for this one?
    fn has_victims(&self, idx: usize) -> bool {
        let groups = &self.snapshot.pod_groups;
        if groups.is_empty() {
            return self.snapshot.has_pods_below(idx, self.pod.priority);
        }
        self.snapshot.row_at(idx).pods.values().any(|it| groups.priority_of(it) < groups.priority_of(self.pod))
    }

    fn refusal(&self, n_looked_at: usize, mut tally: Tally<'_>) -> String {
        let n_nodes = self.snapshot.n_nodes();
        if n_looked_at < n_nodes {
            tally.count(0, Reason::Text("Preemption is not helpful for scheduling"), n_nodes - n_looked_at);
        }
        Failure::of(n_nodes, None, tally).message()
    }

    /// `GetOffsetAndNumCandidates`.
    fn n_wanted(&self, n_nodes: usize) -> usize {
        let arguments = &self.profile.arguments.preemption;
        (n_nodes * arguments.candidates_percent_min / 100).max(arguments.candidates_min).min(n_nodes)
    }

    /// The fewest that must leave the node, where that helps; else the plugin that still turns it down, with its reasons in
    /// `rejection`.
    fn victims_on(
        &self,
        idx: usize,
        among: Among<'a>,
        rejection: &mut Rejection<'a>,
    ) -> Result<Candidate, Option<usize>> {
        let row = self.snapshot.row_at(idx);
        let mut units = Unit::all(self.lower(&row), self.pods, &self.snapshot.pod_groups);
        units.sort_by(Unit::compare_importance);
        let here = |unit: &Unit| -> Vec<&'a Arc<PodInfo>> {
            unit.pods.iter().filter_map(|it| row.pods.get(&it.0.key)).collect()
        };
        let mut trial = Trial::new(self.pod, row, among);
        units.iter().flat_map(here).for_each(|it| trial.remove(it));
        if let Some(plugin_idx) = self.rejected_by(&row, &mut trial, rejection) {
            return Err(Some(plugin_idx));
        }
        let violations = Unit::violations(&units, self.budgets);
        let (mut victims, mut n_violations) = (Vec::new(), 0);
        for is_violating in [true, false] {
            let of_kind = units.iter().zip(&violations).filter(|it| (*it.1 > 0) == is_violating);
            for (unit, violations) in of_kind {
                here(unit).into_iter().for_each(|it| trial.add(it));
                if self.rejected_by(&row, &mut trial, rejection).is_some() {
                    here(unit).into_iter().for_each(|it| trial.remove(it));
                    victims.extend(unit.pods.iter().map(|it| self.victim(&it.0)));
                    n_violations += violations;
                }
            }
        }
        victims.sort_by(Victim::compare_importance);
        // It fits as the node is: what is there now is not what turned it down.
        if victims.is_empty() { Err(None) } else { Ok(Candidate { node_idx: idx, victims, n_violations }) }
    }

    /// With the pods that are nominated to the node and go before this one, and without them.
    fn rejected_by(&self, row: &Row<'a>, trial: &mut Trial<'a>, rejection: &mut Rejection<'a>) -> Option<usize> {
        let nominated: Vec<&'a Arc<PodInfo>> = nominated_before(self.pod, row, &self.snapshot.pod_groups).collect();
        if !nominated.is_empty() {
            nominated.iter().for_each(|it| trial.add(it));
            let rejected =
                first_rejection(self.pod, &trial.row(), &&trial.among, self.profile, &self.profile.filters, rejection);
            nominated.iter().for_each(|it| trial.remove(it));
            if rejected.is_some() {
                return rejected;
            }
        }
        first_rejection(self.pod, &trial.row(), &&trial.among, self.profile, &self.profile.filters, rejection)
    }

    fn victim(&self, pod: &PodInfo) -> Victim {
        let start_time = self.pods.get(&pod.key).and_then(|it| it.start_time);
        Victim { key: pod.key.clone(), priority: self.snapshot.pod_groups.priority_of(pod), start_time }
    }
}

pub(crate) const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

impl Victim {
    /// `MoreImportantPod`: the higher priority, then the longer run; one that has not started is the youngest.
    fn compare_importance(&self, other: &Self) -> Ordering {
        let rank = |it: &Self| (Reverse(it.priority), it.start_time.is_none(), it.start_time);
        rank(self).cmp(&rank(other)).then_with(|| self.key.cmp(&other.key))
    }
}

/// What a candidate costs, in the order in which candidates are compared (`pickOneNodeForPreemption`).
struct Cost {
    n_violations: usize,
    highest_priority: i32,
    sum_of_priorities: i64,
    n_victims: usize,
    /// When the first of the most important victims started: the later, the better. `None`: it has not.
    earliest_start: Option<Time>,
}

impl Candidate {
    fn cost(&self) -> Cost {
        let highest_priority = self.victims.iter().map(|it| it.priority).max().unwrap_or(i32::MIN);
        // Each priority is moved above zero, so that many pods of low priority cost more than few.
        let moved = |it: &Victim| i64::from(it.priority) + i64::from(i32::MAX) + 1;
        let highest = self.victims.iter().filter(|it| it.priority == highest_priority);
        Cost {
            n_violations: self.n_violations,
            highest_priority,
            sum_of_priorities: self.victims.iter().map(moved).sum(),
            n_victims: self.victims.len(),
            earliest_start: highest
                .min_by_key(|it| (it.start_time.is_none(), it.start_time))
                .and_then(|it| it.start_time),
        }
    }
}

impl Cost {
    fn is_better(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.n_violations, it.highest_priority, it.sum_of_priorities, it.n_victims);
        let is_later = match (self.earliest_start, other.earliest_start) {
            (Some(own), Some(other)) => own > other,
            (own, other) => own.is_none() && other.is_some(),
        };
        match rank(self).cmp(&rank(other)) {
            Ordering::Less => true,
            Ordering::Equal => is_later,
            Ordering::Greater => false,
        }
    }
}
