//! A pod's status, from what is known of it; and the patch that makes the API's the same.

use std::time::Duration;

use corten_api::{
    apimachinery::pkg::apis::meta::v1::Time as ApiTime,
    core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, ContainerUser, HostIP, LinuxContainerUser, PodIP, PodStatus, VolumeMountStatus,
    },
};
use corten_meta::Time;
use serde_json::{Map, Value, json};

use crate::{
    ApiEffect, ApiFailure, Exit, Observed, ObservedContainer, ProbeKind, User,
    backoff::pause,
    pod::{
        conditions,
        container_record::{ContainerRecord, exit_of},
        context::Context,
        device_health,
        machine::PodMachine,
        restart_all,
        termination::{DEADLINE_MESSAGE, Why},
    },
    spec::{
        pod::{any_container_named, as_container, ephemeral_containers, is_init, is_sidecar, restarts, spec_of},
        read_only, sandbox,
    },
};

pub(crate) const RUNTIME: &str = "containerd://";

/// How long a container that somebody may attach to has run before it is shown to run.
///
/// Kubernetes's kubelet looks at the runtime once a second (`genericPlegRelistPeriod`): what `kubectl run -i` or `kubectl
/// debug -i` began and is over by then is read from its log. Attached to amid its short life, it would have spoken to
/// nobody.
const ATTACHABLE_AFTER: Duration = Duration::from_secs(1);

impl PodMachine {
    /// Sends what differs from the API's status; once nothing does, a pod that is over is deleted there.
    pub(crate) fn publish(&mut self, cx: &mut Context<'_>) {
        let hidden = self.tracks.iter().filter_map(|(name, track)| {
            let container = any_container_named(&self.pod, name)?;
            hidden_until(&container, track.latest()?, cx.now)
        });
        if let Some(until) = hidden.min() {
            cx.wake_at(until);
        }
        if self.patch.in_flight {
            return;
        }
        let patch = self.untold(cx);
        let version = self.pod.metadata.resource_version.as_ref();
        let was_sent = self.patch.made.is_some() && self.patch.made.as_ref() == version && self.patch.sent == patch;
        if patch.is_empty() || was_sent {
            self.delete_from_api(cx);
            return;
        }
        if !cx.is_due(self.patch.retry_at) {
            return;
        }
        (self.patch.in_flight, self.patch.sent, self.patch.made) = (true, patch.clone(), None);
        let mut metadata = json!({"uid": self.mirror.as_ref().unwrap_or(&self.who.uid)});
        if let Some(version) = &self.pod.metadata.resource_version {
            metadata["resourceVersion"] = version.as_str().into();
        }
        let patch = json!({"metadata": metadata, "status": patch});
        cx.api(ApiEffect::PatchPodStatus { pod: self.who.clone(), patch });
    }

    /// What the API's status must become where it is not so yet.
    fn untold(&self, cx: &Context<'_>) -> Map<String, Value> {
        let wanted = self.status(cx);
        // Most looks at a pod find nothing new; as JSON it would cost more to see that.
        if self.pod.status.as_ref() == Some(&wanted) {
            return Map::new();
        }
        let json = |it: &PodStatus| serde_json::to_value(it).expect("a status has only string keys");
        let told = self.pod.status.as_ref().map_or_else(|| json!({}), json);
        difference(&told, &json(&wanted))
    }

    pub(crate) fn patch_failed(&mut self, failure: &ApiFailure, cx: &mut Context<'_>) {
        let patch = &mut self.patch;
        patch.in_flight = false;
        patch.failures += 1;
        let wait = match failure {
            // The pod is gone or is about to be seen newer: the watch brings what to decide on.
            ApiFailure::Gone | ApiFailure::Conflict => std::time::Duration::from_secs(1),
            ApiFailure::Other(_) => pause(patch.failures, 30),
        };
        patch.retry_at = Some(cx.now.after(wait));
        cx.wake_at(cx.now.after(wait));
    }

