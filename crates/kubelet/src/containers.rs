//! One container of a pod through all its attempts: image, start, hooks, probes, stop, restart.
//!
//! ```text
//! image ──► start ──► running ──► exited ──► (back-off) ──► image ...
//!   │         │          │ stop: preStop, signal, SIGKILL
//!   └ wait ◄──┘ wait     └ probes
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::core::v1::{Container, Pod, ResourceRequirements};
use corten_meta::Time;
use corten_reconcile::EventType::{Normal, Warning};

use crate::{
    Exit, Hook, HookAnswer, HostEffect, Observed, ObservedContainer, ObservedSandbox, PodRef, ProbeKind, StartFailure,
    StartStage,
    backoff::{BackOff, go_seconds},
    context::Context,
    env::ConfigError,
    env_file::{self, EnvFiles},
    image_state::ImageState,
    image_volumes,
    pod::Span,
    probe::{self, ProbeState},
    spec::{self, Ingredients},
};

/// The files that a container's environment names. Read afresh for each start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum EnvFilesRead {
    #[default]
    No,
    Reading,
    Done(Result<EnvFiles, String>),
}

/// What is known of one container by name.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// Every attempt the runtime still has, oldest first.
    pub(crate) attempts: Vec<Known>,
    pub(crate) image: ImageState,
    /// What `image` and `pulls` are about; another image in the spec starts anew.
    image_name: String,
    pub(crate) image_span: Span,
    pub(crate) pulls: BackOff,
    restarts: BackOff,
    /// Why it does not run, where that is not plain.
    pub(crate) waiting: Option<Waiting>,
    /// A StartContainer is under way since then.
    pub(crate) starting: Option<Time>,
    /// The resources it was begun with.
    starting_with: Option<ResourceRequirements>,
    /// The id of an attempt and the resources it has.
    pub(crate) given: Option<(String, ResourceRequirements)>,
    /// The id of the attempt that runs again whatever its exit.
    pub(crate) restart_of: Option<String>,
    pub(crate) stopping: Option<Stopping>,
    /// The id of the container whose postStart hook is under way.
    post_start: Option<String>,
    /// The id of the container whose postStart hook failed, and how.
    pub(crate) hook_failure: Option<(String, String)>,
    pub(crate) removing: BTreeSet<String>,
    pub(crate) retry_at: Option<Time>,
    /// Of the files its environment names: being read, or what they hold.
    pub(crate) env_files: EnvFilesRead,
    pub(crate) probes: BTreeMap<ProbeKind, ProbeState>,
    /// What it wrote last before it crashed.
    pub(crate) log_tail: String,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) it: ObservedContainer,
    /// When it was learnt by an effect's outcome: an older snapshot may not have it.
    pub(crate) learnt: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) since: Time,
}

#[derive(Debug)]
pub(crate) struct Stopping {
    pub(crate) id: String,
    deadline: Time,
    /// The preStop hook is still running.
    in_hook: bool,
    retry_at: Option<Time>,
}

/// One container of one pod, as the functions here need it.
pub(crate) struct Frame<'a> {
    pub(crate) who: &'a PodRef,
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    /// `spec.containers{web}`.
    pub(crate) field: &'a str,
    pub(crate) pod_ips: &'a [String],
    /// For an ephemeral container that has one: the id of its target, or why that is not known.
    pub(crate) target: Option<Result<String, String>>,
    /// The ids of the images that its pod's volumes are and that are there, by volume.
    pub(crate) images: &'a BTreeMap<String, String>,
}

impl Track {
    pub(crate) fn latest(&self) -> Option<&ObservedContainer> {
        self.attempts.last().map(|it| &it.it)
    }

    pub(crate) fn latest_in(&self, sandbox: &str) -> Option<&ObservedContainer> {
        self.latest().filter(|it| it.sandbox_id == sandbox)
    }

    /// The exit before the present attempt's.
    pub(crate) fn last_exit(&self) -> Option<(&ObservedContainer, &Exit)> {
        self.attempts.iter().rev().find_map(|it| exit_of(&it.it).map(|exit| (&it.it, exit)))
    }

