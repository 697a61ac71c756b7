//! One container of a pod through all its attempts: image, start, hooks, probes, stop, restart.
//!
//! ```text
//! image ──► start ──► running ──► exited ──► (back-off) ──► image ...
//!   │         │          │ stop: preStop, signal, SIGKILL
//!   └ wait ◄──┘ wait     └ probes
//! ```

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::EventType::{Normal, Warning};

use crate::{
    Exit, Failure, Granted, Hook, HookAnswer, HostEffect, Observed, ObservedContainer, ObservedSandbox, ProbeKind,
    StartFailure, StartStage,
    backoff::go_seconds,
    pod::{
        container_record::{ContainerContext, ContainerRecord, Stopping, exit_of, remove},
        context::Context,
        device_claims::cdi_devices,
        image_state::ImageState,
        probe,
    },
    spec::{
        container::{self, Ingredients},
        env::ConfigError,
        env_file::{self, EnvFilesRead},
        image_volumes::mounted_by,
    },
};

/// What keeps a container from being started beyond its own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartBlockers {
    Nothing,
    /// Images that it mounts.
    VolumeImages,
}

/// Brings the container one step nearer to running. `restarts` says whether it runs again after an exit.
pub(crate) fn advance(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    sandbox: &ObservedSandbox,
    restarts: &dyn Fn(&Exit) -> bool,
    cx: &mut Context<'_>,
) -> StartBlockers {
    if record.starting.is_some() || record.stopping.is_some() {
        return StartBlockers::Nothing;
    }
    let in_sandbox = record.latest_in(&sandbox.id).cloned();
    match in_sandbox.as_ref().map(|it| &it.state) {
        Some(Observed::Running { .. }) => {
            watch_over(record, context, cx);
            return StartBlockers::Nothing;
        }
        Some(Observed::Unknown) => {
            stop(record, context, Some("is in an unknown state, will be restarted"), None, cx);
            return StartBlockers::Nothing;
        }
        Some(Observed::Created) => {
            // A kubelet died between making and starting it: it cannot be trusted to be whole.
            let half_made = in_sandbox.expect("matched above");
            if cx.is_due(record.retry_at) && record.removing.insert(half_made.id.clone()) {
                cx.host(remove(context.who, &half_made));
            }
            return StartBlockers::Nothing;
        }
        Some(Observed::Exited(exit)) if !restarts(exit) && !record.must_restart() => return StartBlockers::Nothing,
        _ => {}
    }
    if backs_off(record, context, cx) || !cx.is_due(record.retry_at) {
        return StartBlockers::Nothing;
    }
    if mounted_by(context.pod, context.container).any(|it| !context.images.contains_key(it)) {
        return StartBlockers::VolumeImages;
    }
    if crate::pod::image_state::ensure(record, context, cx) {
        start(record, context, sandbox, cx);
    }
    StartBlockers::Nothing
}

/// A running container is stopped where it is no longer what the spec says or a probe has given it up.
fn watch_over(record: &mut ContainerRecord, context: &ContainerContext<'_>, cx: &mut Context<'_>) {
    let Some(running) = record.running() else { return };
    if !running.hash.is_empty() && running.hash != container::hash(context.container) {
        return stop(record, context, Some("definition changed, will be restarted"), None, cx);
    }
    let id = running.id.clone();
    for (kind, why) in [
        (ProbeKind::Startup, "failed startup probe, will be restarted"),
        (ProbeKind::Liveness, "failed liveness probe, will be restarted"),
    ] {
        let Some(probe) = probe::of(context.container, kind) else { continue };
        if record.passed(kind, &id) == Some(false) {
            return stop(record, context, Some(why), probe.termination_grace_period_seconds, cx);
        }
    }
}

