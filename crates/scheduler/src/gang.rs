//! Gangs: pods of one PodGroup are placed in one go, or none of them is (`podGroupCycle`).
//!
//! Each is tried on the nodes as those before it leave them. Where at least as many fit as the group asks for, those are bound; else
//! what was assumed is taken back, and the ones that fit wait for the ones that do not.

mod node_free;
mod preemption;

use std::{cmp::Reverse, sync::Arc};

use corten_meta::{Key, Time};

use crate::{
    Effect, PLUGINS, PodInfo, Scheduler,
    cycle::Failure,
    entry::PodState,
    observer::{Change, QueueEvent, Subject, TryResult},
    plugins::GANG_SCHEDULING,
    report,
};

use preemption::GangPreemption;

/// What became of the pods of a gang.
#[derive(Default)]
pub(crate) struct Attempt {
    pub(crate) placed: Vec<Placed>,
    failed: Vec<(Key, Failure)>,
    /// A plugin broke at one of them.
    broken: Option<Key>,
    /// Why nobody is evicted for them, where that was looked for.
    preemption: &'static str,
}

/// One that has its node.
pub(crate) struct Placed {
    pub(crate) key: Key,
    /// What is to be done for it.
    wanted: Vec<Effect>,
    /// The node that was kept for it before.
    nominated: String,
}

/// A gang that is tried.
pub(crate) struct Gang {
    pub(crate) group: Key,
    min_count: usize,
    /// Its pods that have nodes already.
    n_before: usize,
    /// Those that have none, the most important first.
    pub(crate) waiting: Vec<Key>,
}

impl Gang {
    fn is_placed(&self, attempt: &Attempt) -> bool {
        attempt.broken.is_none() && self.n_before + attempt.placed.len() >= self.min_count
    }

    /// `PlacementFeasible`, in upstream's words.
    fn message(&self, n_scheduled: usize, n_remaining: usize) -> String {
        let min_count = self.min_count;
        format!("minCount ({min_count}) cannot be satisfied: {n_scheduled} scheduled, {n_remaining} remaining")
    }
}

impl Scheduler {
    /// The group of a pod that is placed with others only, and how many that must be.
    pub(crate) fn gang_of(&self, info: &PodInfo) -> Option<(Key, usize)> {
        let group = info.group.as_ref().filter(|_| self.profiles[&info.scheduler_name].has_gangs())?;
        Some((group.clone(), self.snapshot.pod_groups.get(group)?.min_count()?))
    }

    /// The pods of a group may be let in, or find room now; of those that still wait for others it is told for how many.
    pub(crate) fn group_moved(&mut self, group: &Key, now: Time) -> Vec<Effect> {
        let members: Vec<Key> = self.snapshot.pod_groups.members(group).cloned().collect();
        let tells = self.snapshot.pod_groups.tells_its_pods(group);
        let mut effects = Vec::new();
        for key in members {
            let Some(entry) = self.pods.get(&key).filter(|it| it.place == PodState::Waiting) else { continue };
            if !self.profiles.contains_key(&entry.info.scheduler_name) {
                continue;
            }
            if self.gate_of(&entry.info).is_some() {
                if tells {
                    effects.extend(report::gated(entry, &self.snapshot.pod_groups, now));
                }
                continue;
            }
            if self.queue.contains(&key) {
                self.queue.wake_passive(&key, now);
            } else {
                self.queue.activate(&key, entry.info.priority, now);
            }
        }
        effects
    }

    pub(crate) fn place_gang(&mut self, group: Key, min_count: usize, now: Time, effects: &mut Vec<Effect>) {
        let gang = self.gathered(group, min_count, now);
        let attempt = match self.try_gang(&gang, now) {
            Ok(attempt) => attempt,
            Err(failed) if failed.broken.is_some() => return self.gang_failed(&gang, failed, now, effects),
            Err(failed) => match self.preempt_for_gang(&gang, now) {
                GangPreemption::Placed(attempt) => attempt,
                GangPreemption::Evicting(evictions) => {
                    effects.extend(evictions);
                    return self.gang_failed(&gang, failed, now, effects);
                }
                GangPreemption::None(why) => {
                    return self.gang_failed(&gang, Attempt { preemption: why, ..failed }, now, effects);
                }
            },
        };
        effects.extend(report::group_scheduled(self.snapshot.pod_groups.get(&gang.group), now));
        for Placed { key, wanted, .. } in attempt.placed {
            self.tell_ready(&wanted);
            effects.extend(wanted);
            let info = Arc::clone(&self.pods[&key].info);
            self.queue.because(QueueEvent::Of(Subject::AssignedPod, Change::Add));
            self.wake_concerned(&info, now);
        }
        for (key, failure) in attempt.failed {
            self.unplaced(&key, failure, now, effects);
        }
    }

    /// As many as the group asks for, or what became of the first try, of which all is taken back.
    pub(crate) fn try_gang(&mut self, gang: &Gang, now: Time) -> Result<Attempt, Attempt> {
        let first = self.try_members(gang, gang.waiting.iter(), now);
        if gang.is_placed(&first) {
            return Ok(first);
        }
        self.take_all_back(&first, now);
        self.try_in_other_order(gang, &first, now).ok_or(first)
    }

