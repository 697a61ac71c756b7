//! The machine: what its runtime has, and what becomes of what the kubelet asks for.

use std::time::Duration;

use corten_meta::Time;

use super::{World, show};
use crate::{
    AllocatedDevices, ContainerSpec, DeviceWish, Event, Exit, Failure, GivenDevice, Granted, HookAnswer, HostEffect,
    Image, Observed, ObservedContainer, ObservedSandbox, Outcome, PreparedClaim, PreparedDevice, ProbeVerdict,
    ReservedClaim, Snapshot, StartFailure, StartStage,
};

impl World {
    pub(super) fn snapshot(&mut self) {
        // A moment passes, or the kubelet could not know that this is newer than what it was told before.
        self.now = self.now.after(Duration::from_millis(1));
        let (sandboxes, containers) = (self.sandboxes.clone(), self.containers.clone());
        self.step(Event::Snapshot(Snapshot { taken_at: Some(self.now), sandboxes, containers }));
    }

    /// Answers what is pending and begins with `which`; with `go_on`, also what that leads to.
    pub(super) fn answer(&mut self, which: &str, failure: Option<&str>, go_on: bool) {
        for round in 0.. {
            assert!(round < 1000, "this has no end: {:?}", self.pending_text());
            let chosen = |it: &HostEffect| show::host(it).starts_with(which);
            let (now, later) = std::mem::take(&mut self.pending).into_iter().partition(chosen);
            self.pending = later;
            let now: Vec<HostEffect> = now;
            assert!(go_on || !now.is_empty(), "nothing pending begins with {which:?}: {:?}", self.pending_text());
            if now.is_empty() {
                return;
            }
            for effect in now {
                let pod = effect.pod().clone();
                let outcome = match failure {
                    None => self.succeed(effect),
                    Some(message) => self.fail(&effect, message),
                };
                let needs_look = matches!(outcome, Outcome::Stopped { .. } | Outcome::SandboxStopped { .. });
                self.step(Event::Done { pod, outcome });
                if needs_look {
                    self.snapshot();
                }
            }
            if !go_on {
                return;
            }
        }
    }

    /// Nothing runs any more, as after a plug was pulled.
    pub(super) fn end_all(&mut self) {
        let now = self.now;
        self.sandboxes.iter_mut().for_each(|it| it.ready = false);
        self.containers.iter_mut().for_each(|it| end(it, 137, now));
    }

    pub(super) fn pending_text(&self) -> Vec<String> {
        self.pending.iter().map(show::host).collect()
    }

