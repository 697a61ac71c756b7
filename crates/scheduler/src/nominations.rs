//! Pods that wait for room on a node which is kept for them: nominated by preemption here, by a scheduler before this one, or by
//! somebody else who wrote `status.nominatedNodeName`.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use corten_meta::{Key, Time};

use crate::{
    Effect, Eviction, PodInfo, Profile, Scheduler,
    cycle::Failure,
    entry::PodState,
    observer::{Change, ExtensionPoint, Fact, PointStatus, QueueEvent, Subject, ran},
    preemption::{Candidate, NoCandidate, Preemption, cheapest},
    report,
};

/// Of so many nodes it is asked anew who could leave them for a pod that is not tried.
const ASKED_AGAIN_MAX: usize = 500;

impl Scheduler {
    /// The node a waiting pod is nominated to after it was seen: as it was here, while the API server has not heard of that
    /// (`UpdateNominatedPod`).
    pub(crate) fn nomination_seen(&self, key: &Key, seen: &str) -> String {
        match self.pods.get(key) {
            Some(known) if seen.is_empty() && known.told_nominated.is_empty() => known.nominated.clone(),
            _ => seen.to_owned(),
        }
    }

    /// Keeps room for a pod on this node and on no other; on none where the name is empty.
    pub(crate) fn nominate(&mut self, key: &Key, node: &str, now: Time) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let before = std::mem::replace(&mut entry.nominated, node.to_owned());
        let info = Arc::clone(&entry.info);
        if !node.is_empty() {
            self.snapshot.nominate(node, key, &info);
        }
        if !before.is_empty() && before != node {
            self.snapshot.end_nomination(&before, key);
            self.wake_helped(&before, now);
        }
    }

    /// The pod counts on its node itself now, or is gone.
    pub(crate) fn end_nomination(&mut self, key: &Key, now: Time) {
        let Some(entry) = self.pods.get(key).filter(|it| !it.nominated.is_empty()) else { return };
        let is_there = entry.place.node() == Some(&*entry.nominated);
        let node = self.pods.get_mut(key).map(|it| std::mem::take(&mut it.nominated)).unwrap_or_default();
        self.snapshot.end_nomination(&node, key);
        if !is_there {
            self.wake_helped(&node, now);
        }
    }

    /// The pod has lost the node it was placed on: what its status says holds again.
    pub(crate) fn restore_nomination(&mut self, key: &Key, now: Time) {
        let node = self.pods.get(key).map(|it| it.told_nominated.clone()).unwrap_or_default();
        self.nominate(key, &node, now);
    }

    /// Where no node fits a pod, others may have to leave one (`RunPostFilterPlugins`). What came of it is told in the failure.
    pub(crate) fn post_filter(&mut self, key: &Key, failure: &mut Failure, now: Time) -> Vec<Effect> {
        let info = Arc::clone(&self.pods[key].info);
        let profile = Arc::clone(&self.profiles[&info.scheduler_name]);
        // One pod of a gang evicts nobody: a gang does so as a whole.
        if failure.n_nodes == 0 || !profile.preempts || self.gang_of(&info).is_some() {
            return Vec::new();
        }
        let begun = self.observer.moment();
        self.observer.tell(&Fact::SoughtVictims);
        let observer = Arc::clone(&self.observer);
        let found = match self.ineligible(key, &info) {
            Some(why) => Err((why.to_owned(), false)),
            None => self.find_candidates(&info, &profile).map_err(|it| {
                failure.is_among_without_lower = it.is_among;
                (it.message, true)
            }),
        };
        let ended = |status| ran(&*observer, (ExtensionPoint::PostFilter, status), &profile.name, begun);
        match found {
            Ok(candidates) => match self.consult_on_victims(&info, candidates, begun, now) {
                Ok(candidates) => {
                    let best = cheapest(candidates).expect("where there is none, it is said why");
                    let evictions = self.preempt(&info, &profile, &best, now);
                    ended(PointStatus::Success);
                    evictions
                }
                // It goes on with their answer.
                Err(asking) => asking,
            },
            Err((why, is_hopeless)) => {
                failure.post_filter = no_help(&info, &why);
                if is_hopeless {
                    self.nominate(key, "", now);
                }
                ended(PointStatus::Unschedulable);
                Vec::new()
            }
        }
    }

    /// What is said of the attempt to help the pod that the last search was for, empty where there is none. Nothing where it would, or
    /// where it takes long to find out: that is left to its next try.
    pub(crate) fn why_no_victims(
        &self,
        key: &Key,
        info: &PodInfo,
        profile: &Profile,
        failure: &Failure,
    ) -> Option<String> {
        if failure.n_nodes == 0 || !profile.preempts || self.gang_of(info).is_some() {
            return Some(String::new());
        }
        let why = match self.ineligible(key, info) {
            Some(why) => why.to_owned(),
            None => {
                let Self { snapshot, pods, budgets, cycle, .. } = self;
                let preemption = Preemption { pod: info, snapshot, profile, pods, budgets };
                if preemption.is_much_to_ask(cycle.resolvable(), ASKED_AGAIN_MAX) {
                    return None;
                }
                self.candidates(info, profile, 0).err()?.message
            }
        };
        Some(no_help(info, &why))
    }

    /// Why the pod evicts nobody now (`PodEligibleToPreemptOthers`).
    fn ineligible(&self, key: &Key, info: &PodInfo) -> Option<&'static str> {
        const TERMINATING: &str = "not eligible due to a terminating pod on the nominated node.";
        if !info.may_preempt {
            return Some("not eligible due to preemptionPolicy=Never.");
        }
        if self.evicting.contains_key(key) {
            return Some(TERMINATING);
        }
        let idx = self.snapshot.idx_of(&self.pods[key].nominated)?;
        let row = self.snapshot.row_at(idx);
        // A node that cannot run the pod whoever leaves it is given up.
        if row.known && !self.cycle.resolvable().contains(&idx) {
            return None;
        }
        let ends = |it: &Arc<PodInfo>| self.pods.get(&it.key).is_some_and(|it| it.is_preempted());
        let groups = &self.snapshot.pod_groups;
        row.pods.values().any(|it| groups.priority_of(it) < groups.priority_of(info) && ends(it)).then_some(TERMINATING)
    }

    fn find_candidates(&mut self, info: &PodInfo, profile: &Profile) -> Result<Vec<Candidate>, NoCandidate> {
        let offset = self.cycle.random_below(self.cycle.resolvable().len().max(1));
        self.candidates(info, profile, offset)
    }

    fn candidates(&self, info: &PodInfo, profile: &Profile, offset: usize) -> Result<Vec<Candidate>, NoCandidate> {
        let Self { snapshot, pods, budgets, cycle, .. } = self;
        let preemption = Preemption { pod: info, snapshot, profile, pods, budgets };
        // A pod at which a plugin breaks costs no other its place.
        let found = catch_unwind(AssertUnwindSafe(|| preemption.find(cycle.resolvable(), offset)));
        let broken = || NoCandidate { message: "internal error of the scheduler, see its log".into(), is_among: false };
        found.unwrap_or_else(|_| Err(broken()))
    }

    /// Keeps the node for the pod and evicts the victims; others that waited for room there and matter less look elsewhere.
    pub(crate) fn preempt(
        &mut self,
        info: &Arc<PodInfo>,
        profile: &Profile,
        candidate: &Candidate,
        now: Time,
    ) -> Vec<Effect> {
        self.observer.tell(&Fact::ChoseVictims { n_pods: candidate.victims.len() });
        let row = self.snapshot.row_at(candidate.node_idx);
        let node = row.name.to_owned();
        let mut effects = Vec::new();
        // Who is being deleted already goes for another reason (`prepareCandidateAsync`).
        let is_going = |key: &Key| self.pods.get(key).is_some_and(|it| it.info.deleting);
        let staying: Vec<&Key> = candidate.victims.iter().map(|it| &it.key).filter(|it| !is_going(it)).collect();
        for victim in &staying {
            let entry = self.pods.get(victim).expect("a pod on a node is known");
            let patch = report::disruption_patch(entry, &profile.name, report::POD, now);
            effects.push(Effect::Evict(Box::new(Eviction {
                preemptor: info.key.clone(),
                preemptor_kind: report::POD,
                preemptor_uid: info.uid.clone(),
                victim: entry.info.reference(),
                // One that leaves with others may be elsewhere.
                node: entry.place.node().unwrap_or(&node).to_owned(),
                patch,
            })));
        }
        let victims: BTreeSet<Key> = staying.into_iter().cloned().collect();
        if !victims.is_empty() {
            self.evicting.insert(info.key.clone(), victims);
        }
        self.nominate(&info.key, &node, now);
        effects.extend(self.unseat_lower(&node, self.snapshot.pod_groups.priority_of(info), now));
        effects
    }

    /// Pods of lower priority that waited for room on the node look elsewhere.
    pub(crate) fn unseat_lower(&mut self, node: &str, priority: i32, now: Time) -> Vec<Effect> {
        let Some(row) = self.snapshot.row(node) else { return Vec::new() };
        let groups = &self.snapshot.pod_groups;
        let is_lower = |it: &&Arc<PodInfo>| groups.priority_of(it) < priority;
        let lower: Vec<Arc<PodInfo>> = row.nominated.values().filter(is_lower).map(Arc::clone).collect();
        let mut effects = Vec::new();
        self.queue.because(QueueEvent::Of(Subject::UnschedulablePod, Change::Update));
        for other in lower {
            self.nominate(&other.key, "", now);
            effects.push(report::no_longer_nominated(&other));
            self.queue.wake_one(&other.key, now);
        }
        effects
    }

    /// The pods of lower priority that a nominated pod waits for: those whose eviction is under way, and those that end.
    pub(crate) fn victims_of(&self, key: &Key) -> Vec<Key> {
        let entry = &self.pods[key];
        let Some(row) = self.snapshot.row(&entry.nominated) else { return Vec::new() };
        let (groups, priority) = (&self.snapshot.pod_groups, self.snapshot.pod_groups.priority_of(&entry.info));
        let gang = self.gang_of(&entry.info).map(|it| it.0);
        // One of a gang asks for all of it.
        let preemptors: Vec<&Key> = gang.as_ref().map_or(vec![key], |it| groups.members(it).collect());
        let asked =
            |it: &Key| preemptors.iter().filter_map(|it| self.evicting.get(*it)).any(|asked| asked.contains(it));
        let ends = |it: &Key| asked(it) || self.pods.get(it).is_some_and(|it| it.is_preempted());
        let lower = row.pods.values().filter(|it| groups.priority_of(it) < priority && ends(&it.key));
        lower.map(|it| it.key.clone()).collect()
    }

    /// Have others been asked to leave for the pod, or for any of its gang, or do they, and are not gone yet?
    pub(crate) fn waits_for_victims(&self, key: &Key) -> bool {
        let waits = |key: &Key| self.evicting.contains_key(key) || !self.victims_of(key).is_empty();
        let Some(entry) = self.pods.get(key) else { return false };
        let members = |group: &Key| {
            let groups = &self.snapshot.pod_groups;
            groups.members(group).any(|it| self.pods.contains_key(it) && waits(it))
        };
        waits(key) || self.gang_of(&entry.info).is_some_and(|it| members(&it.0))
    }

    /// That the pod leaves has been asked for. Until it is seen to, whoever asked waits for it.
    pub(crate) fn evicted(&mut self, eviction: &Eviction) -> Vec<Effect> {
        let victim = self.pods.get(&eviction.victim_key()).map(|it| &it.info);
        if victim.is_none_or(|it| it.deleting || it.uid != eviction.victim.uid) {
            self.eviction_ended(&eviction.preemptor, &eviction.victim_key());
        }
        vec![report::evicted(eviction)]
    }

    /// The pod goes, or is gone. Gives those for which it was the last that had been asked to leave.
    pub(crate) fn no_longer_asked(&mut self, victim: &Key) -> Vec<Key> {
        let mut done = Vec::new();
        self.evicting.retain(|preemptor, victims| {
            if victims.remove(victim) && victims.is_empty() {
                done.push(preemptor.clone());
            }
            !victims.is_empty()
        });
        done
    }

    /// The pod tries again: it may fit by now, or find others.
    pub(crate) fn eviction_failed(&mut self, eviction: &Eviction, now: Time) {
        self.eviction_ended(&eviction.preemptor, &eviction.victim_key());
        self.queue.because(QueueEvent::ForceActivate);
        self.queue.wake_one(&eviction.preemptor, now);
    }

    fn eviction_ended(&mut self, preemptor: &Key, victim: &Key) {
        if let Some(victims) = self.evicting.get_mut(preemptor) {
            victims.remove(victim);
            if victims.is_empty() {
                self.evicting.remove(preemptor);
            }
        }
    }

    /// A pod that waits keeps its nomination, any other has none.
    pub(crate) fn nomination_follows(&mut self, key: &Key, nomination: &str, now: Time) {
        if self.pods.get(key).is_some_and(|it| it.place == PodState::Waiting) {
            self.nominate(key, nomination, now);
        } else {
            self.end_nomination(key, now);
            self.evicting.remove(key);
        }
    }
}

/// What came of the attempt to help a pod that fits nowhere.
fn no_help(info: &PodInfo, why: &str) -> String {
    let claims = if info.device_claims.is_empty() { "no new claims to deallocate" } else { "still not schedulable" };
    format!("{claims}, preemption: {why}")
}
