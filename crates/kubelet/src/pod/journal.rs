//! What `corten why` is told of a pod: the named steps, how far each is, and what blocks it.

mod of_container;

use std::{fmt::Write as _, time::Duration};

use corten_api::core::v1::Container;
use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Step, StepState, Wait};
use of_container::{container_step, image_step};

use crate::{
    Effect, Observed, ObservedContainer, ProbeKind,
    pod::{
        container_record::ContainerRecord,
        context::Context,
        machine::PodMachine,
        probe,
        sandbox_end::FAILED_KILL_POD,
        span::{Span, step},
        sync_pod::NO_NETWORK,
        termination::Why,
    },
    spec::{
        image_volumes::mounted_by,
        pod::{all_containers, as_container, ephemeral_containers, is_init, is_sidecar, spec_of},
        volumes::ProblemKind,
    },
};

/// So long after its start a container that does not answer its probes yet is nobody's fault.
const STARTING: Duration = Duration::from_secs(60);

impl PodMachine {
    /// Records the pod's steps where they changed since the last time.
    pub(crate) fn record(&mut self, cx: &mut Context<'_>) {
        if self.has_successor {
            return;
        }
        let steps = self.steps(cx.now);
        let mut waits: Vec<Wait> = Vec::new();
        for wait in steps.iter().filter_map(|it| it.wait.clone()) {
            if !waits.contains(&wait) {
                waits.push(wait);
            }
        }
        let decision = Decision { by: "kubelet".into(), steps, waits, ..Decision::default() };
        if self.recorded.as_ref() != Some(&decision) {
            self.recorded = Some(decision.clone());
            let decision = Box::new(Decision { at: Some(cx.now), ..decision });
            cx.effects.push(Effect::Record { pod: self.who.key.clone(), decision });
        }
    }

    fn steps(&self, now: Time) -> Vec<Step> {
        let mut steps = Vec::new();
        let is_rejected = self.rejection().is_some();
        if let Some(ending) = self.ending.as_ref().filter(|it| !is_rejected || it.why > Why::Finished) {
            let why = format!("{:?}", ending.why).to_lowercase();
            let state = if ending.is_over() { StepState::Done } else { StepState::Running };
            let mut step = step("end", state, Span { started: Some(ending.since), finished: None });
            step.message = format!("the pod is ended: {why}");
            if let Some(it) = &self.termination {
                step.message = format!("the pod is ended by its node: {}: {}", it.reason, it.message.trim_end());
            }
            let in_hook =
                self.container_records.iter().find(|(_, it)| it.stopping.as_ref().is_some_and(|it| it.in_hook));
            if let Some((name, _)) = in_hook {
                let message =
                    format!("container {name}: its preStop hook has not returned, and takes of the grace period");
                let mut wait = Wait::new("PreStopHookRunning", message, Actor::Cluster);
                wait.since = Some(ending.since);
                step.wait = Some(wait);
            }
            if let Some((problem, since)) =
                self.stop_problem.as_ref().filter(|_| self.container_records.values().any(ContainerRecord::is_alive))
            {
                let mut wait = Wait::new(FAILED_KILL_POD, problem.clone(), Actor::Operator);
                wait.since = Some(*since);
                (step.state, step.wait) = (StepState::Blocked, Some(wait));
            } else if let Some((problem, since)) = &self.claims.release_problem {
                let message = format!("what it had cannot be given back yet, and that is tried again: {problem}");
                let mut wait = Wait::new("FailedCleanup", message, Actor::Operator);
                wait.since = Some(*since);
                (step.state, step.wait) = (StepState::Blocked, Some(wait));
            }
            steps.push(step);
        }
        steps.extend(self.admission_step());
        if is_rejected {
            return steps;
        }
        steps.extend(self.devices_step());
        steps.push(self.network_step());
        steps.push(self.volumes_step(now));
        let pod = &self.pod;
        let nothing = ContainerRecord::default();
        for container in all_containers(pod) {
            let record = self.container_records.get(&container.name).unwrap_or(&nothing);
            steps.push(self.images_step(container, record));
            steps.push(container_step(container, record, is_init(pod, &container.name) && !is_sidecar(container)));
        }
        for container in ephemeral_containers(pod).map(as_container) {
            let record = self.container_records.get(&container.name).unwrap_or(&nothing);
            steps.push(self.images_step(&container, record));
            steps.push(container_step(&container, record, false));
        }
        steps.push(self.ready_step(now));
        steps.extend(self.resize_step());
        steps
    }

