//! Decides on pods that have not been decided on, once all is known that the decision needs.

use corten_api::core::v1::{Node, Pod};
use corten_meta::Time;

use crate::{
    ApiEffect, ApiFailure, Effect,
    kubelet::Kubelet,
    node::admission::{Rejection, verdict},
    pod::admission::NewestNode,
    spec::node_selection::is_selective,
};

impl Kubelet {
    /// Decides on a pod that has not been decided on, once all is known that the decision needs.
    pub(crate) fn admit(&mut self, uid: &str, now: Time, effects: &mut Vec<Effect>) {
        self.readmit(uid);
        let Some(machine) = self.pods.get(uid).filter(|it| it.in_api && !it.is_decided()) else { return };
        let is_leaving = machine.is_terminal_in_api() || machine.pod.metadata.deletion_timestamp.is_some();
        if is_leaving
            || machine.admission.newest_node == NewestNode::Asked
            || !self.runtime_is_known
            || self.waits_for_boot()
            || !(self.pods_are_known || machine.is_static())
            || self.waits_for_room(uid)
        {
            return;
        }
        let newest_node = machine.admission.newest_node;
        let Some(info) = self.node.admission_info(&self.config, is_selective(&machine.pod)) else { return };
        let taken: Vec<&Pod> = self.pods.values().filter(|it| it.holds_room()).map(|it| &*it.pod).collect();
        let mut verdict = verdict(&machine.pod, &info, &taken);
        // What is being given to another pod is not known to be there.
        if verdict.is_ok() && machine.admission.device_failure.is_none() && self.devices.is_busy(&machine.pod) {
            self.admit_devices(uid, effects);
            return;
        }
        if verdict.is_ok() {
            verdict = self.managers.admit(&self.config, &machine.pod, &mut self.devices);
        }
        if let Err(rejection) = verdict {
            match self.make_room_for(uid, rejection, &info, now, effects) {
                Some(rejection) => verdict = Err(rejection),
                None => return,
            }
        }
        let may_be_outdated =
            self.node.is_registered() && verdict.as_ref().is_err_and(Rejection::is_of_the_node_object);
        let is_asked_first = may_be_outdated && newest_node == NewestNode::NotAsked;
        let verdict = match verdict {
            Ok(()) => match self.admit_devices(uid, effects) {
                Some(verdict) => verdict,
                None => return,
            },
            refused => refused,
        };
        let Some(machine) = self.pods.get_mut(uid) else { return };
        if is_asked_first {
            machine.admission.newest_node = NewestNode::Asked;
            let (name, pod) = (self.config.node_name.clone(), machine.who.clone());
            effects.push(Effect::Api(ApiEffect::ReadNode { name, pod }));
        } else {
            machine.admission.verdict = Some(verdict);
        }
    }

    /// A pod that an earlier run has taken has what was written down then; else, where the managers are new, it is given it now,
    /// if that can be: it runs already, whatever they say.
    fn readmit(&mut self, uid: &str) {
        let Some(machine) = self.pods.get_mut(uid).filter(|it| it.admission.verdict.is_none() && it.is_decided())
        else {
            return;
        };
        if self.managers.are_on() && self.runtime_is_known && machine.holds_room() {
            machine.admission.verdict = Some(Ok(()));
            let _ = self.managers.admit(&self.config, &machine.pod, &mut self.devices);
        }
    }

    /// Where the Node could not be read, what is known of it decides.
    pub(crate) fn node_read(&mut self, uid: &str, result: Result<Box<Node>, ApiFailure>) -> Vec<String> {
        if let Ok(node) = result {
            self.node.set_node(Some(node));
        }
        if let Some(machine) = self.pods.get_mut(uid) {
            machine.admission.newest_node = NewestNode::Told;
        }
        self.undecided()
    }

    /// Those that wait for the decision, in the order upstream decides: the oldest first.
    pub(crate) fn undecided(&self) -> Vec<String> {
        let mut pods: Vec<_> = self.pods.iter().filter(|(_, it)| it.in_api && !it.is_decided()).collect();
        pods.sort_by_key(|(_, it)| it.pod.metadata.creation_timestamp.as_ref().map(|it| it.0));
        pods.into_iter().map(|(uid, _)| uid.clone()).collect()
    }
}
