//! Room for a gang: who must leave, on all nodes together, so that a gang which does not fit can be placed (KEP-5710).
//!
//! The steps are upstream's `PodGroupEvaluator.Preempt`: all pods of lower priority are taken away and the gang is placed; then they
//! come back, the most important first, as long as the gang's pods still fit where they are.

use std::{collections::BTreeSet, sync::Arc};

use corten_meta::{Key, Time};

use super::{Attempt, Gang};
use crate::{
    Effect, Eviction, PodInfo, Profile, Scheduler, observer::Fact, preemption::NO_VICTIMS, report, victims::Unit,
};

/// What came of it.
pub(crate) enum GangPreemption {
    /// These are asked to leave, and the gang waits for them on its nodes.
    Evicting(Vec<Effect>),
    /// It fits as the nodes are.
    Placed(Attempt),
    /// Nobody leaves.
    None(&'static str),
}

const NEVER: &str = "not eligible due to preemptionPolicy=Never.";
const TERMINATING: &str = "not eligible due to a terminating pod on the nominated node.";
/// Narrowing down who leaves takes pods off the nodes and puts them back, at most about so many in one try.
const PODS_MOVED_MAX: usize = 20_000;
const TOO_LARGE: &str = "the pods of the gang ask for more than all nodes have without all pods of lower priority";
const UNHELPFUL: &str = "the pods of the gang do not fit without all pods of lower priority, either";

impl Scheduler {
    pub(crate) fn preempt_for_gang(&mut self, gang: &Gang, now: Time) -> GangPreemption {
        let Some(first) = gang.waiting.first() else { return GangPreemption::None(NO_VICTIMS) };
        let profile = Arc::clone(&self.profiles[&self.pods[first].info.scheduler_name]);
        let priority = self.priority_of_gang(gang);
        self.observer.tell(&Fact::SoughtVictims);
        if let Some(why) = self.gang_ineligible(gang, priority, &profile) {
            return GangPreemption::None(why);
        }
        let units = self.units_below(priority, &gang.group);
        if units.is_empty() {
            self.end_nominations(gang, now);
            return GangPreemption::None(NO_VICTIMS);
        }
        if self.is_gang_too_large(gang, priority, &profile) {
            #[cfg(test)]
            assert!(self.placed_without(units, gang, now).is_none(), "a search finds no nodes, either");
            self.end_nominations(gang, now);
            return GangPreemption::None(TOO_LARGE);
        }
        let Some((attempt, units)) = self.placed_without(units, gang, now) else {
            self.end_nominations(gang, now);
            return GangPreemption::None(UNHELPFUL);
        };
        let victims = self.victims_for(&attempt, units, &profile);
        if victims.is_empty() {
            return GangPreemption::Placed(attempt);
        }
        victims.iter().for_each(|it| self.put_back(it));
        GangPreemption::Evicting(self.make_room(gang, &attempt, &victims, priority, &profile, now))
    }

    /// Places the gang as if none of the pods of the lowest priorities were there: as few priorities as do, so that nobody goes where
    /// somebody less important could. (Upstream takes all away, and the gang may come to sit where an important one was.) Gives those
    /// that are away. Where there are too many of them, it is not narrowed down as far.
    fn placed_without(&mut self, mut units: Vec<Unit>, gang: &Gang, now: Time) -> Option<(Attempt, Vec<Unit>)> {
        let priorities: BTreeSet<i32> = units.iter().map(|it| it.priority).collect();
        let priorities: Vec<i32> = priorities.into_iter().collect();
        let (mut too_few, mut n_away) = (0, priorities.len());
        let mut attempt = self.placed_below(&units, priorities[n_away - 1], gang, now)?;
        let n_pods: usize = units.iter().map(|it| it.pods.len()).sum();
        for _ in 0..PODS_MOVED_MAX / n_pods.max(1) {
            if too_few + 1 >= n_away {
                break;
            }
            let middle = usize::midpoint(too_few, n_away);
            let nodes = self.nodes_of(&attempt);
            self.come_back(&attempt, &units, priorities[n_away - 1], now);
            match self.placed_below(&units, priorities[middle - 1], gang, now) {
                Some(better) => (attempt, n_away) = (better, middle),
                None => {
                    too_few = middle;
                    units.iter().filter(|it| it.priority <= priorities[n_away - 1]).for_each(|it| self.take_away(it));
                    attempt = self.placed_again(attempt, &nodes, now);
                }
            }
        }
        units.retain(|it| it.priority <= priorities[n_away - 1]);
        Some((attempt, units))
    }