    pub(crate) fn running(&self) -> Option<&ObservedContainer> {
        self.attempts.iter().rev().map(|it| &it.it).find(|it| matches!(it.state, Observed::Running { .. }))
    }

    /// It was stopped to be started again.
    pub(crate) fn must_restart(&self) -> bool {
        self.restart_of.is_some() && self.restart_of.as_ref() == self.latest().map(|it| &it.id)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.attempts.iter().any(|it| matches!(it.it.state, Observed::Running { .. } | Observed::Unknown))
    }

    /// Takes in what the runtime shows of one attempt; a container never goes back to an earlier state.
    pub(crate) fn observe(&mut self, seen: ObservedContainer, learnt: Option<Time>) {
        let rank = |it: &Observed| match it {
            Observed::Created => 0,
            Observed::Unknown => 1,
            Observed::Running { .. } => 2,
            Observed::Exited(_) => 3,
        };
        match self.attempts.iter_mut().find(|it| it.it.id == seen.id) {
            Some(known) if rank(&seen.state) >= rank(&known.it.state) => known.it = seen,
            Some(_) => {}
            None => {
                self.attempts.push(Known { it: seen, learnt });
                self.attempts.sort_by(|a, b| (a.it.attempt, &a.it.id).cmp(&(b.it.attempt, &b.it.id)));
            }
        }
        self.settle();
    }

    /// Forgets what a snapshot of that time does not show any more.
    pub(crate) fn retain(&mut self, shown: &BTreeSet<&str>, taken_at: Option<Time>) {
        self.attempts
            .retain(|it| shown.contains(it.it.id.as_str()) || it.learnt.is_some_and(|at| Some(at) >= taken_at));
        self.settle();
    }

    /// A stop is over when its container no longer runs; so is a hook.
    fn settle(&mut self) {
        let alive = |id: &str| {
            let found = self.attempts.iter().find(|it| it.it.id == id);
            found.is_some_and(|it| matches!(it.it.state, Observed::Running { .. } | Observed::Unknown))
        };
        if self.stopping.as_ref().is_some_and(|it| !alive(&it.id)) {
            self.stopping = None;
        }
        if self.post_start.as_ref().is_some_and(|it| !alive(it)) {
            self.post_start = None;
        }
    }

    /// It is on its way to run, or its postStart hook is.
    pub(crate) fn is_beginning(&self) -> bool {
        let gets_image =
            matches!(self.image, ImageState::Inspecting | ImageState::Pulling { .. } | ImageState::Present(_));
        gets_image || self.starting.is_some() || self.post_start.is_some()
    }

    pub(crate) fn use_image(&mut self, name: &str) {
        if self.image_name != name {
            self.image_name = name.into();
            (self.image, self.pulls, self.waiting) = (ImageState::Idle, BackOff::default(), None);
        }
    }

    pub(crate) fn wait(&mut self, reason: &'static str, message: impl Into<String>, now: Time) {
        let since = self.waiting.as_ref().filter(|it| it.reason == reason).map_or(now, |it| it.since);
        self.waiting = Some(Waiting { reason, message: message.into(), since });
    }

    pub(crate) fn is_stopping(&self, id: &str) -> bool {
        self.stopping.as_ref().is_some_and(|it| it.id == id)
    }

    /// The startup probe, where there is one, has passed.
    pub(crate) fn is_started(&self, container: &Container) -> bool {
        // Seen to run before its start was told: a postStart hook may still have to be called.
        if self.starting.is_some() {
            return false;
        }
        let Some(running) = self.running().filter(|it| self.post_start.as_ref() != Some(&it.id)) else { return false };
        container.startup_probe.is_none() || self.passed(ProbeKind::Startup, &running.id) == Some(true)
    }

    pub(crate) fn is_ready(&self, container: &Container) -> bool {
        let Some(running) = self.running() else { return false };
        self.is_started(container)
            && (container.readiness_probe.is_none() || self.passed(ProbeKind::Readiness, &running.id) == Some(true))
    }

    /// No row of answers was long enough yet to say anything of the running container.
    pub(crate) fn is_unprobed(&self, kind: ProbeKind) -> bool {
        self.running().is_some_and(|it| self.passed(kind, &it.id).is_none())
    }