/// True where it crashed too often to be started again now.
fn backs_off(record: &mut ContainerRecord, context: &ContainerContext<'_>, cx: &mut Context<'_>) -> bool {
    let Some(latest) = record.attempts.last() else { return false };
    let Some(exit) = exit_of(&latest.it) else { return false };
    let failed = exit.finished_at.or(latest.learnt).unwrap_or(cx.now);
    if record.restarts.is_quiet(failed) {
        record.crashes_since = None;
    }
    let since = *record.crashes_since.get_or_insert(failed);
    let Some(until) = record.restarts.until(failed, cx.now) else { return false };
    cx.wake_at(until);
    if record.waiting.as_ref().is_none_or(|it| it.reason != CRASH_LOOP) {
        let (name, attempt) = (&context.container.name, latest.it.attempt);
        let delay = go_seconds(record.restarts.delay());
        let message = format!("back-off {delay} restarting failed container={name} pod={}", context.who);
        record.wait(CRASH_LOOP, message, since);
        let message = format!("Back-off restarting failed container {name} in pod {}", context.who);
        cx.event(context.who, context.field, Warning, "BackOff", message);
        let (pod, container) = (context.who.clone(), name.clone());
        cx.host(HostEffect::TailLog { pod, container, attempt, lines: 10 });
    }
    true
}

pub(crate) const CRASH_LOOP: &str = "CrashLoopBackOff";
pub(crate) const CREATE_ERROR: &str = "CreateContainerError";
/// What fails for its configuration is tried again at this pace (`backOffPeriod`).
const RETRY: Duration = Duration::from_secs(10);

fn start(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    sandbox: &ObservedSandbox,
    cx: &mut Context<'_>,
) {
    if !read_for(record, context, cx) {
        return;
    }
    let ImageState::Present(image) = &record.image else { return };
    let ips = if sandbox.ips.is_empty() { &cx.config.node_ips } else { &sandbox.ips };
    let attempt = next_attempt(record, context);
    let downward_context = cx.downward_context(ips);
    let target = context.target.as_ref();
    let mut devices = cx.devices.given(&context.who.uid, &context.container.name);
    let cdi_devices = cdi_devices(context.pod, context.container, context.prepared);
    devices.granted.add(&Granted { cdi_devices, ..Granted::default() });
    let ingredients = Ingredients {
        sandbox_id: &sandbox.id,
        attempt,
        image,
        sources: cx.sources,
        files: &record.env_files,
        downward_context,
        target,
        images: context.images,
        persistent: context.persistent,
        devices,
    };
    match container::spec(context.pod, context.container, &ingredients) {
        Ok(mut spec) => {
            let (uid, name) = (&context.who.uid, &context.container.name);
            spec.pins = cx.managers.pins(uid, name);
            record.pinned.begin(spec.pins.cpus.clone());
            if cx.managers.has_own_cpus(uid, name) {
                spec.resources = spec.resources.without_quota();
            }
            if let Some(latest) = record.attempts.last()
                && let Some(exit) = exit_of(&latest.it)
            {
                let failed = exit.finished_at.or(latest.learnt).unwrap_or(cx.now);
                record.restarts.next(failed, cx.now);
            }
            record.starting = Some(cx.now);
            record.starting_with = Some(context.container.resources.clone().unwrap_or_default());
            record.retry_at = None;
            record.env_files = EnvFilesRead::No;
            record.image = ImageState::Idle;
            cx.host(HostEffect::StartContainer(Box::new(spec)));
        }
        Err(ConfigError::Unread) => {}
        Err(ConfigError::Broken(message)) => {
            if record.waiting.as_ref().is_none_or(|it| it.message != message) {
                cx.event(context.who, context.field, Warning, "Failed", format!("Error: {message}"));
            }
            record.wait("CreateContainerConfigError", message, cx.now);
            if record.env_files != EnvFilesRead::No {
                record.env_files = EnvFilesRead::No;
                record.retry_at = Some(cx.now.after(RETRY));
                cx.wake_at(cx.now.after(RETRY));
            }
        }
    }
}

/// One more than the runtime or, where that has lost its memory, the API knows of.
fn next_attempt(record: &ContainerRecord, context: &ContainerContext<'_>) -> u32 {
    if let Some(latest) = record.latest() {
        return latest.attempt.saturating_add(1);
    }
    let name = &context.container.name;
    let status = context.pod.status.as_ref();
    let lists = status.map(|it| [&it.container_statuses, &it.init_container_statuses]);
    let told = lists.into_iter().flatten().flat_map(|it| it.iter().flatten()).find(|it| it.name == *name);
    let told = told.filter(|it| it.container_id.as_ref().is_some_and(|it| !it.is_empty()));
    told.map_or(0, |it| u32::try_from(it.restart_count).unwrap_or(0) + 1)
}