    fn status(&self, cx: &Context<'_>) -> PodStatus {
        let pod = &self.pod;
        let spec = spec_of(pod);
        // What is not the kubelet's stays as it is.
        let mut status = pod.status.clone().unwrap_or_default();
        let old_phase = status.phase.clone().unwrap_or_default();
        // Nothing ever ran of a pod that was not taken: it has no containers to tell of.
        if self.is_terminal_in_api() && status.container_statuses.is_none() && !self.has_containers() {
            return status;
        }
        if let Some(rejection) = self.rejection() {
            status.start_time = Some(ApiTime(self.started.0));
            status.qos_class.get_or_insert_with(|| sandbox::qos_name(sandbox::qos(pod)).into());
            status.observed_generation = pod.metadata.generation.or(status.observed_generation);
            status.phase = Some("Failed".into());
            status.reason = Some(rejection.reason.into());
            status.message = Some(format!("Pod was rejected: {}", rejection.message));
            conditions::update(&mut status, pod, false, cx.now);
            return status;
        }
        let ips = self.ips(cx);
        status.start_time = Some(ApiTime(self.started.0));
        status.host_ip = cx.config.node_ips.first().cloned();
        status.host_ips = Some(cx.config.node_ips.iter().map(|ip| HostIP { ip: ip.clone() }).collect());
        if !ips.is_empty() {
            status.pod_ip = ips.first().cloned();
            status.pod_ips = Some(ips.iter().map(|ip| PodIP { ip: ip.clone() }).collect());
        }
        status.qos_class.get_or_insert_with(|| sandbox::qos_name(sandbox::qos(pod)).into());
        if let Some(generation) = pod.metadata.generation {
            status.observed_generation = Some(generation);
        }
        let init = spec.init_containers.as_deref().unwrap_or_default();
        let init_statuses = self.container_statuses(cx.now, init, status.init_container_statuses.as_deref());
        status.init_container_statuses = Some(init_statuses).filter(|it| !it.is_empty());
        status.container_statuses =
            Some(self.container_statuses(cx.now, &spec.containers, status.container_statuses.as_deref()));
        let looking: Vec<Container> = ephemeral_containers(pod).map(as_container).collect();
        let statuses = self.container_statuses(cx.now, &looking, status.ephemeral_container_statuses.as_deref());
        // Whether an ephemeral container is ready is nobody's question.
        let plain = |it| ContainerStatus { ready: false, started: None, ..it };
        status.ephemeral_container_statuses =
            Some(statuses.into_iter().map(plain).collect::<Vec<_>>()).filter(|it| !it.is_empty());
        let is_final = |phase: &str| matches!(phase, "Succeeded" | "Failed");
        let phase = self.phase(&status);
        // A phase that is final is never taken back; and none is final while anything may still run.
        let keeps_old = (is_final(&old_phase) && !self.is_static()) || (is_final(phase) && self.may_run());
        if !keeps_old && self.ending.as_ref().is_some_and(|it| it.why == Why::Deadline) {
            status.reason = Some("DeadlineExceeded".into());
            status.message = Some(DEADLINE_MESSAGE.into());
        }
        if let Some(termination) = self.termination.as_ref().filter(|_| !keeps_old && is_final(phase)) {
            status.reason = Some(termination.reason.into());
            status.message = Some(termination.message.clone());
        }
        status.phase = Some(if keeps_old { old_phase } else { phase.into() });
        let has_network = self.sandbox().is_some();
        conditions::update(&mut status, pod, has_network, cx.now);
        if let Some(termination) = self.termination.as_ref().filter(|it| it.tells_disruption) {
            conditions::disrupt(&mut status, pod, &termination.message, cx.now);
        }
        self.resize_conditions(&mut status, cx.now);
        self.restart_condition(&mut status, cx.now);
        if let Some(of_pod) = &spec.resources {
            (status.resources, status.allocated_resources) = (Some(of_pod.clone()), of_pod.requests.clone());
        }
        read_only::show(pod, &mut status, cx.facts);
        device_health::show(pod, &mut status, cx);
        status
    }

    pub(crate) fn may_run(&self) -> bool {
        self.tracks.values().any(|it| it.is_alive() || it.starting.is_some())
    }