    fn succeed(&mut self, effect: HostEffect) -> Outcome {
        match effect {
            HostEffect::PrepareVolumes { .. } => Outcome::Volumes(Ok(())),
            HostEffect::ReleaseVolumes { .. } => Outcome::VolumesReleased(Ok(())),
            HostEffect::RunSandbox(spec) => {
                self.n_made += 1;
                let sandbox = ObservedSandbox {
                    id: format!("s{}", self.n_made),
                    pod: spec.pod,
                    attempt: spec.attempt,
                    ready: true,
                    created_at: Some(self.now),
                    ips: if spec.host_network { Vec::new() } else { vec![format!("10.0.0.{}", self.n_made)] },
                };
                self.sandboxes.push(sandbox.clone());
                Outcome::Sandbox(Ok(sandbox))
            }
            HostEffect::StopSandbox { id, .. } => {
                self.sandboxes.iter_mut().filter(|it| it.id == id).for_each(|it| it.ready = false);
                let now = self.now;
                self.containers.iter_mut().filter(|it| it.sandbox_id == id).for_each(|it| end(it, 137, now));
                Outcome::SandboxStopped { id, result: Ok(()) }
            }
            HostEffect::RemoveSandbox { id, .. } => {
                self.sandboxes.retain(|it| it.id != id);
                self.containers.retain(|it| it.sandbox_id != id);
                Outcome::SandboxRemoved { id, result: Ok(()) }
            }
            HostEffect::InspectImage { container, image, .. } => {
                Outcome::Image { container, result: Ok(Some(present(&image))) }
            }
            HostEffect::PullImage { container, image, .. } => {
                Outcome::Pulled { container, result: Ok(present(&image)) }
            }
            HostEffect::StartContainer(spec) => {
                let container = self.container(&spec, Observed::Running { started_at: Some(self.now) });
                Outcome::Container { container: spec.name, attempt: spec.attempt, result: Ok(container) }
            }
            HostEffect::StopContainer { container, id, .. } => {
                let now = self.now;
                self.containers.iter_mut().filter(|it| it.id == id).for_each(|it| end(it, 143, now));
                Outcome::Stopped { container, id, result: Ok(()) }
            }
            HostEffect::RemoveContainer { container, id, .. } => {
                self.containers.retain(|it| it.id != id);
                Outcome::Removed { container, id, result: Ok(()) }
            }
            HostEffect::Probe { container, id, probe, .. } => {
                Outcome::Probed { container, id, probe, verdict: ProbeVerdict::Success }
            }
            HostEffect::RunHook { container, id, hook, .. } => {
                Outcome::Hooked { container, id, hook, result: Ok(HookAnswer::Ran) }
            }
            HostEffect::Resize { .. } => Outcome::Resized(Ok(())),
            HostEffect::PinContainer { container, .. } => Outcome::Pinned { container, result: Ok(()) },
            HostEffect::ReadFiles { container, files, .. } => {
                let content = |path: &str| self.files.get(path).map(|it| it.as_bytes().to_vec());
                let read = files.into_iter().map(|it| (it.clone(), content(&it.1))).collect();
                Outcome::FilesRead { container, result: Ok(read) }
            }
            HostEffect::TailLog { container, .. } => Outcome::LogTail { container, text: "oh no\n".into() },
            HostEffect::PrepareDevices { pod, claims } => {
                let device = |claim: &ReservedClaim, it: &GivenDevice| PreparedDevice {
                    requests: vec![it.request.clone()],
                    driver: it.driver.clone(),
                    pool: it.pool.clone(),
                    device: it.device.clone(),
                    cdi_devices: vec![format!("{}/claim={}-{}", it.driver, claim.claim, it.device)],
                };
                let one = |claim: ReservedClaim| {
                    let devices = claim.results.iter().map(|it| device(&claim, it)).collect();
                    PreparedClaim { in_pod: claim.in_pod.clone(), devices }
                };
                let prepared: Vec<_> = claims.into_iter().map(one).collect();
                self.prepared.insert(pod.uid.clone(), prepared.clone());
                Outcome::Prepared(Ok(prepared))
            }
            HostEffect::RecallDevices { pod } => Outcome::Recalled(self.prepared.get(&pod.uid).cloned()),
            HostEffect::AllocateDevices { pod, wish } => Outcome::Devices(Ok(Box::new(self.allocate(&pod.uid, wish)))),
            HostEffect::RemovePod { .. } => Outcome::PodRemoved(Ok(())),
        }
    }

    /// As a plugin that names its devices in the environment.
    fn allocate(&mut self, uid: &str, wish: DeviceWish) -> AllocatedDevices {
        let granted = Granted {
            env: vec![("FAKE".to_owned(), wish.ids.join(","))],
            cdi_devices: wish.ids.iter().map(|it| format!("example.com/fake={it}")).collect(),
            ..Granted::default()
        };
        let DeviceWish { container, resource, ids, .. } = wish;
        let given = AllocatedDevices { container, resource, ids, granted };
        self.devices.allocated.entry(uid.to_owned()).or_default().push(given.clone());
        given
    }

