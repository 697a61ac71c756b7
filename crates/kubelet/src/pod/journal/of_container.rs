//! The steps of one container: its image, and the container itself.

use corten_api::core::v1::Container;
use corten_reconcile::{Actor, Step, StepState, Wait};

use crate::{
    Exit, Observed, ObservedContainer, ProbeKind,
    pod::{
        container_record::{ContainerRecord, WaitingState, exit_of},
        containers::{CRASH_LOOP, CREATE_ERROR},
        image_state::{ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF, ImageState},
        span::{Span, step},
    },
};

fn is_about_image(waiting: &WaitingState) -> bool {
    [ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF, "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"]
        .contains(&waiting.reason)
}

pub(super) fn image_step(container: &Container, record: &ContainerRecord) -> Step {
    let waiting = record.waiting.as_ref().filter(|it| is_about_image(it));
    let state = match (&record.image, waiting) {
        (_, Some(_)) => StepState::Blocked,
        (ImageState::Inspecting | ImageState::Pulling { .. }, _) => StepState::Running,
        (ImageState::Present(_), _) => StepState::Done,
        _ if record.starting.is_some() || record.latest().is_some() => StepState::Done,
        _ => StepState::Pending,
    };
    let mut step = step(&format!("image {}", container.name), state, record.image_span);
    let image = container.image.as_deref().unwrap_or_default();
    step.message = match &record.image {
        ImageState::Pulling { .. } => format!("pulling {image}"),
        _ => image.to_owned(),
    };
    step.wait = waiting.map(wait_of);
    step
}

/// What of a failed pull is not about the image: its registry cannot be spoken to.
const UNREACHABLE: [&str; 8] = [
    "dial tcp",
    "no such host",
    "connection refused",
    "i/o timeout",
    "deadline exceeded",
    "TLS handshake",
    "x509:",
    "server gave HTTP response to HTTPS client",
];

/// What containerd says of an image whose parts are on the node, and not what they were.
const DAMAGED: &str = "error unpacking image";

fn wait_of(waiting: &WaitingState) -> Wait {
    let is_unreachable = is_about_image(waiting) && UNREACHABLE.iter().any(|it| waiting.message.contains(it));
    let is_damaged = waiting.reason == CREATE_ERROR && waiting.message.contains(DAMAGED);
    let actor = if is_unreachable || is_damaged { Actor::Operator } else { Actor::Author };
    let mut wait = Wait::new(waiting.reason, waiting.message.clone(), actor);
    wait.since = Some(waiting.since);
    wait
}

pub(super) fn container_step(container: &Container, record: &ContainerRecord, must_end: bool) -> Step {
    let name = format!("container {}", container.name);
    let waiting = record.waiting.as_ref().filter(|it| !is_about_image(it));
    let latest = record.latest();
    let span = latest.map_or_else(Span::default, |it| Span {
        started: it.created_at,
        finished: match &it.state {
            Observed::Running { started_at } => *started_at,
            Observed::Exited(exit) => exit.finished_at,
            _ => None,
        },
    });
    if let Some(since) = record.starting {
        return step(&name, StepState::Running, Span { started: Some(since), finished: None });
    }
    if let Some(waiting) = waiting {
        let mut step = step(&name, StepState::Blocked, span);
        let mut wait = wait_of(waiting);
        if let Some((ended, exit)) = record.last_exit().filter(|_| waiting.reason == CRASH_LOOP) {
            // Kubernetes's message names the pod again, which whoever asks knows.
            let back_off = wait.message.split(" restarting ").next().unwrap_or_default();
            wait.message = format!("{}; {back_off}", how_it_ended(record, ended, exit));
            step.log = record.log_tail.lines().map(|it| it.trim_end().to_owned()).collect();
        }
        step.message = restarts(latest.map_or(0, |it| it.attempt));
        step.wait = Some(wait);
        return step;
    }
    let Some(latest) = latest else { return step(&name, StepState::Pending, span) };
    if record.is_in_post_start() {
        let mut step = step(&name, StepState::Running, span);
        let message = format!(
            "container {}: its postStart hook has not returned: it is not ready, and none that comes after it starts",
            container.name
        );
        let mut wait = Wait::new("PostStartHookRunning", message, Actor::Cluster);
        wait.since = span.finished.or(span.started);
        (step.message, step.wait) = ("running".into(), Some(wait));
        return step;
    }
    let (state, message) = match &latest.state {
        Observed::Running { .. } if must_end => (StepState::Running, "running".to_owned()),
        Observed::Running { .. } => (StepState::Done, "running".to_owned()),
        Observed::Exited(exit) if exit.code == 0 => (StepState::Done, "ended with exit code 0".to_owned()),
        Observed::Exited(exit) => (StepState::Failed, format!("ended with exit code {}: {}", exit.code, exit.reason)),
        Observed::Created | Observed::Unknown => (StepState::Running, "made, not started".to_owned()),
    };
    let mut step = step(&name, state, span);
    if must_end && state == StepState::Running {
        let message = format!("init container {:?} runs, and the next one starts when it has ended", container.name);
        let mut wait = Wait::new("InitContainerRunning", message, Actor::Cluster);
        wait.since = span.finished.or(span.started);
        step.wait = Some(wait);
    }
    step.message = if latest.attempt == 0 { message } else { format!("{message}; {}", restarts(latest.attempt)) };
    debug_assert!(exit_of(latest).is_none() || step.state != StepState::Running, "an exit is an end");
    step
}