    fn container_statuses(
        &self,
        now: Time,
        containers: &[Container],
        old: Option<&[ContainerStatus]>,
    ) -> Vec<ContainerStatus> {
        let one = |container: &Container| {
            let old = old.into_iter().flatten().find(|it| it.name == container.name);
            let track = self.tracks.get(&container.name);
            let is_hidden = track.and_then(|it| hidden_until(container, it.latest()?, now)).is_some();
            let ran = old.and_then(|it| it.state.as_ref()).is_some_and(|it| it.running.is_some());
            if is_hidden && !ran && self.ending.is_none() {
                return self.unseen(container, track, old);
            }
            self.container_status(container, track, old)
        };
        containers.iter().map(one).collect()
    }

    fn container_status(
        &self,
        container: &Container,
        track: Option<&ContainerRecord>,
        old: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let Some(latest) = track.and_then(ContainerRecord::latest) else {
            return self.unseen(container, track, old);
        };
        let track = track.expect("it has a latest attempt");
        let mut shown_exit = None;
        let state = match &latest.state {
            Observed::Running { started_at } => ContainerState {
                running: Some(ContainerStateRunning { started_at: started_at.map(|it| ApiTime(it.0)) }),
                ..ContainerState::default()
            },
            Observed::Exited(exit) => match &track.waiting {
                Some(_) if self.ending.is_none() && restarts(&self.pod, container, exit) => self.waiting(Some(track)),
                _ => {
                    shown_exit = Some(latest.id.as_str());
                    terminated(latest, exit)
                }
            },
            Observed::Created | Observed::Unknown => self.waiting(Some(track)),
        };
        let earlier = track.attempts.iter().rev().map(|it| &it.it).filter(|it| Some(it.id.as_str()) != shown_exit);
        let last_state = earlier.filter_map(|it| Some(terminated(it, exit_of(it)?))).next();
        let last_state = last_state.or_else(|| old.filter(|_| latest.attempt > 0)?.last_state.clone());
        let is_done = exit_of(latest).is_some_and(|it| it.code == 0);
        // An init container is ready when it is done, all others while they run.
        let must_end = is_init(&self.pod, &container.name) && !is_sidecar(container);
        // As in the probe manager's `UpdatePodStatus`: while this kubelet has not probed a container, what the one before
        // it found out holds.
        let id = Some(format!("{RUNTIME}{}", latest.id));
        let before = old.filter(|it| it.container_id == id && exit_of(latest).is_none());
        let was_started = before.is_some_and(|it| it.started == Some(true)) && track.is_unprobed(ProbeKind::Startup);
        let was_ready = before.is_some_and(|it| it.ready) && track.is_unprobed(ProbeKind::Readiness);
        ContainerStatus {
            name: container.name.clone(),
            state: Some(state),
            last_state: Some(last_state.unwrap_or_default()),
            ready: if must_end { is_done } else { was_ready || track.is_ready(container) },
            started: Some(was_started || track.is_started(container)),
            stop_signal: container.lifecycle.as_ref().and_then(|it| it.stop_signal.clone()),
            restart_count: i32::try_from(latest.attempt).unwrap_or(i32::MAX),
            image: latest.image.clone(),
            image_id: latest.image_id.clone(),
            container_id: id,
            user: latest.user.as_ref().map(shown_user),
            ..self.fixed(container, old)
        }
    }

    /// The status of a container the runtime does not have: not yet, or no longer.
    fn unseen(
        &self,
        container: &Container,
        track: Option<&ContainerRecord>,
        old: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let lost = old.filter(|it| it.container_id.as_ref().is_some_and(|it| !it.is_empty()));
        let mut status = ContainerStatus {
            name: container.name.clone(),
            state: Some(self.waiting(track)),
            last_state: Some(ContainerState::default()),
            image: container.image.clone().unwrap_or_default(),
            started: Some(false),
            ..self.fixed(container, old)
        };
        let Some(old) = lost else { return status };
        let old_exit = old.state.as_ref().and_then(|it| it.terminated.clone());
        if self.ending.is_some() && old_exit.is_some() {
            return ContainerStatus { ready: old.ready, started: Some(false), ..old.clone() };
        }
        let what = if self.ending.is_some() { "terminated" } else { "restarted" };
        let unknown = || ContainerStateTerminated {
            exit_code: 137,
            reason: Some("ContainerStatusUnknown".into()),
            message: Some(format!("The container could not be located when the pod was {what}")),
            ..ContainerStateTerminated::default()
        };
        let was_running = old.state.as_ref().is_some_and(|it| it.running.is_some());
        let exit = old_exit.or_else(|| was_running.then(unknown));
        let exit = exit.map(|it| ContainerState { terminated: Some(it), ..ContainerState::default() });
        status.restart_count = old.restart_count;
        if self.ending.is_some() {
            (status.state, status.last_state) = (exit.or(status.state), old.last_state.clone());
        } else {
            status.last_state = exit.or_else(|| old.last_state.clone());
        }
        status.container_id.clone_from(&old.container_id);
        status.image_id.clone_from(&old.image_id);
        status
    }