    fn passed(&self, kind: ProbeKind, id: &str) -> Option<bool> {
        self.probes.get(&kind).filter(|it| it.id == id).and_then(|it| it.passed)
    }

    /// Lets go of dead attempts, all but the newest two: one to show, one for `logs --previous`.
    pub(crate) fn prune(&mut self, who: &PodRef, cx: &mut Context<'_>) {
        let surplus = self.attempts.len().saturating_sub(2);
        for known in &self.attempts[..surplus] {
            if exit_of(&known.it).is_some() && self.removing.insert(known.it.id.clone()) {
                cx.host(remove(who, &known.it));
            }
        }
    }

    /// Lets go of dead attempts that take room: all, or all but the newest.
    pub(crate) fn drop_dead(&mut self, who: &PodRef, keeps_newest: bool, cx: &mut Context<'_>) {
        let n_dropped = self.attempts.len().saturating_sub(usize::from(keeps_newest));
        for known in &self.attempts[..n_dropped] {
            if exit_of(&known.it).is_some() && self.removing.insert(known.it.id.clone()) {
                cx.host(remove(who, &known.it));
            }
        }
    }

    pub(crate) fn removed(&mut self, id: &str, is_gone: bool, now: Time) {
        self.removing.remove(id);
        if is_gone {
            self.attempts.retain(|it| it.it.id != id);
        } else {
            self.retry_at = Some(now.after(Duration::from_secs(5)));
        }
    }
}

pub(crate) fn exit_of(container: &ObservedContainer) -> Option<&Exit> {
    match &container.state {
        Observed::Exited(exit) => Some(exit),
        _ => None,
    }
}

fn remove(who: &PodRef, it: &ObservedContainer) -> HostEffect {
    HostEffect::RemoveContainer { pod: who.clone(), container: it.name.clone(), id: it.id.clone(), attempt: it.attempt }
}

/// What a container waits for that is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    Nothing,
    /// Images that it mounts.
    VolumeImages,
}

/// Brings the container one step nearer to running. `restarts` says whether it runs again after an exit.
pub(crate) fn advance(
    track: &mut Track,
    frame: &Frame<'_>,
    sandbox: &ObservedSandbox,
    restarts: &dyn Fn(&Exit) -> bool,
    cx: &mut Context<'_>,
) -> Lacks {
    if track.starting.is_some() || track.stopping.is_some() {
        return Lacks::Nothing;
    }
    let in_sandbox = track.latest_in(&sandbox.id).cloned();
    match in_sandbox.as_ref().map(|it| &it.state) {
        Some(Observed::Running { .. }) => {
            watch_over(track, frame, cx);
            return Lacks::Nothing;
        }
        Some(Observed::Unknown) => {
            stop(track, frame, Some("is in an unknown state, will be restarted"), None, cx);
            return Lacks::Nothing;
        }
        Some(Observed::Created) => {
            // A kubelet died between making and starting it: it cannot be trusted to be whole.
            let half_made = in_sandbox.expect("matched above");
            if cx.is_due(track.retry_at) && track.removing.insert(half_made.id.clone()) {
                cx.host(remove(frame.who, &half_made));
            }
            return Lacks::Nothing;
        }
        Some(Observed::Exited(exit)) if !restarts(exit) && !track.must_restart() => return Lacks::Nothing,
        _ => {}
    }
    if backs_off(track, frame, cx) || !cx.is_due(track.retry_at) {
        return Lacks::Nothing;
    }
    if image_volumes::mounted_by(frame.pod, frame.container).any(|it| !frame.images.contains_key(it)) {
        return Lacks::VolumeImages;
    }
    if crate::image_state::ensure(track, frame, cx) {
        start(track, frame, sandbox, cx);
    }
    Lacks::Nothing
}