    /// Takes away all units up to this priority; where the gang does not fit even so, they come back.
    fn placed_below(&mut self, units: &[Unit], priority: i32, gang: &Gang, now: Time) -> Option<Attempt> {
        let away = || units.iter().filter(|it| it.priority <= priority);
        away().for_each(|it| self.take_away(it));
        match self.try_gang(gang, now) {
            Ok(attempt) => Some(attempt),
            Err(_) => {
                away().for_each(|it| self.put_back(it));
                None
            }
        }
    }

    fn nodes_of(&self, attempt: &Attempt) -> Vec<String> {
        attempt.placed.iter().filter_map(|it| Some(self.pods[&it.key].place.node()?.to_owned())).collect()
    }

    /// What was taken back is as it was: another search might end otherwise, for among equal nodes chance decides.
    fn placed_again(&mut self, mut attempt: Attempt, nodes: &[String], now: Time) -> Attempt {
        for (placed, node) in attempt.placed.iter_mut().zip(nodes) {
            let node_idx = self.snapshot.idx_of(node).expect("a known node has a row while no event is taken in");
            placed.wanted.clear();
            self.assume(&placed.key, node_idx, now, &mut placed.wanted);
        }
        attempt
    }

    fn come_back(&mut self, attempt: &Attempt, units: &[Unit], priority: i32, now: Time) {
        units.iter().filter(|it| it.priority <= priority).for_each(|it| self.put_back(it));
        self.take_all_back(attempt, now);
    }

    /// That of its PodGroup; by the widespread convention a group has none, and evicts whom each of its pods may.
    fn priority_of_gang(&self, gang: &Gang) -> i32 {
        let priorities = gang.waiting.iter().map(|it| self.snapshot.pod_groups.priority_of(&self.pods[it].info));
        priorities.min().unwrap_or(i32::MIN)
    }

    /// Why it evicts nobody now (`preemptorEligibleToPreemptOthers`).
    fn gang_ineligible(&self, gang: &Gang, priority: i32, profile: &Profile) -> Option<&'static str> {
        if !profile.preempts || gang.waiting.iter().any(|it| !self.pods[it].info.may_preempt) {
            return Some(NEVER);
        }
        let (groups, members) = (&self.snapshot.pod_groups, gang.waiting.iter());
        if members.clone().any(|it| self.evicting.contains_key(it)) {
            return Some(TERMINATING);
        }
        let nodes: BTreeSet<&str> = members.map(|it| &*self.pods[it].nominated).collect();
        let ends = |it: &Arc<PodInfo>| {
            groups.priority_of(it) < priority && self.pods.get(&it.key).is_some_and(|it| it.is_preempted())
        };
        let rows = nodes.into_iter().filter_map(|it| self.snapshot.row(it));
        rows.flat_map(|it| it.pods.values()).any(ends).then_some(TERMINATING)
    }

    fn units_below(&self, priority: i32, group: &Key) -> Vec<Unit> {
        let groups = &self.snapshot.pod_groups;
        let rows = (0..self.snapshot.n_rows()).map(|it| self.snapshot.row_at(it));
        let lower = rows
            .filter(|it| it.known)
            .flat_map(|it| it.pods.values())
            .filter(|it| groups.priority_of(it) < priority && it.group.as_ref() != Some(group));
        Unit::all(lower, &self.pods, groups)
    }

    fn take_away(&mut self, unit: &Unit) {
        unit.pods.iter().for_each(|(pod, node)| self.snapshot.remove_pod(node, &pod.key, pod));
    }

    fn put_back(&mut self, unit: &Unit) {
        unit.pods.iter().for_each(|(pod, node)| self.snapshot.add_pod(node, &pod.key, pod));
    }

