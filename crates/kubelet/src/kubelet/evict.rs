//! Makes room: when the node is short of something, or a pod takes more of the disk than it may.
//!
//! ```text
//! signals ──► threshold crossed ──► of a disk: dead containers and unused images go ──► still? ──► pods are measured,
//!                                                                              ranked, and one is evicted ──► again
//! ```
//! As in the eviction manager's `synchronize`: one pod at a time, then the node is looked at anew; and no pod the system
//! cannot be without.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::{Quantity, Time};
use corten_reconcile::EventType::Warning;

use crate::{
    Effect, Failure, Kubelet, NodeEffect, PodUse, Signal, Signals, Threshold,
    node::{
        admission::EVICTED,
        local_storage::{self, has_limits},
        rank,
    },
    pod::machine::PodMachine,
    spec::{downward::quantity, pod::all_containers},
};

/// `immediateEvictionGracePeriodSeconds`: the grace of a pod that must make room at once.
const IMMEDIATE_GRACE_SECONDS: i64 = 1;
/// How long the next look waits for an evicted pod to be gone.
const CLEANUP: Duration = Duration::from_secs(30);
/// What was asked for and never answered is asked for again.
const ANSWER: Duration = Duration::from_secs(300);

/// How far an eviction has come: images are removed first, then a pod is evicted.
#[derive(Debug, Default)]
pub(crate) enum EvictionPhase {
    #[default]
    Idle,
    /// Unused images are let go of.
    Reclaiming { since: Time },
    /// After that the node is looked at again.
    Rereading { since: Time },
    /// Pods are measured.
    Measuring { since: Time },
    /// An evicted pod is on its way out.
    Cleaning { uid: String, since: Time },
}

impl EvictionPhase {
    fn is_stuck(&self, now: Time) -> bool {
        match self {
            Self::Idle => false,
            Self::Cleaning { since, .. } => now.since(*since) >= CLEANUP,
            Self::Reclaiming { since } | Self::Rereading { since } | Self::Measuring { since } => {
                now.since(*since) >= ANSWER
            }
        }
    }
}

impl Kubelet {
    /// Looks at what is left; comes every ten seconds, and whenever somebody asked for it.
    pub(crate) fn signals_seen(&mut self, signals: Signals, now: Time, effects: &mut Vec<Effect>) {
        self.pressure.observe(signals, &self.config.eviction, now);
        let was_reread = matches!(self.eviction_phase, EvictionPhase::Rereading { .. });
        if was_reread || self.eviction_phase.is_stuck(now) {
            self.eviction_phase = EvictionPhase::Idle;
        }
        if !matches!(self.eviction_phase, EvictionPhase::Idle) || !self.runtime_is_known || !self.pods_are_known {
            return;
        }
        let Some(threshold) = self.pressure.foremost(&self.config.eviction).cloned() else {
            if self.pods.values().any(|it| it.is_evictable() && has_limits(&it.pod)) {
                self.measure_pods(true, now, effects);
            }
            return;
        };
        if was_reread {
            return self.measure_pods(true, now, effects);
        }
        let resource = threshold.signal.resource();
        let message = format!("Attempting to reclaim {resource}");
        effects.push(crate::node::status::event_of(&self.config, Warning, "EvictionThresholdMet", message));
        if self.can_reclaim(threshold.signal) {
            self.eviction_phase = EvictionPhase::Reclaiming { since: now };
            self.drop_dead_containers(now, effects);
            self.garbage.collect_all(now, effects);
            return;
        }
        self.measure_pods(threshold.signal.is_disk(), now, effects);
    }

    /// As in `buildSignalToNodeReclaimFuncs`: where images have a disk of their own, letting go of them does not help the other.
    fn can_reclaim(&self, signal: Signal) -> bool {
        match signal {
            Signal::ImageFsAvailable | Signal::ImageFsInodesFree => true,
            Signal::NodeFsAvailable | Signal::NodeFsInodesFree => !self.pressure.has_image_fs(),
            Signal::MemoryAvailable | Signal::PidAvailable => false,
        }
    }

    /// Unused images are gone: is that enough?
    pub(crate) fn reclaimed(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if matches!(self.eviction_phase, EvictionPhase::Reclaiming { .. }) {
            self.eviction_phase = EvictionPhase::Rereading { since: now };
            effects.push(Effect::Node(NodeEffect::ReadSignals));
        }
    }

    fn measure_pods(&mut self, disks: bool, now: Time, effects: &mut Vec<Effect>) {
        self.eviction_phase = EvictionPhase::Measuring { since: now };
        let disks = disks || self.pods.values().any(|it| it.is_evictable() && has_limits(&it.pod));
        effects.push(Effect::Node(NodeEffect::MeasurePods { disks }));
    }