fn restarts(n: u32) -> String {
    if n == 1 { "1 restart".into() } else { format!("{n} restarts") }
}

/// Why a container that crashes has ended, in words.
fn how_it_ended(record: &ContainerRecord, ended: &ObservedContainer, exit: &Exit) -> String {
    let gave_up = |kind| record.probes.get(&kind).filter(|it| it.id == ended.id && it.passed == Some(false));
    for kind in [ProbeKind::Startup, ProbeKind::Liveness] {
        if let Some(probe) = gave_up(kind) {
            let (kind, why) = (crate::pod::probe::name(kind).to_lowercase(), probe.last_failure.trim_end());
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            return format!("it is stopped because its {kind} probe fails{why}");
        }
    }
    if let Some((_, why)) = record.hook_failure.as_ref().filter(|it| it.0 == ended.id) {
        return format!("it is stopped because its postStart hook fails: {why}");
    }
    let said = exit.message.lines().next().filter(|it| !it.is_empty());
    match (&*exit.reason, said) {
        ("OOMKilled", _) => "it is killed for using more memory than it may".into(),
        ("StartError" | "ContainerCannotRun", Some(said)) => format!("it cannot be started: {said}"),
        (_, Some(said)) => format!("it ends with exit code {}: {said}", exit.code),
        (_, None) => format!("it ends with exit code {}", exit.code),
    }
}

#[cfg(test)]
mod tests {
    use corten_meta::Time;

    use super::*;

    #[test]
    fn reasons_that_take_turns_began_with_the_first_of_them() {
        for [first, second] in [[ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF], ["PostStartHookError", CRASH_LOOP]] {
            let mut record = ContainerRecord::default();
            for (reason, at, since) in [(first, 10, 10), (second, 20, 10), (first, 30, 10), (CREATE_ERROR, 40, 40)] {
                record.wait(reason, "no", Time::from_unix_seconds(at));
                assert_eq!(
                    record.waiting.as_ref().map(|it| it.since),
                    Some(Time::from_unix_seconds(since)),
                    "{reason}"
                );
            }
        }
    }

    #[test]
    fn whose_fault_it_is() {
        for (reason, message, actor) in [
            (ERR_IMAGE_PULL, "web:9: not found", Actor::Author),
            (ERR_IMAGE_PULL, "failed to authorize: 401 Unauthorized", Actor::Author),
            (IMAGE_PULL_BACK_OFF, "dial tcp 10.0.0.1:443: connect: connection refused", Actor::Operator),
            (IMAGE_PULL_BACK_OFF, "lookup registry.example: no such host", Actor::Operator),
            (ERR_IMAGE_PULL, "tls: failed to verify certificate: x509: unknown authority", Actor::Operator),
            (CREATE_ERROR, "error unpacking image: failed to extract layer sha256:ab: invalid", Actor::Operator),
            (CREATE_ERROR, "no command specified", Actor::Author),
            // What a container says of its own network is its author's.
            (CRASH_LOOP, "it ends with exit code 1: dial tcp: connection refused", Actor::Author),
        ] {
            let waiting = WaitingState { reason, message: message.into(), since: Time::from_unix_seconds(1) };
            assert_eq!(wait_of(&waiting).actor, actor, "{message}");
        }
    }
}