    /// Only where the node does not take the pod, or cannot start it as it is.
    fn admission_step(&self) -> Option<Step> {
        if let Some(rejection) = self.rejection() {
            let mut step = step("admission", StepState::Failed, Span::default());
            step.message.clone_from(&rejection.message);
            step.wait = Some(Wait::new(rejection.reason, rejection.message.clone(), Actor::Author));
            return Some(step);
        }
        if !self.admission.room_of.is_empty() && !self.is_decided() {
            let mut step = step("admission", StepState::Running, Span { started: Some(self.started), finished: None });
            step.message = "others leave the node first, which has no room for it".into();
            return Some(step);
        }
        if let Some(under_way) = self.admission.device_step.as_ref().filter(|_| !self.is_decided()) {
            let mut step = step("admission", StepState::Running, Span { started: Some(self.started), finished: None });
            step.message.clone_from(under_way);
            return Some(step);
        }
        if self.support.refusals.is_empty() || self.ending.is_some() {
            return None;
        }
        let since = self.support.refused_since;
        let mut step = step("admission", StepState::Blocked, Span { started: since, finished: None });
        let mut wait = Wait::new("Unsupported", self.support.refusals.join("; "), Actor::Author);
        wait.since = since;
        step.wait = Some(wait);
        Some(step)
    }

    /// Only where the pod has claims for devices.
    fn devices_step(&self) -> Option<Step> {
        if !self.has_device_claims() {
            return None;
        }
        let Some((problem, since)) = &self.device_claims.problem else {
            let state = if self.device_claims.are_prepared() { StepState::Done } else { StepState::Running };
            return Some(step("devices", state, Span::default()));
        };
        let mut step = step("devices", StepState::Blocked, Span { started: Some(*since), finished: None });
        let mut wait = Wait::new("FailedPrepareDynamicResources", problem.clone(), Actor::Operator);
        wait.since = Some(*since);
        step.wait = Some(wait);
        Some(step)
    }

    fn network_step(&self) -> Step {
        let problem = self.sandbox_step.problem.as_ref();
        let state = match (self.sandbox(), problem) {
            (Some(_), _) => StepState::Done,
            (None, Some(_)) => StepState::Blocked,
            (None, None) if self.sandbox_step.in_flight => StepState::Running,
            _ => StepState::Pending,
        };
        let mut step = step("network", state, self.network);
        if let Some(sandbox) = self.sandbox() {
            let host = spec_of(&self.pod).host_network == Some(true);
            step.message =
                if host { "the host's network".into() } else { format!("address {}", sandbox.ips.join(", ")) };
            if self.is_adopted() {
                (step.started, step.finished) = (sandbox.created_at, sandbox.created_at);
            }
        } else if let Some(problem) = problem {
            let has_network = !problem.starts_with(NO_NETWORK);
            let reason = if has_network { "FailedCreatePodSandBox" } else { "NetworkNotReady" };
            let mut wait = Wait::new(reason, problem.clone(), Actor::Operator);
            wait.since = self.network.started;
            step.wait = Some(wait);
        }
        if let Some((problem, since)) = &self.sandbox_step.end_problem {
            let message = format!("its sandbox cannot be taken down, and is tried again every 5 s: {problem}");
            let mut wait = Wait::new(FAILED_KILL_POD, message, Actor::Operator);
            wait.since = Some(*since);
            (step.state, step.wait) = (StepState::Blocked, Some(wait));
        }
        step
    }

    /// Was its sandbox there before this kubelet was?
    fn is_adopted(&self) -> bool {
        self.sandbox().is_some() && self.network.finished.is_none()
    }

