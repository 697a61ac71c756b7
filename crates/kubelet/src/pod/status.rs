//! A pod's status, from what is known of it; and the patch that makes the API's the same.

mod of_container;

use corten_api::{
    apimachinery::pkg::apis::meta::v1::Time as ApiTime,
    core::v1::{Container, ContainerStatus, HostIP, Pod, PodIP, PodStatus},
};
use corten_meta::Time;
use of_container::hidden_until;
use serde_json::{Map, Value, json};

use crate::{
    ApiEffect, ApiFailure, Effect, NodeEffect,
    backoff::pause,
    pod::{
        conditions,
        container_record::{ContainerRecord, exit_of},
        context::Context,
        device_health,
        machine::{PodMachine, Start},
        restart_all,
        termination::{DEADLINE_MESSAGE, Why},
    },
    spec::{
        pod::{any_container_named, as_container, ephemeral_containers, is_sidecar, restarts, spec_of},
        read_only, sandbox,
    },
};

impl PodMachine {
    /// Sends what differs from the API's status; once nothing does, a pod that is over is deleted there.
    pub(crate) fn publish(&mut self, cx: &mut Context<'_>) {
        let hidden = self.container_records.iter().filter_map(|(name, record)| {
            let container = any_container_named(&self.pod, name)?;
            hidden_until(&container, record.latest()?, cx.now)
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

    /// As in the kubelet's `SyncPod`: how long the pod took until it runs, whether or not the API has heard of it. One that ran before
    /// this kubelet saw it counts for none.
    pub(crate) fn note_start(&mut self, cx: &mut Context<'_>) {
        if self.start == Start::Over {
            return;
        }
        let is = |it: &PodStatus, phase: &str| it.phase.as_deref() == Some(phase);
        let status = self.status(cx);
        if is(&status, "Running") && self.start == Start::Pending {
            cx.effects.push(Effect::Node(NodeEffect::CountPodStart { took: cx.now.since(self.started) }));
        }
        self.start = if is(&status, "Pending") { Start::Pending } else { Start::Over };
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

    /// The pod with the status that it has by what is known here.
    pub(crate) fn shown(&self, cx: &Context<'_>) -> Pod {
        let mut pod = (*self.pod).clone();
        pod.status = Some(self.status(cx));
        pod
    }

    fn status(&self, cx: &Context<'_>) -> PodStatus {
        let pod = &self.pod;
        // What is not the kubelet's stays as it is.
        let mut status = pod.status.clone().unwrap_or_default();
        // Nothing ever ran of a pod that was not taken: it has no containers to tell of.
        if self.is_terminal_in_api() && status.container_statuses.is_none() && !self.has_containers() {
            return status;
        }
        status.start_time = Some(ApiTime(self.started.0));
        status.qos_class.get_or_insert_with(|| sandbox::qos_name(sandbox::qos(pod)).into());
        status.observed_generation = pod.metadata.generation.or(status.observed_generation);
        if let Some(rejection) = self.rejection() {
            status.phase = Some("Failed".into());
            status.reason = Some(rejection.reason.into());
            status.message = Some(format!("Pod was rejected: {}", rejection.message));
            conditions::update(&mut status, pod, false, cx.now);
            return status;
        }
        self.show_addresses(&mut status, cx);
        self.show_containers(&mut status, cx.now);
        self.show_phase(&mut status);
        let has_network = self.sandbox().is_some();
        conditions::update(&mut status, pod, has_network, cx.now);
        if let Some(termination) = self.termination.as_ref().filter(|it| it.tells_disruption) {
            conditions::disrupt(&mut status, pod, &termination.message, cx.now);
        }
        self.resize_conditions(&mut status, cx.now);
        self.restart_condition(&mut status, cx.now);
        if let Some(of_pod) = &spec_of(pod).resources {
            (status.resources, status.allocated_resources) = (Some(of_pod.clone()), of_pod.requests.clone());
        }
        read_only::show(pod, &mut status, cx.facts);
        device_health::show(pod, &mut status, cx);
        status
    }

    fn show_addresses(&self, status: &mut PodStatus, cx: &Context<'_>) {
        let (node_ips, ips) = (&cx.config.node_ips, self.ips(cx));
        status.host_ip = node_ips.first().cloned();
        status.host_ips = Some(node_ips.iter().map(|ip| HostIP { ip: ip.clone() }).collect());
        if !ips.is_empty() {
            status.pod_ip = ips.first().cloned();
            status.pod_ips = Some(ips.iter().map(|ip| PodIP { ip: ip.clone() }).collect());
        }
    }

    fn show_containers(&self, status: &mut PodStatus, now: Time) {
        let (pod, spec) = (&self.pod, spec_of(&self.pod));
        let init = spec.init_containers.as_deref().unwrap_or_default();
        let init_statuses = self.container_statuses(now, init, status.init_container_statuses.as_deref());
        status.init_container_statuses = Some(init_statuses).filter(|it| !it.is_empty());
        status.container_statuses =
            Some(self.container_statuses(now, &spec.containers, status.container_statuses.as_deref()));
        let looking: Vec<Container> = ephemeral_containers(pod).map(as_container).collect();
        let statuses = self.container_statuses(now, &looking, status.ephemeral_container_statuses.as_deref());
        // Whether an ephemeral container is ready is nobody's question.
        let plain = |it| ContainerStatus { ready: false, started: None, ..it };
        status.ephemeral_container_statuses =
            Some(statuses.into_iter().map(plain).collect::<Vec<_>>()).filter(|it| !it.is_empty());
    }

    /// The phase that its containers have brought it to, and what ended it. A phase that is final is never taken back; and none is
    /// final while anything may still run, nor while a driver may have devices prepared for it: the claim would be given to the next
    /// pod before that is taken back (`PodCouldHaveRunningContainers`).
    fn show_phase(&self, status: &mut PodStatus) {
        let is_final = |phase: &str| matches!(phase, "Succeeded" | "Failed");
        let old_phase = status.phase.take().unwrap_or_default();
        let phase = self.phase(status);
        let may_hold = self.may_run() || self.holds_device_claims();
        if (is_final(&old_phase) && !self.is_static()) || (is_final(phase) && may_hold) {
            status.phase = Some(old_phase);
            return;
        }
        if self.ending.as_ref().is_some_and(|it| it.why == Why::Deadline) {
            status.reason = Some("DeadlineExceeded".into());
            status.message = Some(DEADLINE_MESSAGE.into());
        }
        if let Some(termination) = self.termination.as_ref().filter(|_| is_final(phase)) {
            status.reason = Some(termination.reason.into());
            status.message = Some(termination.message.clone());
        }
        status.phase = Some(phase.into());
    }

    pub(crate) fn may_run(&self) -> bool {
        self.container_records.values().any(|it| it.is_alive() || it.starting.is_some())
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
            let record = self.container_records.get(&it.name);
            let exit = record.and_then(|it| exit_of(it.latest()?));
            exit.is_some_and(|exit| restarts(&self.pod, it, exit) || record.is_some_and(ContainerRecord::must_restart))
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

/// The top-level fields that differ, whole; `null` for one that goes.
fn difference(current: &Value, wanted: &Value) -> Map<String, Value> {
    let empty = Map::new();
    let current = current.as_object().unwrap_or(&empty);
    let wanted = wanted.as_object().unwrap_or(&empty);
    let changed = wanted.iter().filter(|(name, value)| current.get(*name) != Some(value));
    let gone = current.keys().filter(|it| !wanted.contains_key(*it));
    changed.map(|(name, value)| (name.clone(), value.clone())).chain(gone.map(|it| (it.clone(), Value::Null))).collect()
}