    /// Stops where those that are left cannot be enough.
    fn try_members<'k>(&mut self, gang: &Gang, order: impl ExactSizeIterator<Item = &'k Key>, now: Time) -> Attempt {
        let (mut attempt, n_all) = (Attempt::default(), order.len());
        for (at, key) in order.enumerate() {
            let is_short = gang.n_before + attempt.placed.len() + (n_all - at) < gang.min_count;
            if is_short || attempt.broken.is_some() {
                break;
            }
            self.try_member(key, now, &mut attempt);
        }
        attempt
    }

    /// Where small ones took the room of large ones, the large ones go first. (Upstream tries one order.)
    fn try_in_other_order(&mut self, gang: &Gang, first: &Attempt, now: Time) -> Option<Attempt> {
        if first.broken.is_some() || first.failed.is_empty() || first.placed.is_empty() {
            return None;
        }
        let has_failed = |key: &&Key| first.failed.iter().any(|it| it.0 == **key);
        let (before, after): (Vec<&Key>, Vec<&Key>) = gang.waiting.iter().partition(has_failed);
        let order: Vec<&Key> = before.into_iter().chain(after).collect();
        let second = self.try_members(gang, order.into_iter(), now);
        if gang.is_placed(&second) {
            return Some(second);
        }
        self.take_all_back(&second, now);
        None
    }

    /// All of the group that wait and that nothing else holds back, out of the queue.
    fn gathered(&mut self, group: Key, min_count: usize, now: Time) -> Gang {
        let (mut n_before, mut waiting) = (0, Vec::new());
        for key in self.snapshot.pod_groups.members(&group) {
            let Some(entry) = self.pods.get(key) else { continue };
            let profile = self.profiles.get(&entry.info.scheduler_name);
            if entry.place.node().is_some() {
                n_before += 1;
            } else if profile.is_some_and(|it| it.gate_of(&entry.info, &self.snapshot.pod_groups).is_none()) {
                waiting.push((Reverse(entry.info.priority), entry.since, key.clone()));
            }
        }
        waiting.sort();
        let waiting: Vec<Key> = waiting.into_iter().map(|it| it.2).filter(|it| self.queue.take(it, now)).collect();
        Gang { group, min_count, n_before, waiting }
    }

    fn try_member(&mut self, key: &Key, now: Time, attempt: &mut Attempt) {
        if self.is_extended(&self.pods[key].info) {
            let message = "extenders are not asked about pods of a gang".to_owned();
            let failure = Failure::refused(self.snapshot.n_nodes(), gang_plugin(), message);
            return attempt.failed.push((key.clone(), failure));
        }
        let begun = self.observer.moment();
        let found = self.find_node(key);
        self.tell_searched(begun);
        match found {
            Err(_) => attempt.broken = Some(key.clone()),
            Ok(Ok(node_idx)) => {
                let (mut wanted, nominated) = (Vec::new(), self.pods[key].nominated.clone());
                self.assume(key, node_idx, now, &mut wanted);
                attempt.placed.push(Placed { key: key.clone(), wanted, nominated });
            }
            Ok(Err(failure)) => attempt.failed.push((key.clone(), failure)),
        }
    }

    /// None of them gets a node.
    fn gang_failed(&mut self, gang: &Gang, attempt: Attempt, now: Time, effects: &mut Vec<Effect>) {
        let Attempt { placed, mut failed, broken, preemption } = attempt;
        if !preemption.is_empty() {
            failed.iter_mut().for_each(|it| it.1.post_filter = format!("preemption: {preemption}"));
        }
        let n_scheduled = gang.n_before + placed.len();
        let n_remaining = gang.waiting.len() - placed.len() - failed.len();
        let message = gang.message(n_scheduled, n_remaining);
        let group = self.snapshot.pod_groups.get(&gang.group);
        effects.extend(report::group_unschedulable(group, broken.is_some(), &message, now));
        let hindrance = failed.first().map(|(key, failure)| (key.clone(), failure.message()));
        for key in &gang.waiting {
            let info = &self.pods[key].info;
            let (priority, tried) = (info.priority, self.queue.trying(key));
            if broken.as_ref() == Some(key) {
                self.broke_at(key, now, effects);
            } else if broken.is_some() {
                self.tell_tried(info, tried, TryResult::Error);
                self.queue.back_off(key, priority, now);
            } else if !failed.iter().any(|it| it.0 == *key) {
                self.tell_tried(info, tried, TryResult::Unschedulable);
                self.queue.park_passively(info, gang_plugin(), now);
                let hindrance = hindrance.as_ref().map(|(key, message)| (key, &**message));
                let (entry, victims) = (&self.pods[key], self.victims_of(key));
                effects.extend(report::waits_for_gang(entry, &gang.group, &message, hindrance, &victims, now));
            }
        }
        if broken.is_none() {
            failed.into_iter().for_each(|(key, failure)| self.unplaced(&key, failure, now, effects));
        }
    }

    pub(crate) fn take_all_back(&mut self, attempt: &Attempt, now: Time) {
        attempt.placed.iter().rev().for_each(|it| self.take_back(it, now));
    }

    /// As if the pod had never been given its node.
    fn take_back(&mut self, placed: &Placed, now: Time) {
        let key = &placed.key;
        self.wait_no_more(key);
        let Some(entry) = self.pods.get_mut(key) else { return };
        let PodState::Assumed(node) = std::mem::replace(&mut entry.place, PodState::Waiting) else { return };
        let info = Arc::clone(&entry.info);
        self.snapshot.remove_pod(&node, key, &info);
        self.snapshot.devices.forget(key);
        self.nominate(key, &placed.nominated, now);
    }
}

/// The plugin that keeps pods waiting for others of their gang, by its place.
fn gang_plugin() -> usize {
    PLUGINS.iter().position(|it| it.name == GANG_SCHEDULING).unwrap_or_default()
}