pub(crate) fn started(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    result: Result<ObservedContainer, StartFailure>,
    cx: &mut Context<'_>,
) {
    record.starting = None;
    match result {
        Ok(container) => {
            record.waiting = None;
            let id = container.id.clone();
            record.given = record.starting_with.take().map(|it| (id.clone(), it));
            record.pinned.started(&id);
            record.observe(container, Some(cx.now));
            cx.event(context.who, context.field, Normal, "Created", "Container created".into());
            cx.event(context.who, context.field, Normal, "Started", "Container started".into());
            record.prune(context.who, cx);
            run_post_start(record, context, id, cx);
        }
        Err(failure) => {
            let reason = match failure.stage {
                StartStage::Config => "CreateContainerConfigError",
                StartStage::Create => CREATE_ERROR,
                StartStage::Start => "RunContainerError",
            };
            if failure.stage == StartStage::Start {
                cx.event(context.who, context.field, Normal, "Created", "Container created".into());
            }
            cx.event(context.who, context.field, Warning, "Failed", format!("Error: {}", failure.message));
            record.wait(reason, failure.message, cx.now);
            // A dead container is left behind: from now on its exit rules, as any other's.
            let pause = if failure.container.is_some() { Duration::from_secs(1) } else { RETRY };
            record.retry_at = Some(cx.now.after(pause));
            if let Some(container) = failure.container {
                record.observe(container, Some(cx.now));
                record.prune(context.who, cx);
            }
        }
    }
}

fn run_post_start(record: &mut ContainerRecord, context: &ContainerContext<'_>, id: String, cx: &mut Context<'_>) {
    let hook = context.container.lifecycle.as_ref().and_then(|it| it.post_start.as_ref());
    let ip = context.pod_ips.first().map_or("", String::as_str);
    let Some(action) = hook.and_then(|it| probe::hook_action(it, context.container, ip)) else { return };
    record.post_start = Some(id.clone());
    match action {
        Ok(action) => cx.host(HostEffect::RunHook {
            pod: context.who.clone(),
            container: context.container.name.clone(),
            id,
            hook: Hook::PostStart,
            action,
            // Only the container's own end limits a postStart hook.
            timeout_seconds: 24 * 3600,
        }),
        Err(message) => hooked(record, context, &id, Hook::PostStart, Err(message), cx),
    }
}

/// Both the event of a postStart hook and the reason for stopping its container.
const HOOK_FAILED: &str = "FailedPostStartHook";

/// Begins to stop whatever runs. `why` is given where the pod itself goes on.
pub(crate) fn stop(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    why: Option<&str>,
    grace_seconds: Option<i64>,
    cx: &mut Context<'_>,
) {
    let alive =
        record.attempts.iter().rev().find(|it| matches!(it.it.state, Observed::Running { .. } | Observed::Unknown));
    let Some(id) = alive.map(|it| it.it.id.clone()) else { return };
    let spec = crate::spec::pod::spec_of(context.pod);
    let grace = grace_seconds.or(spec.termination_grace_period_seconds).unwrap_or(30).max(1);
    let name = &context.container.name;
    let message = match why {
        Some(HOOK_FAILED) => HOOK_FAILED.into(),
        Some(why) => format!("Container {name} {why}"),
        None => format!("Stopping container {name}"),
    };
    cx.event(context.who, context.field, Normal, "Killing", message);
    let deadline = cx.now.after(Duration::from_secs(u64::try_from(grace).unwrap_or(1)));
    let was_called = cx.config.terminations.get(&context.who.uid).is_some_and(|it| it.hooks.contains(&id));
    let hook = context.container.lifecycle.as_ref().and_then(|it| it.pre_stop.as_ref()).filter(|_| !was_called);
    let ip = context.pod_ips.first().map_or("", String::as_str);
    let action = hook.and_then(|it| probe::hook_action(it, context.container, ip));
    let in_hook = action.is_some();
    record.stopping =
        Some(Stopping { id: id.clone(), deadline, in_hook, hook_ended: was_called, retry_at: None, timeouts: 0 });
    match action {
        None => signal(record, context, cx),
        Some(Ok(action)) => cx.host(HostEffect::RunHook {
            pod: context.who.clone(),
            container: name.clone(),
            id,
            hook: Hook::PreStop,
            action,
            timeout_seconds: u32::try_from(grace).unwrap_or(u32::MAX),
        }),
        Some(Err(message)) => hooked(record, context, &id, Hook::PreStop, Err(message), cx),
    }
}