    /// Lets all come back that may, those first whom a budget would not let go, and gives the others.
    fn victims_for(&mut self, attempt: &Attempt, mut units: Vec<Unit>, profile: &Profile) -> Vec<Unit> {
        let node_of = |key: &Key| Some((Arc::clone(&self.pods[key].info), self.pods[key].place.node()?.to_owned()));
        let placed: Vec<(Arc<PodInfo>, String)> = attempt.placed.iter().filter_map(|it| node_of(&it.key)).collect();
        units.sort_by(Unit::compare_importance);
        let violations = Unit::violations(&units, &self.budgets);
        let (mut violating, mut others) = (Vec::new(), Vec::new());
        for (unit, n_violations) in units.into_iter().zip(violations) {
            if n_violations > 0 { violating.push(unit) } else { others.push(unit) }
        }
        let mut victims = Vec::new();
        for unit in violating.into_iter().chain(others) {
            self.put_back(&unit);
            if !self.still_fit(&placed, &unit, profile) {
                self.take_away(&unit);
                victims.push(unit);
            }
        }
        victims.sort_by(Unit::compare_importance);
        victims
    }

    /// Does each of the gang's pods still fit its node, among others that have come back?
    fn still_fit(&mut self, placed: &[(Arc<PodInfo>, String)], unit: &Unit, profile: &Profile) -> bool {
        let nodes: BTreeSet<&str> = unit.pods.iter().map(|it| &*it.1).collect();
        let repels = unit.pods.iter().any(|it| !it.0.pod_anti_affinity.is_empty());
        placed.iter().all(|(pod, node)| {
            let looks_around = || {
                let spreads = !profile.default_spread(pod, &self.snapshot.groupings).is_empty();
                spreads || pod.looks_beyond_its_node() || !pod.claims.is_empty()
            };
            if !(nodes.contains(&**node) || repels || looks_around()) {
                return true;
            }
            self.snapshot.remove_pod(node, &pod.key, pod);
            let row = self.snapshot.row(node);
            let fits = row.is_some_and(|it| self.cycle.fits(pod, it, &self.snapshot, profile));
            self.snapshot.add_pod(node, &pod.key, pod);
            fits
        })
    }

    /// Keeps its nodes for the gang and evicts the victims; others that waited for room there and matter less look elsewhere.
    fn make_room(
        &mut self,
        gang: &Gang,
        attempt: &Attempt,
        victims: &[Unit],
        priority: i32,
        profile: &Profile,
        now: Time,
    ) -> Vec<Effect> {
        let node_of = |key: &Key| Some((key.clone(), self.pods[key].place.node()?.to_owned()));
        let nodes: Vec<(Key, String)> = attempt.placed.iter().filter_map(|it| node_of(&it.key)).collect();
        self.take_all_back(attempt, now);
        let mut effects = Vec::new();
        let Some((preemptor, _)) = nodes.first() else { return effects };
        self.observer.tell(&Fact::ChoseVictims { n_pods: victims.iter().map(|it| it.pods.len()).sum() });
        // Who is being deleted already goes for another reason.
        let staying = victims.iter().flat_map(|it| &it.pods).filter(|it| !it.0.deleting);
        let uid = self.snapshot.pod_groups.get(&gang.group).map(|it| it.metadata.uid.clone()).unwrap_or_default();
        let mut evicting = BTreeSet::new();
        for (victim, node) in staying {
            let patch = report::disruption_patch(&self.pods[&victim.key], &profile.name, report::PODGROUP, now);
            effects.push(Effect::Evict(Box::new(Eviction {
                preemptor: preemptor.clone(),
                preemptor_kind: report::PODGROUP,
                preemptor_uid: uid.clone(),
                victim: victim.reference(),
                node: node.clone(),
                patch,
            })));
            evicting.insert(victim.key.clone());
        }
        if !evicting.is_empty() {
            self.evicting.insert(preemptor.clone(), evicting);
        }
        for (key, node) in &nodes {
            self.nominate(key, node, now);
        }
        let nodes: BTreeSet<&str> = nodes.iter().map(|it| &*it.1).collect();
        for node in nodes {
            effects.extend(self.unseat_lower(node, priority, now));
        }
        effects
    }

    /// Nothing helps the gang: the nodes that were kept for it are others'.
    fn end_nominations(&mut self, gang: &Gang, now: Time) {
        for key in &gang.waiting {
            self.nominate(key, "", now);
        }
    }
}