    /// Evicts who takes more of the disk than they may; else, where the node is short of something, the first in rank.
    pub(crate) fn pods_measured(
        &mut self,
        result: Result<Vec<PodUse>, Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Vec<String> {
        if !matches!(self.eviction_phase, EvictionPhase::Measuring { .. }) {
            return Vec::new();
        }
        self.eviction_phase = EvictionPhase::Idle;
        let Ok(uses) = result else { return Vec::new() };
        let uses: BTreeMap<String, PodUse> = uses.into_iter().map(|it| (it.uid.clone(), it)).collect();
        let over = self.over_limits(&uses);
        if !over.is_empty() {
            for (uid, excess) in &over {
                effects.push(Effect::Node(NodeEffect::CountEviction { signal: excess.signal }));
                self.evict(uid, excess.message.clone(), IMMEDIATE_GRACE_SECONDS, false, now, effects);
            }
            self.eviction_phase = EvictionPhase::Cleaning { uid: over[0].0.clone(), since: now };
            return over.into_iter().map(|it| it.0).collect();
        }
        let Some(threshold) = self.pressure.foremost(&self.config.eviction).cloned() else { return Vec::new() };
        let Some(uid) = self.first_in_rank(threshold.signal, &uses) else { return Vec::new() };
        let grace =
            if threshold.is_hard() { IMMEDIATE_GRACE_SECONDS } else { self.config.eviction.max_pod_grace_seconds };
        let message = self.message(&threshold, &uid, uses.get(&uid));
        effects.push(Effect::Node(NodeEffect::CountEviction { signal: threshold.signal.as_str() }));
        self.evict(&uid, message, grace, true, now, effects);
        self.eviction_phase = EvictionPhase::Cleaning { uid: uid.clone(), since: now };
        vec![uid]
    }

    fn over_limits(&self, uses: &BTreeMap<String, PodUse>) -> Vec<(String, local_storage::Excess)> {
        let has_image_fs = self.pressure.has_image_fs();
        let over = |(uid, it): (&String, &PodMachine)| {
            let excess = local_storage::excess(&it.pod, uses.get(uid)?, has_image_fs)?;
            Some((uid.clone(), excess))
        };
        self.pods.iter().filter(|(_, it)| it.is_evictable() && !it.is_critical()).filter_map(over).collect()
    }

    fn first_in_rank(&self, signal: Signal, uses: &BTreeMap<String, PodUse>) -> Option<String> {
        let active = self.pods.iter().filter(|(_, it)| it.is_evictable());
        let candidates = active.map(|(uid, it)| rank::Candidate::new(uid, &it.pod, uses.get(uid)));
        let ranked = rank::ranked(signal, self.pressure.has_image_fs(), candidates.collect());
        ranked.into_iter().find(|uid| self.pods.get(uid).is_some_and(|it| !it.is_critical()))
    }

    fn evict(
        &mut self,
        uid: &str,
        message: String,
        grace_seconds: i64,
        tells_disruption: bool,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        self.with(uid, now, effects, |machine, cx| {
            cx.event(&machine.who, "", Warning, EVICTED, message.clone());
            machine.terminate(EVICTED, message, grace_seconds, tells_disruption);
        });
    }

    /// Looks again at once when the evicted pod is gone.
    pub(crate) fn note_cleanup(&mut self, effects: &mut Vec<Effect>) {
        let EvictionPhase::Cleaning { uid, .. } = &self.eviction_phase else { return };
        let is_gone = |it: &PodMachine| it.ending.as_ref().is_some_and(crate::pod::termination::Termination::is_over);
        if self.pods.get(uid).is_none_or(is_gone) {
            self.eviction_phase = EvictionPhase::Idle;
            effects.push(Effect::Node(NodeEffect::ReadSignals));
        }
    }

    /// As in `evictionMessage`: what there is too little of, and which containers have more of it than they asked for.
    fn message(&self, threshold: &Threshold, uid: &str, used: Option<&PodUse>) -> String {
        let resource = threshold.signal.resource();
        let mut message = format!("The node was low on resource: {resource}. ");
        if let Some((limit, left)) = self.pressure.shortage(resource, &self.config.eviction) {
            message += &format!("Threshold quantity: {limit}, available: {left}. ");
        }
        let (Some(machine), Some(used)) = (self.pods.get(uid), used) else { return message };
        for of in &used.containers {
            let Some(container) = all_containers(&machine.pod).find(|it| it.name == of.name) else { continue };
            let bytes = match resource {
                "memory" => Some(of.memory_bytes),
                "ephemeral-storage" => of.rootfs.map(|it| it.bytes.saturating_add(of.logs.bytes)),
                _ => None,
            };
            let Some(bytes) = bytes else { continue };
            let (usage, request) = (Quantity::bytes(bytes), quantity(container, false, resource).unwrap_or_default());
            if usage > request {
                let name = &of.name;
                message += &format!(
                    "Container {name} was using {usage}, request is {request}, has larger consumption of {resource}. "
                );
            }
        }
        message
    }

    /// Dead containers that nobody is shown any more: those before the newest, and all of pods that are over.
    fn drop_dead_containers(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let uids: Vec<String> = self.pods.keys().cloned().collect();
        for uid in uids {
            self.with(&uid, now, effects, |machine, cx| {
                let keeps_newest = !machine.is_terminal_in_api();
                let who = machine.who.clone();
                machine.container_records.values_mut().for_each(|it| it.drop_dead(&who, keeps_newest, cx));
            });
        }
    }
}
