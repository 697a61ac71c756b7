//! One try after the other: which pod is tried, and what becomes of it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use corten_meta::{Key, Time};

use crate::{
    Effect, PodInfo, Profile, Scheduler, Snapshot,
    cycle::Failure,
    entry::PodState,
    observer::{Change, QueueEvent, Subject, TryResult},
    queue::Queue,
    report,
};

impl Scheduler {
    pub(crate) fn place_pods(&mut self, now: Time, about: &mut dyn FnMut(&Key)) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.queue.flush(now);
        // Whom this tick wakes waits for the next one: what happened meanwhile is taken in first.
        let next = if self.queue.is_idle() { Queue::pop_early } else { Queue::pop };
        for _ in 0..self.config.pods_per_tick_max {
            let Some(key) = next(&mut self.queue, now) else { break };
            about(&key);
            self.place_pod(&key, now, &mut effects);
        }
        effects
    }

    fn place_pod(&mut self, key: &Key, now: Time, effects: &mut Vec<Effect>) {
        let entry = &self.pods[key];
        if let Some(gate) = self.profiles[&entry.info.scheduler_name].gate_of(&entry.info, &self.snapshot.pod_groups) {
            // Others of its gang have gone since it was let in.
            self.queue.gate(&entry.info, gate);
            return effects.extend(report::gated(entry, &self.snapshot.pod_groups, now));
        }
        if let Some((group, min_count)) = self.gang_of(&self.pods[key].info) {
            return self.place_gang(group, min_count, now, effects);
        }
        if self.is_extended(&self.pods[key].info) {
            return self.consult_on_nodes(key, now, effects);
        }
        match self.find_node(key) {
            Err(_) => self.broke_at(key, now, effects),
            Ok(Ok(node_idx)) => {
                self.tell_own_search(key, self.queue.trying(key));
                self.placed_on(key, node_idx, now, effects);
            }
            Ok(Err(failure)) => self.unplaced(key, failure, now, effects),
        }
    }

    /// A pod at which a plugin breaks costs no other its place.
    pub(crate) fn find_node(&mut self, key: &Key) -> std::thread::Result<Result<usize, Failure>> {
        let entry = self.pods.get(key).expect("a queued pod is known: forget() takes it out of both");
        let profile = Arc::clone(&self.profiles[&entry.info.scheduler_name]);
        count_for(&entry.info, &mut self.snapshot, &profile);
        let nominated = Some(&entry.nominated).filter(|it| !it.is_empty()).and_then(|it| self.snapshot.idx_of(it));
        catch_unwind(AssertUnwindSafe(|| {
            #[cfg(test)]
            assert!(!entry.info.labels.contains_key("breaks"), "as was wished");
            self.cycle.run(&entry.info, &self.snapshot, &profile, nominated, &*self.observer)
        }))
    }

    pub(crate) fn broke_at(&mut self, key: &Key, now: Time, effects: &mut Vec<Effect>) {
        let tried = self.queue.trying(key);
        self.tell_own_search(key, tried);
        let entry = &self.pods[key];
        self.queue.back_off(key, entry.info.priority, now);
        effects.extend(report::broken(entry, now));
        self.tell_tried(&entry.info, tried, TryResult::Error);
    }

    pub(crate) fn placed_on(&mut self, key: &Key, node_idx: usize, now: Time, effects: &mut Vec<Effect>) {
        let n_before = effects.len();
        self.assume(key, node_idx, now, effects);
        self.tell_ready(&effects[n_before..]);
        let info = Arc::clone(&self.pods[key].info);
        self.queue.because(QueueEvent::Of(Subject::AssignedPod, Change::Add));
        self.wake_concerned(&info, now);
    }

    /// The pod counts on its node from now on; what is to be done for it is wanted.
    pub(crate) fn assume(&mut self, key: &Key, node_idx: usize, now: Time, effects: &mut Vec<Effect>) {
        let entry = self.pods.get_mut(key).expect("a queued pod is known: forget() takes it out of both");
        let node = self.snapshot.row_at(node_idx).name.to_owned();
        self.snapshot.add_pod(&node, key, &entry.info);
        entry.place = PodState::Assumed(node.clone());
        let info = Arc::clone(&entry.info);
        self.queue.because(QueueEvent::Of(Subject::AssignedPod, Change::Add));
        self.end_nomination(key, now);
        effects.extend(self.bind(&info, &node, now));
    }

    pub(crate) fn unplaced(&mut self, key: &Key, mut failure: Failure, now: Time, effects: &mut Vec<Effect>) {
        let info = Arc::clone(&self.pods[key].info);
        let tried = self.queue.trying(key);
        self.queue.park(&info, failure.refused_by(), failure.plugins(), now);
        // The rows that the failure names may move with nominations.
        let waits = report::waits(&info, &failure, &self.snapshot, &self.profiles[&info.scheduler_name]);
        let evictions = self.post_filter(key, &mut failure, now);
        if failure.is_among_without_lower {
            self.queue.regroup(&info, failure.refused_by());
        }
        self.tell_own_search(key, tried);
        self.tell_tried(&info, tried, TryResult::Unschedulable);
        let victims = self.victims_of(key);
        effects.extend(report::unschedulable(&self.pods[key], &failure, waits, &victims, now));
        effects.extend(evictions);
        effects.extend(self.delete_stale_claim(&info));
    }
}

/// Pods are counted from now on by the labels of nodes that this one asks about.
fn count_for(pod: &PodInfo, snapshot: &mut Snapshot, profile: &Profile) {
    let own = pod.spread.iter().chain(&pod.soft_spread).map(|it| &*it.topology_key);
    snapshot.count_by(pod.keys_of_terms().chain(own), false);
    if pod.spread.is_empty() && pod.soft_spread.is_empty() && snapshot.groupings.is_grouped(pod) {
        snapshot.count_by(profile.arguments.spread.keys(), false);
    }
}
