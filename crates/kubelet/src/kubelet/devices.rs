//! What device plugins tell, and what becomes of the pods that ask for their devices.

use crate::{
    AllocatedDevices, DeviceNews, Effect, Failure, HostEffect, NodeEffect, PodRef,
    kubelet::Kubelet,
    node::{admission::Rejection, devices::Next},
    pod::{container_record::ContainerRecord, machine::PodMachine},
};

/// The reason upstream gives for whatever its managers of resources did not foresee.
const UNEXPECTED: &str = "UnexpectedAdmissionError";

impl Kubelet {
    pub(crate) fn devices_told(&mut self, news: DeviceNews) -> Vec<String> {
        let were_known = self.devices.are_known;
        self.devices.take(news);
        if were_known { self.with_devices() } else { self.all() }
    }

    /// Asks for the next devices of a pod that could be taken; what there is to say of it once it has all, or cannot have them.
    pub(crate) fn admit_devices(&mut self, uid: &str, effects: &mut Vec<Effect>) -> Option<Result<(), Rejection>> {
        let machine = self.pods.get_mut(uid)?;
        machine.admission.device_step = None;
        if let Some(failure) = &machine.admission.device_failure {
            return Some(Err(refused(failure)));
        }
        match self.devices.next(uid, &machine.pod) {
            Next::Done => Some(Ok(())),
            Next::Wait => {
                machine.admission.device_step = Some("devices are given to another pod first".to_owned());
                None
            }
            Next::Refuse(why) => Some(Err(refused(&why))),
            Next::Ask(wish) => {
                self.devices.ask(uid);
                let (container, resource) = (&wish.container, &wish.resource);
                let step = format!("the plugin of {resource} is asked for devices of container {container}");
                machine.admission.device_step = Some(step);
                effects.push(Effect::Host(HostEffect::AllocateDevices { pod: machine.who.clone(), wish }));
                None
            }
        }
    }

    pub(crate) fn devices_given(
        &mut self,
        pod: &PodRef,
        result: Result<Box<AllocatedDevices>, Failure>,
    ) -> Vec<String> {
        let given = match result {
            Ok(given) => Some(*given),
            Err(failure) => {
                if let Some(machine) = self.pods.get_mut(&pod.uid) {
                    machine.admission.device_failure = Some(failure.message);
                }
                None
            }
        };
        self.devices.answered(&pod.uid, given);
        let others = self.undecided().into_iter().filter(|it| *it != pod.uid);
        std::iter::once(pod.uid.clone()).chain(others).collect()
    }

    /// Gives back what pods had that are over.
    pub(crate) fn release_devices(&mut self, effects: &mut Vec<Effect>) {
        if !(self.runtime_is_known && self.pods_are_known) {
            return;
        }
        let pods = &self.pods;
        let released = self.devices.release(|uid| pods.get(uid).is_some_and(holds_devices));
        effects.extend(released.into_iter().map(|uid| Effect::Node(NodeEffect::ReleaseDevices { uid })));
    }

    /// Those whose status says how their devices are, and those that wait for some.
    fn with_devices(&self) -> Vec<String> {
        let has_some = |it: &PodMachine| crate::node::devices::wants_extended(&it.pod);
        let decided = self.pods.iter().filter(|(_, it)| it.is_decided() && has_some(it)).map(|it| it.0.clone());
        decided.chain(self.undecided()).collect()
    }
}

/// What runs has its devices, whatever the API says of its pod.
fn holds_devices(machine: &PodMachine) -> bool {
    let is_refused = machine.rejection().is_some();
    let runs = machine.is_starting() || machine.container_records.values().any(ContainerRecord::is_alive);
    let is_on_its_way = machine.in_api && !machine.is_decided() && !machine.is_terminal_in_api();
    !is_refused && (runs || is_on_its_way || machine.holds_room())
}

fn refused(why: &str) -> Rejection {
    Rejection { reason: UNEXPECTED, message: format!("Allocate failed due to {why}, which is unexpected") }
}
