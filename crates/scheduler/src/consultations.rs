//! Pods about which extenders are asked. Others are placed meanwhile, so that an extender that hangs holds up nobody but those it is
//! asked about.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use corten_meta::{Key, Time};

use crate::{
    Advice, Effect, Extender, ExtenderFailure, NodeAdvice, NodeVictims, PodInfo, Question, Scheduler,
    cycle::{Advised, Advising},
    entry::PodState,
    observer::{ExtensionPoint, Moment, PointStatus, QueueEvent, TryResult, ran},
    preemption::{Candidate, Preemption, Victim, cheapest},
    report,
};

impl Scheduler {
    /// The extenders that have this verb and are interested in the pod.
    fn extenders(&self, info: &PodInfo, verb: fn(&Extender) -> &str) -> Vec<usize> {
        let all = self.config.extenders.iter().enumerate();
        all.filter(|it| !verb(it.1).is_empty() && it.1.is_interested(info)).map(|it| it.0).collect()
    }

    /// Who binds the pod in the scheduler's stead.
    pub(crate) fn binder(&self, info: &PodInfo) -> Option<usize> {
        self.extenders(info, |it| &it.bind_verb).first().copied()
    }

    /// Is anybody to be asked about the pod's nodes?
    pub(crate) fn is_extended(&self, info: &PodInfo) -> bool {
        let mut all = self.config.extenders.iter();
        all.any(|it| !(it.filter_verb.is_empty() && it.prioritize_verb.is_empty()) && it.is_interested(info))
    }

    /// Asks extenders about the nodes that the plugins let through.
    pub(crate) fn consult_on_nodes(&mut self, key: &Key, now: Time, effects: &mut Vec<Effect>) {
        if self.consultations.is_full() {
            return self.consultations.held.push_back(key.clone());
        }
        let info = Arc::clone(&self.pods[key].info);
        let profile = Arc::clone(&self.profiles[&info.scheduler_name]);
        let Self { cycle, snapshot, observer, .. } = self;
        let begun = observer.moment();
        let surveyed = catch_unwind(AssertUnwindSafe(|| {
            let nodes = cycle.survey(&info, snapshot, &profile, &**observer)?;
            Ok(nodes.iter().map(|it| snapshot.row_at(*it).name.to_owned()).collect::<Vec<_>>())
        }));
        match surveyed {
            Err(_) => self.broke_at(key, now, effects),
            Ok(Err(failure)) => self.unplaced(key, failure, now, effects),
            Ok(Ok(nodes)) => {
                let filters = self.extenders(&info, |it| &it.filter_verb);
                let scorers = self.extenders(&info, |it| &it.prioritize_verb);
                let urls = self.urls(filters.iter().chain(&scorers));
                effects.push(self.consultations.begin(&info, Question::Nodes { nodes, filters, scorers }, begun));
                effects.push(report::waits_for_extenders(&info, &urls, self.pods[key].since, now));
            }
        }
    }

