//! The status of one container.

use std::time::Duration;

use corten_api::{
    apimachinery::pkg::apis::meta::v1::Time as ApiTime,
    core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, ContainerUser, LinuxContainerUser, VolumeMountStatus,
    },
};
use corten_meta::Time;

use crate::{
    Exit, Observed, ObservedContainer, ProbeKind, User,
    pod::{
        container_record::{ContainerRecord, exit_of},
        machine::PodMachine,
    },
    spec::pod::{is_init, is_sidecar, restarts, spec_of},
};

const RUNTIME: &str = "containerd://";

/// How long a container that somebody may attach to has run before it is shown to run.
///
/// Kubernetes's kubelet looks at the runtime once a second (`genericPlegRelistPeriod`): what `kubectl run -i` or `kubectl
/// debug -i` began and is over by then is read from its log. Attached to amid its short life, it would have spoken to
/// nobody.
const ATTACHABLE_AFTER: Duration = Duration::from_secs(1);

impl PodMachine {
    pub(super) fn container_statuses(
        &self,
        now: Time,
        containers: &[Container],
        old: Option<&[ContainerStatus]>,
    ) -> Vec<ContainerStatus> {
        let one = |container: &Container| {
            let old = old.into_iter().flatten().find(|it| it.name == container.name);
            let record = self.container_records.get(&container.name);
            let is_hidden = record.and_then(|it| hidden_until(container, it.latest()?, now)).is_some();
            let ran = old.and_then(|it| it.state.as_ref()).is_some_and(|it| it.running.is_some());
            if is_hidden && !ran && self.ending.is_none() {
                return self.unseen(container, record, old);
            }
            self.container_status(container, record, old)
        };
        containers.iter().map(one).collect()
    }

    fn container_status(
        &self,
        container: &Container,
        record: Option<&ContainerRecord>,
        old: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let Some(latest) = record.and_then(ContainerRecord::latest) else {
            return self.unseen(container, record, old);
        };
        let record = record.expect("it has a latest attempt");
        let mut shown_exit = None;
        let state = match &latest.state {
            Observed::Running { started_at } => ContainerState {
                running: Some(ContainerStateRunning { started_at: started_at.map(|it| ApiTime(it.0)) }),
                ..ContainerState::default()
            },
            Observed::Exited(exit) => match &record.waiting {
                Some(_) if self.ending.is_none() && restarts(&self.pod, container, exit) => self.waiting(Some(record)),
                _ => {
                    shown_exit = Some(latest.id.as_str());
                    terminated(latest, exit)
                }
            },
            Observed::Created | Observed::Unknown => self.waiting(Some(record)),
        };
        let earlier = record.attempts.iter().rev().map(|it| &it.it).filter(|it| Some(it.id.as_str()) != shown_exit);
        let last_state = earlier.filter_map(|it| Some(terminated(it, exit_of(it)?))).next();
        let last_state = last_state.or_else(|| old.filter(|_| latest.attempt > 0)?.last_state.clone());
        let is_done = exit_of(latest).is_some_and(|it| it.code == 0);
        // An init container is ready when it is done, all others while they run.
        let must_end = is_init(&self.pod, &container.name) && !is_sidecar(container);
        // As in the probe manager's `UpdatePodStatus`: while this kubelet has not probed a container, what the one before
        // it found out holds.
        let id = Some(format!("{RUNTIME}{}", latest.id));
        let before = old.filter(|it| it.container_id == id && exit_of(latest).is_none());
        let was_started = before.is_some_and(|it| it.started == Some(true)) && record.is_unprobed(ProbeKind::Startup);
        let was_ready = before.is_some_and(|it| it.ready) && record.is_unprobed(ProbeKind::Readiness);
        ContainerStatus {
            name: container.name.clone(),
            state: Some(state),
            last_state: Some(last_state.unwrap_or_default()),
            ready: if must_end { is_done } else { was_ready || record.is_ready(container) },
            started: Some(was_started || record.is_started(container)),
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
        record: Option<&ContainerRecord>,
        old: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let lost = old.filter(|it| it.container_id.as_ref().is_some_and(|it| !it.is_empty()));
        let mut status = ContainerStatus {
            name: container.name.clone(),
            state: Some(self.waiting(record)),
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

    fn waiting(&self, record: Option<&ContainerRecord>) -> ContainerState {
        let has_init = spec_of(&self.pod).init_containers.as_ref().is_some_and(|it| !it.is_empty());
        let waiting = match record.and_then(|it| it.waiting.as_ref()) {
            Some(it) => ContainerStateWaiting { reason: Some(it.reason.into()), message: Some(it.message.clone()) },
            None => {
                let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
                ContainerStateWaiting { reason: Some(reason.into()), message: None }
            }
        };
        ContainerState { waiting: Some(waiting), ..ContainerState::default() }
    }
}

/// Until when a container that began a moment ago is not shown to run.
pub(super) fn hidden_until(container: &Container, latest: &ObservedContainer, now: Time) -> Option<Time> {
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