    fn fail(&mut self, effect: &HostEffect, message: &str) -> Outcome {
        match effect {
            // Not there is an answer, not a failure.
            HostEffect::InspectImage { container, .. } if message == "absent" => {
                Outcome::Image { container: container.clone(), result: Ok(None) }
            }
            HostEffect::StartContainer(spec) => {
                let (stage, message) = message.split_once(' ').unwrap();
                let stage = match stage {
                    "config" => StartStage::Config,
                    "create" => StartStage::Create,
                    _ => StartStage::Start,
                };
                let exit = Exit {
                    code: 128,
                    reason: "StartError".into(),
                    message: message.into(),
                    started_at: None,
                    finished_at: Some(self.now),
                };
                let container = (stage == StartStage::Start).then(|| self.container(spec, Observed::Exited(exit)));
                let result = Err(StartFailure { stage, message: message.into(), container });
                Outcome::Container { container: spec.name.clone(), attempt: spec.attempt, result }
            }
            // `silent 1`: the command's exit code.
            HostEffect::Probe { container, id, probe, .. } if message.starts_with("silent ") => {
                let verdict = ProbeVerdict::SilentFailure(message["silent ".len()..].parse().unwrap());
                Outcome::Probed { container: container.clone(), id: id.clone(), probe: *probe, verdict }
            }
            HostEffect::PullImage { container, .. } => {
                Outcome::Pulled { container: container.clone(), result: Err(Failure::new(message)) }
            }
            other => match other.failed(message) {
                Event::Done { outcome, .. } => outcome,
                event => panic!("{event:?} is no outcome"),
            },
        }
    }

    /// `makes web/app`, `runs web/app`: the machine shows the container before whoever starts it has his answer.
    pub(super) fn show_early(&mut self, path: &str, state: Observed) {
        let meant = |it: &HostEffect| match it {
            HostEffect::StartContainer(spec) => {
                Some(spec.clone()).filter(|it| format!("{}/{}", it.pod.key.name, it.name) == path)
            }
            _ => None,
        };
        let spec = self.pending.iter().find_map(meant);
        self.container(
            &spec.unwrap_or_else(|| panic!("{path} is not about to start: {:?}", self.pending_text())),
            state,
        );
        self.snapshot();
    }

    /// The one that the machine shows already, or a new one. What was only made may run now.
    fn container(&mut self, spec: &ContainerSpec, state: Observed) -> ObservedContainer {
        let is_it = |it: &&mut ObservedContainer| {
            (&it.pod, &it.name, it.attempt, &it.sandbox_id) == (&spec.pod, &spec.name, spec.attempt, &spec.sandbox_id)
        };
        if let Some(known) = self.containers.iter_mut().find(is_it) {
            if known.state == Observed::Created {
                known.state = state;
            }
            return known.clone();
        }
        self.n_made += 1;
        let container = ObservedContainer {
            id: format!("c{}", self.n_made),
            sandbox_id: spec.sandbox_id.clone(),
            pod: spec.pod.clone(),
            name: spec.name.clone(),
            attempt: spec.attempt,
            image: spec.image.clone(),
            image_id: spec.image_ref.clone(),
            hash: spec.annotations["io.kubernetes.container.hash"].clone(),
            created_at: Some(self.now),
            user: None,
            state,
        };
        self.containers.push(container.clone());
        container
    }

    /// `exit web/app 1`: its main process ends.
    pub(super) fn exit(&mut self, which: &str, code: &str) {
        let (pod, name) = which.split_once('/').unwrap();
        let now = self.now;
        let container = self.containers.iter_mut().rev().find(|it| it.pod.key.name == pod && it.name == name);
        end(container.unwrap(), code.parse().unwrap(), now);
        self.snapshot();
    }
}

fn end(container: &mut ObservedContainer, code: i32, now: Time) {
    if let Observed::Running { started_at } = container.state {
        let reason = if code == 0 { "Completed" } else { "Error" };
        container.state = Observed::Exited(Exit {
            code,
            reason: reason.into(),
            message: String::new(),
            started_at,
            finished_at: Some(now),
        });
    }
}

fn present(image: &str) -> Image {
    Image { image_ref: format!("sha256:{image}"), size_bytes: 1000, uid: None, username: String::new() }
}
