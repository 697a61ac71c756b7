//! Keeps containers where they belong while others come and go: what nobody has for himself is shared by all the rest.

use corten_meta::Time;

use crate::{Effect, HostEffect, NodeEffect, kubelet::Kubelet};

impl Kubelet {
    /// Takes back what pods had that are gone, has what is given written down, and moves who shares; when to look again.
    pub(crate) fn tend_managers(&mut self, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        if !self.managers.are_on() {
            return None;
        }
        self.release_gone();
        if let Some(states) = self.managers.take_unnoted() {
            effects.push(Effect::Node(NodeEffect::NoteManagerStates(states)));
        }
        if let Some(counts) = self.managers.take_uncounted() {
            effects.push(Effect::Node(NodeEffect::CountManagers(counts)));
        }
        let mut wake = None;
        for (uid, machine) in &mut self.pods {
            for (name, record) in &mut machine.container_records {
                let Some(id) = record.running().map(|it| it.id.clone()) else { continue };
                let cpus = self.managers.pins(uid, name).cpus;
                let wanted = Some((id.clone(), cpus.clone()));
                if cpus.is_empty() || record.pinned.given == wanted || record.pinned.in_flight.is_some() {
                    continue;
                }
                if let Some(at) = record.pinned.retry_at.filter(|it| *it > now) {
                    wake = Some(wake.map_or(at, |it: Time| it.min(at)));
                    continue;
                }
                record.pinned.in_flight = wanted;
                let (pod, container) = (machine.who.clone(), name.clone());
                effects.push(Effect::Host(HostEffect::PinContainer { pod, container, id, cpus: cpus.to_string() }));
            }
        }
        wake
    }

    /// Pods that have ended, and of which nothing runs. Before all are known nobody is gone.
    fn release_gone(&mut self) {
        if !(self.pods_are_known && self.manifests.are_known && self.runtime_is_known) {
            return;
        }
        for uid in self.managers.holders() {
            let has = |it: &crate::pod::machine::PodMachine| it.holds_room() || it.is_alive();
            if !self.pods.get(&uid).is_some_and(has) {
                self.managers.release(&uid);
            }
        }
    }
}
