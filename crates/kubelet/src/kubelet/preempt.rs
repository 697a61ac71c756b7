//! Makes room for pods that the system cannot be without, where only resources are short. Such a pod is decided on when those that
//! leave for it are gone.

use std::collections::BTreeSet;

use corten_api::core::v1::Pod;
use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    Effect, NodeEffect,
    kubelet::Kubelet,
    node::{
        admission::{NodeAdmissionInfo, Rejection, shortage},
        critical::{self, is_critical},
    },
};

impl Kubelet {
    /// Do pods that leave for this one still have their room?
    pub(crate) fn waits_for_room(&self, uid: &str) -> bool {
        let Some(machine) = self.pods.get(uid) else { return false };
        machine.admission.room_of.iter().any(|it| self.pods.get(it).is_some_and(|it| it.holds_room()))
    }

    /// Those that pods have left for, and that were not decided on since.
    pub(crate) fn with_room_made(&self) -> Vec<String> {
        let waiting = self.undecided().into_iter();
        waiting.filter(|it| !self.pods[it].admission.room_of.is_empty() && !self.waits_for_room(it)).collect()
    }

    /// Where a critical pod was turned down for resources, others leave for it; gives the verdict where that cannot help.
    pub(crate) fn make_room_for(
        &mut self,
        uid: &str,
        rejection: Rejection,
        info: &NodeAdmissionInfo,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<Rejection> {
        let machine = &self.pods[uid];
        if !is_critical(&machine.pod) || !rejection.is_of_resources() {
            return Some(rejection);
        }
        let running: Vec<(&String, &Pod)> =
            self.pods.iter().filter(|(_, it)| it.holds_room()).map(|(uid, it)| (uid, &*it.pod)).collect();
        let pods: Vec<&Pod> = running.iter().map(|it| it.1).collect();
        let short = shortage(&machine.pod, info, &pods);
        let victims = match critical::to_preempt(&machine.pod, &pods, &short) {
            Ok(victims) => victims,
            Err(why) => {
                let message = format!("Unexpected error while attempting to recover from admission failure: {why}");
                return Some(Rejection { reason: "UnexpectedAdmissionError", message });
            }
        };
        let victims: BTreeSet<String> = victims.into_iter().map(|it| running[it].0.clone()).collect();
        let resource = short.first().map_or("", |it| it.0);
        for victim in &victims {
            effects.push(Effect::Node(NodeEffect::CountPreemption { resource }));
            self.preempt(victim, now, effects);
        }
        if let Some(machine) = self.pods.get_mut(uid) {
            machine.admission.room_of = victims;
        }
        None
    }

    fn preempt(&mut self, uid: &str, now: Time, effects: &mut Vec<Effect>) {
        self.with(uid, now, effects, |machine, cx| {
            cx.event(&machine.who, "", Warning, critical::PREEMPTING, critical::MESSAGE.into());
            let grace = machine.spec().termination_grace_period_seconds.unwrap_or(30);
            machine.terminate(critical::PREEMPTING, critical::MESSAGE.into(), grace, true);
        });
        self.sync_pod(uid, now, effects);
    }
}