    /// The fields that follow from the spec alone.
    fn fixed(&self, container: &Container, old: Option<&ContainerStatus>) -> ContainerStatus {
        let mounts = container.volume_mounts.iter().flatten().map(|it| VolumeMountStatus {
            name: it.name.clone(),
            mount_path: it.mount_path.clone(),
            read_only: it.read_only.filter(|it| *it),
            recursive_read_only: (it.read_only == Some(true)).then(|| "Disabled".to_owned()),
            ..VolumeMountStatus::default()
        });
        let mounts: Vec<_> = mounts.collect();
        let granted = container.resources.as_ref();
        ContainerStatus {
            allocated_resources: granted.and_then(|it| it.requests.clone()),
            resources: self.shown_resources(container).or_else(|| old.and_then(|it| it.resources.clone())),
            volume_mounts: Some(mounts).filter(|it| !it.is_empty()),
            ..ContainerStatus::default()
        }
    }

    fn waiting(&self, track: Option<&ContainerRecord>) -> ContainerState {
        let has_init = spec_of(&self.pod).init_containers.as_ref().is_some_and(|it| !it.is_empty());
        let waiting = match track.and_then(|it| it.waiting.as_ref()) {
            Some(it) => ContainerStateWaiting { reason: Some(it.reason.into()), message: Some(it.message.clone()) },
            None => {
                let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
                ContainerStateWaiting { reason: Some(reason.into()), message: None }
            }
        };
        ContainerState { waiting: Some(waiting), ..ContainerState::default() }
    }