/// StopContainer with what is left of the grace, but always two seconds (`minimumGracePeriodInSeconds`).
fn signal(record: &mut ContainerRecord, context: &ContainerContext<'_>, cx: &mut Context<'_>) {
    let Some(stopping) = &mut record.stopping else { return };
    stopping.hook_ended |= std::mem::take(&mut stopping.in_hook);
    let left = i64::try_from(stopping.deadline.since(cx.now).as_secs()).unwrap_or(i64::MAX);
    cx.host(HostEffect::StopContainer {
        pod: context.who.clone(),
        container: context.container.name.clone(),
        id: stopping.id.clone(),
        timeout_seconds: left.max(2),
        signal: context.container.lifecycle.as_ref().and_then(|it| it.stop_signal.clone()),
    });
}

/// Repeats a stop that failed, and shortens one whose grace was cut.
pub(crate) fn keep_stopping(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    deadline: Option<Time>,
    cx: &mut Context<'_>,
) {
    let Some(stopping) = &mut record.stopping else { return };
    if let Some(deadline) = deadline.filter(|it| it.after(Duration::from_secs(1)) < stopping.deadline) {
        stopping.deadline = deadline;
        stopping.retry_at = None;
        return signal(record, context, cx);
    }
    if stopping.retry_at.is_some() && cx.is_due(stopping.retry_at) {
        stopping.retry_at = None;
        signal(record, context, cx);
    }
}

pub(crate) fn stopped(record: &mut ContainerRecord, id: &str, result: &Result<(), Failure>, cx: &mut Context<'_>) {
    let Some(stopping) = record.stopping.as_mut().filter(|it| it.id == id) else { return };
    stopping.timeouts = if result.as_ref().is_err_and(Failure::is_timeout) { stopping.timeouts + 1 } else { 0 };
    let is_done = result.is_ok();
    // Done: the next snapshot shows how it ended. If none does, stopping again is harmless.
    let pause = if is_done { 30 } else { 5 };
    stopping.retry_at = Some(cx.now.after(Duration::from_secs(pause)));
}

pub(crate) fn hooked(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    id: &str,
    hook: Hook,
    result: Result<HookAnswer, String>,
    cx: &mut Context<'_>,
) {
    if let Ok(HookAnswer::WithoutTls { server }) = &result {
        let message = format!("request to HTTPS lifecycle hook {server} got HTTP response, retry with HTTP succeeded");
        cx.event(context.who, "", Warning, "LifecycleHTTPFallback", message);
    }
    match hook {
        Hook::PostStart => {
            if record.post_start.as_deref() != Some(id) {
                return;
            }
            if let Err(message) = result {
                // As in lifecycle's `handlerRunner.Run`: what a hook said may hold secrets, so no event repeats it.
                let event = "PostStartHook failed".to_owned();
                cx.event(context.who, context.field, Warning, HOOK_FAILED, event);
                record.hook_failure = Some((id.to_owned(), message.clone()));
                let since = record.crashes_since.unwrap_or(cx.now);
                record.wait("PostStartHookError", format!("PostStartHook failed: {message}"), since);
                stop(record, context, Some(HOOK_FAILED), None, cx);
            } else {
                record.post_start = None;
            }
        }
        Hook::PreStop => {
            if !record.stopping.as_ref().is_some_and(|it| it.id == id && it.in_hook) {
                return;
            }
            if result.is_err() {
                cx.event(context.who, context.field, Warning, "FailedPreStopHook", "PreStopHook failed".into());
            }
            signal(record, context, cx);
        }
    }
}

/// True once the files its environment names are read.
fn read_for(record: &mut ContainerRecord, context: &ContainerContext<'_>, cx: &mut Context<'_>) -> bool {
    let files = env_file::named_by(context.container);
    if files.is_empty() || matches!(record.env_files, EnvFilesRead::Done(_)) {
        return true;
    }
    if record.env_files == EnvFilesRead::No {
        record.env_files = EnvFilesRead::Reading;
        let (pod, container) = (context.who.clone(), context.container.name.clone());
        cx.host(HostEffect::ReadFiles { pod, container, files });
    }
    false
}