/// A running container is stopped where it is no longer what the spec says or a probe has given it up.
fn watch_over(track: &mut Track, frame: &Frame<'_>, cx: &mut Context<'_>) {
    let Some(running) = track.running() else { return };
    if !running.hash.is_empty() && running.hash != spec::hash(frame.container) {
        return stop(track, frame, Some("definition changed, will be restarted"), None, cx);
    }
    let id = running.id.clone();
    for (kind, why) in [
        (ProbeKind::Startup, "failed startup probe, will be restarted"),
        (ProbeKind::Liveness, "failed liveness probe, will be restarted"),
    ] {
        let Some(probe) = probe::of(frame.container, kind) else { continue };
        if track.passed(kind, &id) == Some(false) {
            return stop(track, frame, Some(why), probe.termination_grace_period_seconds, cx);
        }
    }
}

/// True where it crashed too often to be started again now.
fn backs_off(track: &mut Track, frame: &Frame<'_>, cx: &mut Context<'_>) -> bool {
    let Some(latest) = track.attempts.last() else { return false };
    let Some(exit) = exit_of(&latest.it) else { return false };
    let failed = exit.finished_at.or(latest.learnt).unwrap_or(cx.now);
    let Some(until) = track.restarts.until(failed, cx.now) else { return false };
    cx.wake_at(until);
    if track.waiting.as_ref().is_none_or(|it| it.reason != CRASH_LOOP) {
        let (name, attempt) = (&frame.container.name, latest.it.attempt);
        let delay = go_seconds(track.restarts.delay());
        let message = format!("back-off {delay} restarting failed container={name} pod={}", frame.who);
        track.wait(CRASH_LOOP, message, cx.now);
        let message = format!("Back-off restarting failed container {name} in pod {}", frame.who);
        cx.event(frame.who, frame.field, Warning, "BackOff", message);
        let (pod, container) = (frame.who.clone(), name.clone());
        cx.host(HostEffect::TailLog { pod, container, attempt, lines: 10 });
    }
    true
}

pub(crate) const CRASH_LOOP: &str = "CrashLoopBackOff";
pub(crate) const CREATE_ERROR: &str = "CreateContainerError";
/// As upstream, what fails for its configuration is tried again at this pace.
const RETRY: Duration = Duration::from_secs(10);

fn start(track: &mut Track, frame: &Frame<'_>, sandbox: &ObservedSandbox, cx: &mut Context<'_>) {
    if !env_file::read_for(track, frame, cx) {
        return;
    }
    let ImageState::Present(image) = &track.image else { return };
    let ips = if sandbox.ips.is_empty() { &cx.config.node_ips } else { &sandbox.ips };
    let attempt = next_attempt(track, frame);
    let around = cx.around(ips);
    let target = frame.target.as_ref();
    let ingredients = Ingredients {
        sandbox_id: &sandbox.id,
        attempt,
        image,
        sources: cx.sources,
        files: &track.env_files,
        around,
        target,
        images: frame.images,
    };
    match spec::spec(frame.pod, frame.container, &ingredients) {
        Ok(spec) => {
            if let Some(latest) = track.attempts.last()
                && let Some(exit) = exit_of(&latest.it)
            {
                let failed = exit.finished_at.or(latest.learnt).unwrap_or(cx.now);
                track.restarts.next(failed, cx.now);
            }
            track.starting = Some(cx.now);
            track.starting_with = Some(frame.container.resources.clone().unwrap_or_default());
            track.retry_at = None;
            track.env_files = EnvFilesRead::No;
            track.image = ImageState::Idle;
            cx.host(HostEffect::StartContainer(Box::new(spec)));
        }
        Err(ConfigError::Unread) => {}
        Err(ConfigError::Broken(message)) => {
            if track.waiting.as_ref().is_none_or(|it| it.message != message) {
                cx.event(frame.who, frame.field, Warning, "Failed", format!("Error: {message}"));
            }
            track.wait("CreateContainerConfigError", message, cx.now);
            if track.env_files != EnvFilesRead::No {
                track.env_files = EnvFilesRead::No;
                track.retry_at = Some(cx.now.after(RETRY));
                cx.wake_at(cx.now.after(RETRY));
            }
        }
    }
}