    /// The phase, read off the containers' states (`getPhase`).
    fn phase(&self, status: &PodStatus) -> &'static str {
        let is_ending = self.ending.as_ref().map(|it| it.why);
        if is_ending.is_none() && self.must_restart_all() {
            let is_pending = self.pod.status.as_ref().is_none_or(|it| it.phase.as_deref() == Some("Pending"));
            return if is_pending { "Pending" } else { "Running" };
        }
        let all = || status.container_statuses.iter().flatten();
        let terminated =
            |it: &ContainerStatus| it.state.as_ref().and_then(|it| it.terminated.as_ref()).map(|it| it.exit_code);
        if is_ending == Some(Why::Deadline) || self.termination.is_some() {
            return "Failed";
        }
        let alive = |it: &ContainerStatus| it.state.as_ref().is_some_and(|it| it.running.is_some());
        let all_ended = all().all(|it| terminated(it).is_some());
        if is_ending.is_some() && all_ended && !status.init_container_statuses.iter().flatten().any(alive) {
            let init_failed = status.init_container_statuses.iter().flatten().any(|it| {
                let spec = crate::spec::pod::container_named(&self.pod, &it.name);
                spec.is_some_and(|it| !is_sidecar(it)) && terminated(it).is_some_and(|it| it != 0)
            });
            let succeeded = !init_failed && all().all(|it| terminated(it) == Some(0));
            return if succeeded { "Succeeded" } else { "Failed" };
        }
        let mut running = 0;
        let (mut stopped, mut succeeded, mut waiting) = (0, 0, 0);
        for it in all() {
            let state = it.state.clone().unwrap_or_default();
            let has_run = it.last_state.as_ref().is_some_and(|it| it.terminated.is_some());
            match (state.running, state.terminated) {
                (Some(_), _) => running += 1,
                (_, Some(exit)) => {
                    stopped += 1;
                    succeeded += u32::from(exit.exit_code == 0);
                }
                // Begun anew with all others: it is on its way, not at its end.
                _ if has_run && restart_all::may_happen(&self.pod) => return "Running",
                _ if has_run => stopped += 1,
                _ => waiting += 1,
            }
        }
        if self.init_failed(status) {
            return "Failed";
        }
        if waiting > 0 || (running == 0 && stopped == 0) || !self.init_done(status) {
            return "Pending";
        }
        let policy = spec_of(&self.pod).restart_policy.as_deref().unwrap_or("Always");
        match (running, policy) {
            (0, "Always") => "Running",
            // By its own policy or rules, whatever the pod's are.
            (0, _) if self.begins_again() => "Running",
            (0, _) if stopped == succeeded => "Succeeded",
            (0, "Never") => "Failed",
            _ => "Running",
        }
    }

    /// Some container that has ended runs again.
    fn begins_again(&self) -> bool {
        spec_of(&self.pod).containers.iter().any(|it| {
            let track = self.tracks.get(&it.name);
            let exit = track.and_then(|it| exit_of(it.latest()?));
            exit.is_some_and(|exit| restarts(&self.pod, it, exit) || track.is_some_and(ContainerRecord::must_restart))
        })
    }

    fn init_failed(&self, status: &PodStatus) -> bool {
        let spec = spec_of(&self.pod);
        let failed = |container: &Container| {
            let it = status.init_container_statuses.iter().flatten().find(|it| it.name == container.name);
            let exit = it.and_then(|it| it.state.as_ref()?.terminated.as_ref());
            let policy = container.restart_policy.as_deref().or(spec.restart_policy.as_deref());
            exit.is_some_and(|it| it.exit_code != 0) && policy == Some("Never")
        };
        spec.init_containers.iter().flatten().any(failed)
    }

    fn init_done(&self, status: &PodStatus) -> bool {
        // Containers of the second round prove that the first one is over, even where its remains are gone.
        let began = status.container_statuses.iter().flatten().any(|it| it.container_id.is_some());
        began || conditions::incomplete_init(&self.pod, status).is_empty()
    }
}

/// Until when a container that began a moment ago is not shown to run.
fn hidden_until(container: &Container, latest: &ObservedContainer, now: Time) -> Option<Time> {
    let is_first = latest.attempt == 0 && container.stdin == Some(true);
    match &latest.state {
        Observed::Running { started_at: Some(started_at) } if is_first => {
            Some(started_at.after(ATTACHABLE_AFTER)).filter(|it| *it > now)
        }
        _ => None,
    }
}

fn shown_user(user: &User) -> ContainerUser {
    let groups = Some(user.groups.clone()).filter(|it| !it.is_empty());
    ContainerUser { linux: Some(LinuxContainerUser { uid: user.uid, gid: user.gid, supplemental_groups: groups }) }
}

fn terminated(container: &ObservedContainer, exit: &Exit) -> ContainerState {
    let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
    // A container that could not be started has the times that CRI's zeros are: 1970.
    let time = |it: Option<Time>| Some(ApiTime(it.unwrap_or(Time::from_unix_seconds(0)).0));
    let plain = if exit.code == 0 { "Completed" } else { "Error" };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            container_id: Some(format!("{RUNTIME}{}", container.id)),
            exit_code: exit.code,
            reason: text(&exit.reason).or_else(|| text(plain)),
            message: text(&exit.message),
            started_at: time(exit.started_at),
            finished_at: time(exit.finished_at),
            signal: None,
        }),
        ..ContainerState::default()
    }
}

/// The top-level fields that differ, whole; `null` for one that goes.
fn difference(current: &Value, wanted: &Value) -> Map<String, Value> {
    let empty = Map::new();
    let current = current.as_object().unwrap_or(&empty);
    let wanted = wanted.as_object().unwrap_or(&empty);
    let changed = wanted.iter().filter(|(name, value)| current.get(*name) != Some(value));
    let gone = current.keys().filter(|it| !wanted.contains_key(*it));
    changed.map(|(name, value)| (name.clone(), value.clone())).chain(gone.map(|it| (it.clone(), Value::Null))).collect()
}