    fn volumes_step(&self, now: Time) -> Step {
        let volumes = &self.volumes;
        let mut step = step("volumes", StepState::Done, volumes.span);
        let n_volumes = spec_of(&self.pod).volumes.as_ref().map_or(0, Vec::len);
        // What a kubelet that comes back mounts anew is no part of a start that it did not see.
        if volumes.is_ready && self.is_adopted() {
            (step.started, step.finished) = (None, None);
        }
        if volumes.is_ready || volumes.problems.is_empty() {
            step.state = match (volumes.is_ready, volumes.in_flight) {
                (true, _) => StepState::Done,
                (_, true) => StepState::Running,
                _ => StepState::Pending,
            };
            step.message = if n_volumes == 1 { "1 volume".into() } else { format!("{n_volumes} volumes") };
            return step;
        }
        step.state = StepState::Blocked;
        let messages: Vec<_> = volumes.problems.iter().map(|it| it.message.as_str()).collect();
        let is = |kind| volumes.problems.iter().any(|it| it.kind == kind);
        let (reason, actor) = if is(ProblemKind::Unsupported) {
            ("UnsupportedVolume", Actor::Author)
        } else if is(ProblemKind::Refused) {
            ("CertificateDenied", Actor::Author)
        } else if is(ProblemKind::SigningFailed) {
            ("CertificateFailed", Actor::Operator)
        } else if is(ProblemKind::Missing) || is(ProblemKind::Unattached) {
            ("FailedMount", Actor::Author)
        } else if is(ProblemKind::Unsigned) {
            // A signer is a program that whoever runs the cluster has chosen.
            ("CertificatePending", Actor::Operator)
        } else {
            ("SourceNotRead", Actor::Cluster)
        };
        let mut wait = Wait::new(reason, messages.join("; "), actor);
        wait.since = volumes.span.started.or(Some(now));
        step.wait = Some(wait);
        step
    }

    /// The container's own image, and those that it mounts.
    fn images_step(&self, container: &Container, record: &ContainerRecord) -> Step {
        let mut step = image_step(container, record);
        for name in mounted_by(&self.pod, container) {
            let volumes = spec_of(&self.pod).volumes.iter().flatten();
            let image = volumes.filter(|it| it.name == name).find_map(|it| it.image.as_ref()?.reference.as_deref());
            let _ = write!(step.message, ", and {} as volume {name}", image.unwrap_or_default());
        }
        step
    }

    fn ready_step(&self, now: Time) -> Step {
        let spec = spec_of(&self.pod);
        let is_ready = |it: &&Container| self.container_records.get(&it.name).is_some_and(|record| record.is_ready(it));
        let all = || all_containers(&self.pod).filter(|it| is_sidecar(it) || !is_init(&self.pod, &it.name));
        let unready: Vec<_> = all().filter(|it| !is_ready(it)).map(|it| it.name.as_str()).collect();
        let running_since = spec.containers.iter().filter_map(|it| {
            let running = self.container_records.get(&it.name)?.running()?;
            if let Observed::Running { started_at } = running.state { started_at } else { None }
        });
        let started = running_since.max();
        if unready.is_empty() && !spec.containers.is_empty() {
            let ready = self.gates_step(Span { started, finished: self.ready_since(started).or(Some(now)) });
            let failing = all().find_map(|it| failing_probe(it, self.container_records.get(&it.name)?, now));
            return match failing.filter(|_| ready.wait.is_none()) {
                Some(failing) => {
                    let (state, wait) = self.unhealthy(failing, now);
                    Step { state, wait, finished: None, message: "its containers are ready".into(), ..ready }
                }
                None => ready,
            };
        }
        let mut ready = step("ready", StepState::Pending, Span { started, finished: None });
        let mut unproven = all().filter(|it| !is_ready(it));
        let failing = unproven.find_map(|it| failing_probe(it, self.container_records.get(&it.name)?, now));
        if let Some(failing) = failing {
            (ready.state, ready.wait) = self.unhealthy(failing, now);
        }
        ready.message = format!("not ready: {}", unready.join(", "));
        ready
    }

    /// Since when all containers are ready: as recorded, else as the API says, whose times are whole seconds.
    fn ready_since(&self, started: Option<Time>) -> Option<Time> {
        let recorded = self.recorded.as_ref().and_then(|it| it.steps.iter().find(|it| it.name == "ready"));
        if let Some(it) = recorded.filter(|it| it.started == started && it.finished.is_some()) {
            return it.finished;
        }
        let conditions = self.pod.status.as_ref().and_then(|it| it.conditions.as_ref());
        let condition = conditions.into_iter().flatten().find(|it| it.type_ == "Ready" && it.status == "True");
        condition.and_then(|it| it.last_transition_time.as_ref()).map(|it| Time(it.0)).max(started)
    }