/// One more than the runtime or, where that has lost its memory, the API knows of.
fn next_attempt(track: &Track, frame: &Frame<'_>) -> u32 {
    if let Some(latest) = track.latest() {
        return latest.attempt.saturating_add(1);
    }
    let name = &frame.container.name;
    let status = frame.pod.status.as_ref();
    let lists = status.map(|it| [&it.container_statuses, &it.init_container_statuses]);
    let told = lists.into_iter().flatten().flat_map(|it| it.iter().flatten()).find(|it| it.name == *name);
    let told = told.filter(|it| it.container_id.as_ref().is_some_and(|it| !it.is_empty()));
    told.map_or(0, |it| u32::try_from(it.restart_count).unwrap_or(0) + 1)
}

pub(crate) fn started(
    track: &mut Track,
    frame: &Frame<'_>,
    result: Result<ObservedContainer, StartFailure>,
    cx: &mut Context<'_>,
) {
    track.starting = None;
    match result {
        Ok(container) => {
            track.waiting = None;
            let id = container.id.clone();
            track.given = track.starting_with.take().map(|it| (id.clone(), it));
            track.observe(container, Some(cx.now));
            cx.event(frame.who, frame.field, Normal, "Created", "Container created".into());
            cx.event(frame.who, frame.field, Normal, "Started", "Container started".into());
            track.prune(frame.who, cx);
            run_post_start(track, frame, id, cx);
        }
        Err(failure) => {
            let reason = match failure.stage {
                StartStage::Config => "CreateContainerConfigError",
                StartStage::Create => CREATE_ERROR,
                StartStage::Start => "RunContainerError",
            };
            if failure.stage == StartStage::Start {
                cx.event(frame.who, frame.field, Normal, "Created", "Container created".into());
            }
            cx.event(frame.who, frame.field, Warning, "Failed", format!("Error: {}", failure.message));
            track.wait(reason, failure.message, cx.now);
            // A dead container is left behind: from now on its exit rules, as any other's.
            let pause = if failure.container.is_some() { Duration::from_secs(1) } else { RETRY };
            track.retry_at = Some(cx.now.after(pause));
            if let Some(container) = failure.container {
                track.observe(container, Some(cx.now));
                track.prune(frame.who, cx);
            }
        }
    }
}

fn run_post_start(track: &mut Track, frame: &Frame<'_>, id: String, cx: &mut Context<'_>) {
    let hook = frame.container.lifecycle.as_ref().and_then(|it| it.post_start.as_ref());
    let ip = frame.pod_ips.first().map_or("", String::as_str);
    let Some(action) = hook.and_then(|it| probe::hook_action(it, frame.container, ip)) else { return };
    track.post_start = Some(id.clone());
    match action {
        Ok(action) => cx.host(HostEffect::RunHook {
            pod: frame.who.clone(),
            container: frame.container.name.clone(),
            id,
            hook: Hook::PostStart,
            action,
            // As upstream: only the container's own end limits it.
            timeout_seconds: 24 * 3600,
        }),
        Err(message) => hooked(track, frame, &id, Hook::PostStart, Err(message), cx),
    }
}

/// As upstream, both the event of a postStart hook and the reason for stopping its container.
const HOOK_FAILED: &str = "FailedPostStartHook";

/// Begins to stop whatever runs. `why` is given where the pod itself goes on.
pub(crate) fn stop(
    track: &mut Track,
    frame: &Frame<'_>,
    why: Option<&str>,
    grace_seconds: Option<i64>,
    cx: &mut Context<'_>,
) {
    let alive =
        track.attempts.iter().rev().find(|it| matches!(it.it.state, Observed::Running { .. } | Observed::Unknown));
    let Some(id) = alive.map(|it| it.it.id.clone()) else { return };
    let spec = crate::pod::spec_of(frame.pod);
    let grace = grace_seconds.or(spec.termination_grace_period_seconds).unwrap_or(30).max(1);
    let name = &frame.container.name;
    let message = match why {
        Some(HOOK_FAILED) => HOOK_FAILED.into(),
        Some(why) => format!("Container {name} {why}"),
        None => format!("Stopping container {name}"),
    };
    cx.event(frame.who, frame.field, Normal, "Killing", message);
    let deadline = cx.now.after(Duration::from_secs(u64::try_from(grace).unwrap_or(1)));
    let hook = frame.container.lifecycle.as_ref().and_then(|it| it.pre_stop.as_ref());
    let ip = frame.pod_ips.first().map_or("", String::as_str);
    let action = hook.and_then(|it| probe::hook_action(it, frame.container, ip));
    track.stopping = Some(Stopping { id: id.clone(), deadline, in_hook: action.is_some(), retry_at: None });
    match action {
        None => signal(track, frame, cx),
        Some(Ok(action)) => cx.host(HostEffect::RunHook {
            pod: frame.who.clone(),
            container: name.clone(),
            id,
            hook: Hook::PreStop,
            action,
            timeout_seconds: u32::try_from(grace).unwrap_or(u32::MAX),
        }),
        Some(Err(message)) => hooked(track, frame, &id, Hook::PreStop, Err(message), cx),
    }
}

