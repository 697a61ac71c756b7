//! What `corten why` is told of a pod: the named steps, how far each is, and what blocks it.

use std::time::Duration;

use corten_api::core::v1::Container;
use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Step, StepState, Wait};

use crate::{
    Effect, Observed, ObservedContainer,
    containers::{Track, Waiting, exit_of},
    context::Context,
    ending::Why,
    image_state::{ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF, ImageState},
    pod::{PodMachine, Span, all_containers, is_init, is_sidecar, spec_of},
    unsupported,
    volumes::ProblemKind,
};

/// So long after its start a container that does not answer its probes yet is nobody's fault.
const STARTING: Duration = Duration::from_secs(60);

impl PodMachine {
    /// Records the pod's steps where they changed since the last time.
    pub(crate) fn record(&mut self, cx: &mut Context<'_>) {
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
            steps.push(step);
        }
        steps.extend(self.admission_step());
        if is_rejected {
            return steps;
        }
        steps.push(self.network_step());
        steps.push(self.volumes_step(now));
        let pod = &self.pod;
        let nothing = Track::default();
        for container in all_containers(pod) {
            let track = self.tracks.get(&container.name).unwrap_or(&nothing);
            steps.push(image_step(container, track));
            steps.push(container_step(container, track, is_init(pod, &container.name) && !is_sidecar(container)));
        }
        for (name, message) in unsupported::ephemeral(pod) {
            let mut step = step(&format!("container {name}"), StepState::Blocked, Span::default());
            step.wait = Some(Wait::new("Unsupported", message, Actor::Author));
            steps.push(step);
        }
        steps.push(self.ready_step(now));
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
            let adopted = step.finished.is_none();
            if adopted {
                (step.started, step.finished) = (sandbox.created_at, sandbox.created_at);
            }
        } else if let Some(problem) = problem {
            let mut wait = Wait::new("FailedCreatePodSandBox", problem.clone(), Actor::Operator);
            wait.since = self.network.started;
            step.wait = Some(wait);
        }
        step
    }

    fn volumes_step(&self, now: Time) -> Step {
        let volumes = &self.volumes;
        let mut step = step("volumes", StepState::Done, volumes.span);
        let n_volumes = spec_of(&self.pod).volumes.as_ref().map_or(0, Vec::len);
        if volumes.is_ready || volumes.problems.is_empty() {
            step.state = match (volumes.is_ready, volumes.in_flight) {
                (true, _) => StepState::Done,
                (_, true) => StepState::Running,
                _ => StepState::Pending,
            };
            step.message = format!("{n_volumes} volumes");
            return step;
        }
        step.state = StepState::Blocked;
        let messages: Vec<_> = volumes.problems.iter().map(|it| it.message.as_str()).collect();
        let is = |kind| volumes.problems.iter().any(|it| it.kind == kind);
        let (reason, actor) = if is(ProblemKind::Unsupported) {
            ("UnsupportedVolume", Actor::Author)
        } else if is(ProblemKind::Missing) {
            ("FailedMount", Actor::Author)
        } else {
            ("SourceNotRead", Actor::Cluster)
        };
        let mut wait = Wait::new(reason, messages.join("; "), actor);
        wait.since = volumes.span.started.or(Some(now));
        step.wait = Some(wait);
        step
    }

    fn ready_step(&self, now: Time) -> Step {
        let spec = spec_of(&self.pod);
        let is_ready = |it: &&Container| self.tracks.get(&it.name).is_some_and(|track| track.is_ready(it));
        let unready: Vec<_> = spec.containers.iter().filter(|it| !is_ready(it)).map(|it| it.name.as_str()).collect();
        let condition = self.pod.status.as_ref().and_then(|it| it.conditions.as_ref());
        let condition = condition.into_iter().flatten().find(|it| it.type_ == "Ready" && it.status == "True");
        let since = condition.and_then(|it| it.last_transition_time.as_ref()).map(|it| Time(it.0));
        if unready.is_empty() && !spec.containers.is_empty() {
            return step("ready", StepState::Done, Span { started: None, finished: since });
        }
        let mut ready = step("ready", StepState::Pending, Span::default());
        let mut unproven = spec.containers.iter().filter_map(|it| {
            let track = self.tracks.get(&it.name)?;
            let running = track.running().filter(|_| !track.is_ready(it))?;
            let (_, probe) = track.probes.iter().find(|(_, probe)| !probe.last_failure.is_empty())?;
            Some((running, format!("container {}: {}", it.name, probe.last_failure)))
        });
        if let Some((container, message)) = unproven.next() {
            (ready.state, ready.wait) = self.unhealthy(container, message, now);
        }
        ready.message = format!("not ready: {}", unready.join(", "));
        ready
    }

    /// A container whose probe fails.
    fn unhealthy(&self, container: &ObservedContainer, message: String, now: Time) -> (StepState, Option<Wait>) {
        let is_starting =
            matches!(container.state, Observed::Running { started_at: Some(it) } if now.since(it) < STARTING);
        let (state, actor) =
            if is_starting { (StepState::Running, Actor::Cluster) } else { (StepState::Blocked, Actor::Author) };
        let mut wait = Wait::new("Unhealthy", message, actor);
        // `since` must not differ at each look, or every look would be news.
        let recorded = self.recorded.as_ref().and_then(|it| it.waits.iter().find(|it| it.reason == "Unhealthy"));
        wait.since = recorded.map_or(Some(now), |it| it.since);
        (state, Some(wait))
    }
}

