//! How effects ended, told to the pods that wanted them.

use std::borrow::Cow;

use corten_api::core::v1::Container;
use corten_meta::Time;

use crate::{
    Effect, Failure, Outcome, PodRef,
    kubelet::Kubelet,
    pod::{
        container_record::{ContainerContext, ContainerRecord},
        containers,
        context::Context,
        image_state,
        machine::PodMachine,
        probe,
    },
    spec::{env_file::EnvFilesRead, image_volumes::volume_of, pod::any_container_named},
};

impl Kubelet {
    pub(super) fn done(&mut self, pod: &PodRef, outcome: Outcome, now: Time, effects: &mut Vec<Effect>) {
        match &outcome {
            Outcome::SandboxRemoved { id, result: Ok(()) } | Outcome::Removed { id, result: Ok(()), .. } => {
                self.removed.insert(id.clone(), now);
            }
            _ => {}
        }
        self.with(&pod.uid, now, effects, |machine, cx| apply(machine, outcome, cx));
    }
}

/// Tells a pod how one of its effects ended.
fn apply(machine: &mut PodMachine, outcome: Outcome, cx: &mut Context<'_>) {
    let failure = |it: Failure| it.message;
    match outcome {
        Outcome::Volumes(result) => machine.volumes_done(result, cx),
        Outcome::Sandbox(result) => machine.sandbox_done(result, cx),
        Outcome::SandboxStopped { id, result } => machine.sandbox_ended(&id, false, result, cx),
        Outcome::SandboxRemoved { id, result } => machine.sandbox_ended(&id, true, result, cx),
        Outcome::FilesRead { container, result } => {
            let result = result.map_err(failure);
            on(machine, &container, cx, |record, _, _| record.env_files = EnvFilesRead::Done(result));
        }
        Outcome::Resized(result) => machine.resized(result, cx),
        // Taken in before: it is about who is taken, and not about one pod alone.
        Outcome::Devices(_) => {}
        Outcome::Prepared(result) => machine.devices_prepared(result, cx),
        Outcome::Recalled(found) => machine.devices_recalled(found),
        Outcome::Pinned { container, result } => {
            on(machine, &container, cx, |record, _, cx| record.pinned.done(result.is_ok(), cx.now));
        }
        Outcome::PodRemoved(result) => machine.files_removed(&result, cx),
        Outcome::VolumesReleased(result) => machine.volumes_released(&result, cx),
        Outcome::Image { container, result } if volume_of(&container).is_some() => {
            let volume = volume_of(&container).unwrap_or_default();
            machine.with_image_volume(volume, cx, |record, context, cx| {
                image_state::inspected(record, context, result, cx)
            });
        }
        Outcome::Pulled { container, result } if volume_of(&container).is_some() => {
            let volume = volume_of(&container).unwrap_or_default();
            machine
                .with_image_volume(volume, cx, |record, context, cx| image_state::pulled(record, context, result, cx));
        }
        Outcome::Image { container, result } => {
            on(machine, &container, cx, |record, context, cx| image_state::inspected(record, context, result, cx));
        }
        Outcome::Pulled { container, result } => {
            on(machine, &container, cx, |record, context, cx| image_state::pulled(record, context, result, cx));
        }
        Outcome::Container { container, result, .. } => {
            on(machine, &container, cx, |record, context, cx| containers::started(record, context, result, cx));
        }
        Outcome::Stopped { container, id, result } => {
            on(machine, &container, cx, |record, _, cx| containers::stopped(record, &id, &result, cx));
            match result {
                Ok(()) => machine.stop_problem = None,
                Err(failure) => machine.container_stays(&container, &failure, cx),
            }
        }
        Outcome::Removed { container, id, result } => {
            on(machine, &container, cx, |record, _, cx| record.removed(&id, result.is_ok(), cx.now));
        }
        Outcome::Probed { container, id, probe, verdict } => {
            on(machine, &container, cx, |record, context, cx| {
                probe::answered(record, context, &id, probe, &verdict, cx)
            });
        }
        Outcome::Hooked { container, id, hook, result } => {
            let result = result.map_err(failure);
            on(machine, &container, cx, |record, context, cx| {
                containers::hooked(record, context, &id, hook, result, cx)
            });
        }
        Outcome::LogTail { container, text } => {
            on(machine, &container, cx, |record, _, _| record.log_tail = text);
        }
    }
}

/// Calls `act` for a container by name, even one the spec does not have.
fn on(
    machine: &mut PodMachine,
    name: &str,
    cx: &mut Context<'_>,
    act: impl FnOnce(&mut ContainerRecord, &ContainerContext<'_>, &mut Context<'_>),
) {
    let pod = machine.pod.clone();
    let stranger = || Cow::Owned(Container { name: name.into(), ..Container::default() });
    machine.with_container_record(&any_container_named(&pod, name).unwrap_or_else(stranger), cx, act);
}