/// StopContainer with what is left of the grace, but always two seconds, as upstream.
fn signal(track: &mut Track, frame: &Frame<'_>, cx: &mut Context<'_>) {
    let Some(stopping) = &mut track.stopping else { return };
    stopping.in_hook = false;
    let left = i64::try_from(stopping.deadline.since(cx.now).as_secs()).unwrap_or(i64::MAX);
    cx.host(HostEffect::StopContainer {
        pod: frame.who.clone(),
        container: frame.container.name.clone(),
        id: stopping.id.clone(),
        timeout_seconds: left.max(2),
        signal: frame.container.lifecycle.as_ref().and_then(|it| it.stop_signal.clone()),
    });
}

/// Repeats a stop that failed, and shortens one whose grace was cut.
pub(crate) fn keep_stopping(track: &mut Track, frame: &Frame<'_>, deadline: Option<Time>, cx: &mut Context<'_>) {
    let Some(stopping) = &mut track.stopping else { return };
    if let Some(deadline) = deadline.filter(|it| it.after(Duration::from_secs(1)) < stopping.deadline) {
        stopping.deadline = deadline;
        stopping.retry_at = None;
        return signal(track, frame, cx);
    }
    if stopping.retry_at.is_some() && cx.is_due(stopping.retry_at) {
        stopping.retry_at = None;
        signal(track, frame, cx);
    }
}

pub(crate) fn stopped(track: &mut Track, id: &str, is_done: bool, cx: &mut Context<'_>) {
    let Some(stopping) = track.stopping.as_mut().filter(|it| it.id == id) else { return };
    // Done: the next snapshot shows how it ended. If none does, stopping again is harmless.
    let pause = if is_done { 30 } else { 5 };
    stopping.retry_at = Some(cx.now.after(Duration::from_secs(pause)));
}

pub(crate) fn hooked(
    track: &mut Track,
    frame: &Frame<'_>,
    id: &str,
    hook: Hook,
    result: Result<HookAnswer, String>,
    cx: &mut Context<'_>,
) {
    if let Ok(HookAnswer::WithoutTls { server }) = &result {
        let message = format!("request to HTTPS lifecycle hook {server} got HTTP response, retry with HTTP succeeded");
        cx.event(frame.who, "", Warning, "LifecycleHTTPFallback", message);
    }
    match hook {
        Hook::PostStart => {
            if track.post_start.as_deref() != Some(id) {
                return;
            }
            if let Err(message) = result {
                // As upstream: what a hook said may hold secrets, so no event repeats it.
                let event = "PostStartHook failed".to_owned();
                cx.event(frame.who, frame.field, Warning, HOOK_FAILED, event);
                track.hook_failure = Some((id.to_owned(), message.clone()));
                track.wait("PostStartHookError", format!("PostStartHook failed: {message}"), cx.now);
                stop(track, frame, Some(HOOK_FAILED), None, cx);
            } else {
                track.post_start = None;
            }
        }
        Hook::PreStop => {
            if !track.stopping.as_ref().is_some_and(|it| it.id == id && it.in_hook) {
                return;
            }
            if result.is_err() {
                cx.event(frame.who, frame.field, Warning, "FailedPreStopHook", "PreStopHook failed".into());
            }
            signal(track, frame, cx);
        }
    }
}