    fn urls<'e>(&self, extenders: impl Iterator<Item = &'e usize>) -> Vec<String> {
        let distinct: BTreeSet<&usize> = extenders.collect();
        distinct.into_iter().map(|it| self.config.extenders[*it].url_prefix.clone()).collect()
    }

    /// Asks extenders who may be evicted, where any wants to be asked; gives the candidates back where none does.
    pub(crate) fn consult_on_victims(
        &mut self,
        info: &PodInfo,
        candidates: Vec<Candidate>,
        begun: Moment,
        now: Time,
    ) -> Result<Vec<Candidate>, Vec<Effect>> {
        let extenders = self.extenders(info, |it| &it.preempt_verb);
        if extenders.is_empty() || candidates.is_empty() {
            return Ok(candidates);
        }
        if self.consultations.is_full() {
            self.queue.back_off(&info.key, info.priority, now);
            self.tell_post_filtered(info, PointStatus::Unschedulable, begun);
            return Err(Vec::new());
        }
        let victim = |it: &Victim| {
            let uid = self.pods.get(&it.key).map(|it| it.info.uid.clone()).unwrap_or_default();
            (it.key.clone(), uid)
        };
        let candidates = candidates.iter().map(|it| NodeVictims {
            node: self.snapshot.row_at(it.node_idx).name.to_owned(),
            victims: it.victims.iter().map(victim).collect(),
            n_violations: it.n_violations,
        });
        let question = Question::Victims { candidates: candidates.collect(), extenders };
        Err(vec![self.consultations.begin(info, question, begun)])
    }

    pub(crate) fn advised(
        &mut self,
        key: &Key,
        id: u64,
        answer: Result<Advice, ExtenderFailure>,
        now: Time,
    ) -> Vec<Effect> {
        if self.consultations.under_way.get(key).is_none_or(|it| it.id != id) {
            return Vec::new();
        }
        let Some(asked) = self.consultations.under_way.remove(key) else { return Vec::new() };
        let mut effects = Vec::new();
        if self.pods.get(key).is_some_and(|it| it.place == PodState::Waiting) {
            match answer {
                Ok(Advice::Nodes(advice)) => self.place_advised(key, &asked.nodes, &advice, now, &mut effects),
                Ok(Advice::Victims(victims)) => {
                    effects.extend(self.preempt_advised(key, victims, asked.begun, now));
                }
                Err(failure) => {
                    // Without nodes it was about victims.
                    if asked.nodes.is_empty() {
                        self.tell_post_filtered(&self.pods[key].info, PointStatus::Error, asked.begun);
                    }
                    self.not_advised(key, &failure, now, &mut effects);
                }
            }
        }
        // A pod that has gone meanwhile needs no turn.
        while !self.consultations.is_full() {
            let Some(next) = self.consultations.held.pop_front() else { break };
            let is_waiting = self.pods.get(&next).is_some_and(|it| it.place == PodState::Waiting);
            let is_asked_about = self.consultations.under_way.contains_key(&next);
            if is_waiting && self.queue.is_in_flight(&next) && !is_asked_about {
                self.consult_on_nodes(&next, now, &mut effects);
            }
        }
        effects
    }

    fn place_advised(
        &mut self,
        key: &Key,
        asked: &BTreeSet<String>,
        advice: &NodeAdvice,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        let info = Arc::clone(&self.pods[key].info);
        let profile = Arc::clone(&self.profiles[&info.scheduler_name]);
        let nominated = self.snapshot.idx_of(&self.pods[key].nominated);
        let Self { cycle, snapshot, config, observer, .. } = self;
        let advised = catch_unwind(AssertUnwindSafe(|| {
            let advising = Advising { asked, advice, extenders: &config.extenders };
            cycle.run_advised(&info, snapshot, &profile, nominated, &advising, &**observer)
        }));
        match advised {
            Err(_) => self.broke_at(key, now, effects),
            Ok(Advised::Node(idx)) => {
                self.tell_own_search(key, self.queue.trying(key));
                self.placed_on(key, idx, now, effects);
            }
            Ok(Advised::Failed(failure)) => self.unplaced(key, failure, now, effects),
            // A node has come to fit that nobody was asked about.
            Ok(Advised::Again) => {
                self.tell_own_search(key, self.queue.trying(key));
                self.tell_tried(&info, self.queue.trying(key), TryResult::Unschedulable);
                self.queue.back_off(key, info.priority, now);
            }
        }
    }

    fn not_advised(&mut self, key: &Key, failure: &ExtenderFailure, now: Time, effects: &mut Vec<Effect>) {
        self.tell_own_search(key, self.queue.trying(key));
        let entry = &self.pods[key];
        self.tell_tried(&entry.info, self.queue.trying(key), TryResult::Error);
        let url = self.config.extenders.get(failure.extender).map_or("", |it| &*it.url_prefix);
        self.queue.back_off(key, entry.info.priority, now);
        effects.extend(report::extender_failed(entry, url, &failure.message, now));
    }

    /// Evicts whom the extenders have left, if all of them are still there, and that still helps.
    fn preempt_advised(&mut self, key: &Key, victims: Vec<NodeVictims>, begun: Moment, now: Time) -> Vec<Effect> {
        let info = Arc::clone(&self.pods[key].info);
        let profile = Arc::clone(&self.profiles[&info.scheduler_name]);
        let Self { snapshot, pods, budgets, .. } = &*self;
        let preemption = Preemption { pod: &info, snapshot, profile: &profile, pods, budgets };
        let candidates = victims.iter().filter_map(|it| self.candidate(&info, it)).filter(|it| preemption.helps(it));
        let candidates = candidates.collect();
        let Some(best) = cheapest(candidates) else {
            self.tell_post_filtered(&info, PointStatus::Unschedulable, begun);
            if !victims.is_empty() {
                // The nodes are others by now than they were asked about.
                self.queue.because(QueueEvent::ForceActivate);
                self.queue.wake_one(key, now);
            }
            return Vec::new();
        };
        let mut effects = self.preempt(&info, &profile, &best, now);
        self.tell_post_filtered(&info, PointStatus::Success, begun);
        effects.push(report::nominated(&self.pods[key]));
        effects
    }

    fn tell_post_filtered(&self, info: &PodInfo, status: PointStatus, begun: Moment) {
        ran(&*self.observer, (ExtensionPoint::PostFilter, status), &info.scheduler_name, begun);
    }

    fn candidate(&self, info: &PodInfo, advised: &NodeVictims) -> Option<Candidate> {
        let node_idx = self.snapshot.idx_of(&advised.node)?;
        let row = self.snapshot.row_at(node_idx);
        let victim = |(key, uid): &(Key, String)| {
            let priority_of = |it: &PodInfo| self.snapshot.pod_groups.priority_of(it);
            let pod = self.pods.get(key).map(|it| &it.info);
            let pod = pod.filter(|it| it.uid == *uid && priority_of(it) < priority_of(info))?;
            // Of a group that leaves as a whole, some are elsewhere.
            let is_whole = self.snapshot.pod_groups.disrupted_whole(pod).is_some();
            let entry = self.pods.get(key)?;
            entry.place.node().filter(|it| is_whole || *it == advised.node)?;
            let start_time = entry.start_time;
            Some(Victim { key: key.clone(), priority: priority_of(pod), start_time })
        };
        let victims: Vec<Victim> = advised.victims.iter().map(victim).collect::<Option<_>>()?;
        let n_violations = advised.n_violations;
        (row.known && !victims.is_empty()).then_some(Candidate { node_idx, victims, n_violations })
    }
}