fn step(name: &str, state: StepState, span: Span) -> Step {
    let finished = span.finished.filter(|_| state == StepState::Done);
    Step { name: name.into(), state, started: span.started, finished, message: String::new(), wait: None }
}

fn is_about_image(waiting: &Waiting) -> bool {
    [ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF, "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"]
        .contains(&waiting.reason)
}

fn image_step(container: &Container, track: &Track) -> Step {
    let waiting = track.waiting.as_ref().filter(|it| is_about_image(it));
    let state = match (&track.image, waiting) {
        (_, Some(_)) => StepState::Blocked,
        (ImageState::Inspecting | ImageState::Pulling { .. }, _) => StepState::Running,
        (ImageState::Present(_), _) => StepState::Done,
        _ if track.starting.is_some() || track.latest().is_some() => StepState::Done,
        _ => StepState::Pending,
    };
    let mut step = step(&format!("image {}", container.name), state, track.image_span);
    let image = container.image.as_deref().unwrap_or_default();
    step.message = match &track.image {
        ImageState::Pulling { .. } => format!("pulling {image}"),
        _ => image.to_owned(),
    };
    step.wait = waiting.map(wait_of);
    step
}

fn wait_of(waiting: &Waiting) -> Wait {
    let mut wait = Wait::new(waiting.reason, waiting.message.clone(), Actor::Author);
    wait.since = Some(waiting.since);
    wait
}

fn container_step(container: &Container, track: &Track, must_end: bool) -> Step {
    let name = format!("container {}", container.name);
    let waiting = track.waiting.as_ref().filter(|it| !is_about_image(it));
    let latest = track.latest();
    let span = latest.map_or_else(Span::default, |it| Span {
        started: it.created_at,
        finished: match &it.state {
            Observed::Running { started_at } => *started_at,
            Observed::Exited(exit) => exit.finished_at,
            _ => None,
        },
    });
    if let Some(since) = track.starting {
        return step(&name, StepState::Running, Span { started: Some(since), finished: None });
    }
    if let Some(waiting) = waiting {
        let mut step = step(&name, StepState::Blocked, span);
        let mut wait = wait_of(waiting);
        if let Some((_, exit)) = track.last_exit() {
            wait.message = format!("{}; exit code {}", wait.message, exit.code);
        }
        step.message = format!("{} restarts", latest.map_or(0, |it| it.attempt));
        if !track.log_tail.is_empty() {
            step.message = format!("{}; last words: {}", step.message, track.log_tail.trim_end());
        }
        step.wait = Some(wait);
        return step;
    }
    let Some(latest) = latest else { return step(&name, StepState::Pending, span) };
    let (state, message) = match &latest.state {
        Observed::Running { .. } if must_end => (StepState::Running, "running".to_owned()),
        Observed::Running { .. } => (StepState::Done, "running".to_owned()),
        Observed::Exited(exit) if exit.code == 0 => (StepState::Done, "ended with exit code 0".to_owned()),
        Observed::Exited(exit) => (StepState::Failed, format!("ended with exit code {}: {}", exit.code, exit.reason)),
        Observed::Created | Observed::Unknown => (StepState::Running, "made, not started".to_owned()),
    };
    let mut step = step(&name, state, span);
    step.message = if latest.attempt == 0 { message } else { format!("{message}; {} restarts", latest.attempt) };
    debug_assert!(exit_of(latest).is_none() || step.state != StepState::Running, "an exit is an end");
    step
}