    /// Its containers are ready; others may have a say in whether the pod is.
    fn gates_step(&self, span: Span) -> Step {
        let conditions = self.pod.status.as_ref().and_then(|it| it.conditions.as_ref());
        let is_met = |gate: &str| conditions.into_iter().flatten().any(|it| it.type_ == gate && it.status == "True");
        let gates = spec_of(&self.pod).readiness_gates.iter().flatten().map(|it| it.condition_type.as_str());
        let unmet: Vec<_> = gates.filter(|it| !is_met(it)).collect();
        if unmet.is_empty() {
            return step("ready", StepState::Done, span);
        }
        let mut ready = step("ready", StepState::Blocked, Span { finished: None, ..span });
        let message = format!("its containers are ready, and nobody has set the condition {}", unmet.join(", "));
        let mut wait = Wait::new("ReadinessGate", message, Actor::External);
        wait.since = self.recorded_since("ReadinessGate").or(span.finished);
        ready.wait = Some(wait);
        ready
    }

    /// `since` must not differ at each look, or every look would be news.
    fn recorded_since(&self, reason: &str) -> Option<Time> {
        self.recorded.as_ref()?.waits.iter().find(|it| it.reason == reason)?.since
    }

    /// A container whose probe fails.
    fn unhealthy(&self, failing: FailingProbe, now: Time) -> (StepState, Option<Wait>) {
        let since = self.recorded_since("Unhealthy").unwrap_or(now);
        let is_nobodys = match failing.blame {
            Blame::Starting => true,
            Blame::Wavering => now.since(since) < STARTING,
            Blame::Author => false,
        };
        let (state, actor) =
            if is_nobodys { (StepState::Running, Actor::Cluster) } else { (StepState::Blocked, Actor::Author) };
        let mut wait = Wait::new("Unhealthy", failing.message, actor);
        wait.since = Some(since);
        (state, Some(wait))
    }
}

/// What a probe says against a container that runs, and whose fault that is.
struct FailingProbe {
    message: String,
    blame: Blame,
}

enum Blame {
    Starting,
    /// Its liveness fails, and not often enough yet for it to be stopped.
    Wavering,
    Author,
}

/// The first probe that fails, or that had the container before this one stopped within the last minute.
fn failing_probe(container: &Container, record: &ContainerRecord, now: Time) -> Option<FailingProbe> {
    let running = record.running()?;
    let is_starting = has_just_begun(running, now);
    [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness].into_iter().find_map(|kind| {
        let broken = probe::action(probe::of(container, kind)?, container, "").err();
        let state = record.probes.get(&kind);
        let is_attached = state.is_some_and(|it| it.id == running.id);
        let failure = state.filter(|_| is_attached).map(|it| it.last_failure.trim_end());
        let given_up = state.and_then(|it| it.gave_up(kind)).is_some() && is_attached;
        let restarted_for = state.and_then(|it| if is_attached { Some(&*it.restarted_for) } else { it.gave_up(kind) });
        let has_passed = is_attached && state.and_then(|it| it.passed) == Some(true);
        let restarted_for = restarted_for.filter(|it| !it.is_empty() && (is_starting || !has_passed));
        let failure = failure.filter(|it| !it.is_empty()).or(broken.as_deref());
        let (name, kind_name) = (&container.name, probe::name(kind).to_lowercase());
        let message = match (failure, restarted_for) {
            (Some(why), _) => format!("container {name}: its {kind_name} probe fails: {why}"),
            (None, Some(why)) => {
                let why = why.trim_end();
                format!("container {name}: its {kind_name} probe fails, and it was restarted for that: {why}")
            }
            (None, None) => return None,
        };
        let blame = match kind {
            _ if broken.is_some() || given_up || restarted_for.is_some() => Blame::Author,
            _ if is_starting => Blame::Starting,
            ProbeKind::Liveness => Blame::Wavering,
            ProbeKind::Startup | ProbeKind::Readiness => Blame::Author,
        };
        Some(FailingProbe { message, blame })
    })
}

fn has_just_begun(container: &ObservedContainer, now: Time) -> bool {
    matches!(container.state, Observed::Running { started_at: Some(it) } if now.since(it) < STARTING)
}
