//! One pod: everything known of it, and the one function that looks at all of that and goes a step on.
//!
//! ```text
//! volumes ──► sandbox ──► init containers, one by one ──► containers ──► all done ──► sandbox stopped
//!                 any time: deletion, deadline, gone from the API ──► see `ending`
//! ```

use std::{collections::BTreeSet, time::Duration};

use corten_api::core::v1::Container;
use corten_reconcile::EventType::{Normal, Warning};

use crate::{
    Exit, Failure, HostEffect, Observed, ObservedSandbox, SandboxSpec,
    backoff::pause,
    node::{devices::wants_extended, status::network_problem},
    pod::{
        claims::ATTACH_PATIENCE,
        container_record::{ContainerRecord, exit_of},
        containers,
        context::Context,
        image_state,
        machine::{KnownSandbox, PodMachine},
        probe,
        span::Span,
    },
    spec::{
        images,
        pod::{all_containers, as_container, ephemeral_containers, is_sidecar, restarts, spec_of},
        resolv, sandbox, user_namespace,
        volumes::{self, Problem, ProblemKind},
    },
};

/// What the event and the journal begin with where the runtime has no network.
pub(crate) const NO_NETWORK: &str = "network is not ready";
/// Upstream's kubelet mounts again with each look at a Pod, once a minute (`syncFrequency`).
const REPUBLISH: Duration = Duration::from_secs(60);
const NETWORK_RETRY: Duration = Duration::from_secs(2);

impl PodMachine {
    /// Goes one step on: what is not yet as the spec wants it and not already under way is begun.
    pub(crate) fn sync_pod(&mut self, cx: &mut Context<'_>, runtime_is_known: bool) {
        self.note_ending(cx);
        if runtime_is_known {
            if self.ending.is_some() {
                self.wind_down(cx);
            } else if self.shutdown_pause.is_some() {
                self.pause_for_shutdown(cx);
            } else if self.is_admitted() {
                self.bring_up(cx);
                self.drive_resize(cx);
            }
            self.drive_probes(cx);
        }
        let stays = self.shutdown_pause.is_some() && self.ending.is_none();
        let is_told = runtime_is_known && !stays && (self.is_decided() || self.ending.is_some());
        if is_told {
            self.note_start(cx);
        }
        // Not before it is decided whether the pod is taken: its start time tells that it is.
        let is_shown = if self.is_static() { self.mirror.is_some() } else { self.in_api };
        if is_shown && is_told {
            self.publish(cx);
        }
        self.record(cx);
    }

    fn bring_up(&mut self, cx: &mut Context<'_>) {
        if !self.is_supported(cx) {
            return;
        }
        let missing = images::missing_secrets(&self.pod, cx.sources);
        if !missing.is_empty() {
            let names = missing.join(", ");
            let message = format!(
                "Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
            );
            self.warn("FailedToRetrieveImagePullSecret", message, cx);
        }
        let has_volumes = self.prepare_volumes(cx);
        let has_claims = self.prepare_device_claims(cx);
        if !has_claims {
            return;
        }
        // The network takes longest: it is made while the volumes are, as long as nothing is wrong with them.
        if !has_volumes && !self.volumes.is_coming() {
            return;
        }
        let Some(sandbox) = self.ensure_sandbox(cx) else {
            // Images come while the network is being made.
            if self.sandbox_step.in_flight && self.sandbox_step.problem.is_none() {
                self.fetch_first_images(cx);
            }
            return;
        };
        // What an earlier run gave it is not known before.
        let has_devices = cx.devices.are_known || !wants_extended(&self.pod);
        if has_volumes && has_devices {
            self.run_containers(&sandbox, cx);
        }
    }

    /// True once the volumes are there; later it keeps their content up to date.
    fn prepare_volumes(&mut self, cx: &mut Context<'_>) -> bool {
        self.fetch_tokens(cx);
        self.fetch_certificates(cx);
        self.read_volumes(cx);
        if self.volumes.in_flight {
            return self.volumes.is_ready;
        }
        if self.volumes.republish_at.is_some() && cx.is_due(self.volumes.republish_at) {
            self.volumes.republish_at = None;
            self.volumes.is_stale = true;
            self.volumes_are_stale();
        }
        if cx.is_due(self.volumes.retry_at) && !self.renew_volumes(cx) {
            return self.volumes.is_ready;
        }
        let state = &mut self.volumes;
        state.span.started.get_or_insert(cx.now);
        let certificates = &self.certificates;
        let given = volumes::ProjectedSources { tokens: &self.tokens, certificates, trust_bundles: cx.trust_bundles };
        match volumes::plan(&self.pod, cx.sources, &given, &self.claims, &cx.downward_context(&[])) {
            Ok(content) => {
                state.problems.retain(|it| it.volume.is_empty());
                if content.is_empty() {
                    state.is_ready = true;
                    state.span.finished.get_or_insert(cx.now);
                    return true;
                }
                let is_current = state.is_ready && state.content == content && !state.is_stale;
                if !is_current && cx.is_due(state.retry_at) {
                    (state.in_flight, state.content) = (true, content.clone());
                    let group = volumes::group(&self.pod);
                    cx.host(HostEffect::PrepareVolumes { pod: self.who.clone(), volumes: content, group });
                }
            }
            Err(mut problems) => {
                // Running containers keep the content they have.
                if state.is_ready {
                    return true;
                }
                if state.span.started.is_some_and(|it| it.after(ATTACH_PATIENCE) <= cx.now) {
                    problems.iter_mut().for_each(Problem::lasts);
                }
                let known: BTreeSet<&Problem> = state.problems.iter().collect();
                for it in problems.iter().filter(|it| it.kind.is_told()) {
                    if !known.contains(it) {
                        cx.event(&self.who, "", Warning, "FailedMount", it.message.clone());
                    }
                }
                state.problems = problems;
            }
        }
        self.volumes.is_ready
    }

    pub(crate) fn volumes_done(&mut self, result: Result<(), Failure>, cx: &mut Context<'_>) {
        let state = &mut self.volumes;
        state.in_flight = false;
        match result {
            Ok(()) => {
                state.is_ready = true;
                state.is_stale = false;
                state.span.finished.get_or_insert(cx.now);
                (state.failures, state.retry_at) = (0, None);
                state.republish_at = volumes::has_republished(&state.content).then(|| cx.now.after(REPUBLISH));
                state.problems.clear();
            }
            Err(failure) => {
                state.failures += 1;
                state.retry_at = Some(cx.now.after(pause(state.failures, 120)));
                state.content.clear();
                let problem = Problem { volume: String::new(), kind: ProblemKind::Missing, message: failure.message };
                if !state.problems.contains(&problem) {
                    cx.event(&self.who, "", Warning, "FailedMount", problem.message.clone());
                }
                state.problems = vec![problem];
                // A Secret that was wrong may be put right.
                self.volumes_are_stale();
            }
        }
    }

    /// The sandbox to run containers in; else one is under way, or something must end first.
    fn ensure_sandbox(&mut self, cx: &mut Context<'_>) -> Option<ObservedSandbox> {
        if let Some(sandbox) = self.sandbox().cloned() {
            // Older ones stay as long as a container's newest attempt is in them: it may have to be shown.
            let held: BTreeSet<_> =
                self.container_records.values().filter_map(|it| Some(it.latest()?.sandbox_id.clone())).collect();
            self.remove_sandboxes(|it| it.id != sandbox.id && !held.contains(&it.id), cx);
            return Some(sandbox);
        }
        if self.sandbox_step.in_flight {
            return None;
        }
        if self.sandboxes.iter().any(|it| !it.is_stopped) {
            if self.removing.is_empty() && self.sandbox_step.end_retry_at.is_none() {
                let message = "Pod sandbox changed, it will be killed and re-created.";
                cx.event(&self.who, "", Normal, "SandboxChanged", message.into());
                self.network = Span::default();
            }
            self.stop_sandboxes(cx);
            return None;
        }
        if !cx.is_due(self.sandbox_step.retry_at) || self.container_records.values().any(|it| it.starting.is_some()) {
            return None;
        }
        self.network.started.get_or_insert(cx.now);
        if self.awaits_network(cx) {
            return None;
        }
        let runtime_handler = match cx.runtime_classes.handler(&self.pod)? {
            Ok(handler) => handler,
            Err(problem) => {
                self.sandbox_done(Err(Failure::new(problem)), cx);
                return None;
            }
        };
        if let Err(problem) = user_namespace::check(&self.pod, &runtime_handler, cx.facts) {
            self.sandbox_done(Err(Failure::new(problem)), cx);
            return None;
        }
        self.sandbox_step.in_flight = true;
        let newest = self.sandboxes.iter().map(|it| it.it.attempt.saturating_add(1)).max().unwrap_or(0);
        let attempt = self.sandbox_step.attempts.max(newest);
        for (reason, message) in resolv::of_pod(&self.pod, cx.config, cx.facts).1 {
            cx.event(&self.who, "", Warning, reason, message);
        }
        let mut spec = sandbox::spec(&self.pod, attempt, cx.config, cx.facts);
        if cx.managers.pod_has_own_cpus(&self.who.uid) {
            spec.resources = spec.resources.without_quota();
        }
        cx.host(HostEffect::RunSandbox(Box::new(SandboxSpec { runtime_handler, ..spec })));
        None
    }

    /// As in the kubelet's `SyncPod`: as long as the runtime has no network to give, it is not asked for one.
    fn awaits_network(&mut self, cx: &mut Context<'_>) -> bool {
        let in_host_network = self.spec().host_network == Some(true);
        let problem = cx.facts.filter(|_| !in_host_network).and_then(network_problem);
        let Some(problem) = problem else { return false };
        let message = format!("{NO_NETWORK}: {problem}");
        if self.sandbox_step.problem.as_ref() != Some(&message) {
            cx.event(&self.who, "", Warning, "NetworkNotReady", message.clone());
        }
        self.sandbox_step.problem = Some(message);
        self.sandbox_step.retry_at = Some(cx.now.after(NETWORK_RETRY));
        cx.is_due(self.sandbox_step.retry_at);
        true
    }

    pub(crate) fn sandbox_done(&mut self, result: Result<ObservedSandbox, Failure>, cx: &mut Context<'_>) {
        let step = &mut self.sandbox_step;
        step.in_flight = false;
        match result {
            Ok(sandbox) => {
                (step.failures, step.retry_at, step.problem) = (0, None, None);
                self.network.finished = Some(cx.now);
                self.resize.sandbox_made();
                self.sandboxes.retain(|it| it.it.id != sandbox.id);
                step.attempts = sandbox.attempt.saturating_add(1);
                self.sandboxes.push(KnownSandbox { it: sandbox, learnt: Some(cx.now), is_stopped: false });
            }
            Err(failure) => {
                step.failures += 1;
                step.attempts = step.attempts.saturating_add(1);
                step.retry_at = Some(cx.now.after(pause(step.failures, 10)));
                let message = format!("Failed to create pod sandbox: {}", failure.message);
                step.problem = Some(failure.message);
                cx.event(&self.who, "", Warning, "FailedCreatePodSandBox", message);
            }
        }
    }

    fn fetch_first_images(&mut self, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        let spec = spec_of(&pod);
        let init = spec.init_containers.as_deref().unwrap_or_default();
        let first = if init.is_empty() { spec.containers.as_slice() } else { &init[..1] };
        for container in first {
            self.with_container_record(container, cx, |record, context, cx| {
                if record.attempts.is_empty() {
                    image_state::ensure(record, context, cx);
                }
            });
        }
    }

    /// Each once: one that has ever begun is never begun again. They need not wait for init containers.
    fn run_ephemeral(&mut self, sandbox: &ObservedSandbox, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        for container in ephemeral_containers(&pod).map(as_container) {
            let told = pod.status.as_ref().and_then(|it| it.ephemeral_container_statuses.as_ref());
            let mut told = told.into_iter().flatten().filter(|it| it.name == container.name);
            let latest = self.container_records.get(&container.name).and_then(ContainerRecord::latest);
            let has_begun = match latest {
                Some(it) => it.state != Observed::Created,
                None => told.any(|it| it.container_id.as_ref().is_some_and(|it| !it.is_empty())),
            };
            if !has_begun {
                self.advance(&container, sandbox, &|_| false, cx);
            }
        }
    }

    fn run_containers(&mut self, sandbox: &ObservedSandbox, cx: &mut Context<'_>) {
        self.run_ephemeral(sandbox, cx);
        if self.restart_all(cx) {
            return;
        }
        let pod = self.pod.clone();
        let spec = spec_of(&pod);
        // Containers of a sandbox that is gone do not count: its init containers run again in the new one.
        let mains_began = spec
            .containers
            .iter()
            .any(|it| self.container_records.get(&it.name).is_some_and(|it| it.latest_in(&sandbox.id).is_some()));
        for container in spec.init_containers.iter().flatten() {
            let restarts = |exit: &Exit| restarts(&pod, container, exit);
            if is_sidecar(container) {
                self.advance(container, sandbox, &restarts, cx);
                let is_started = self.container_records.get(&container.name).is_some_and(|it| it.is_started(container));
                if !is_started && !mains_began {
                    return;
                }
                continue;
            }
            let latest = self.container_records.get(&container.name).and_then(|it| it.latest_in(&sandbox.id));
            let is_done = latest.and_then(exit_of).is_some_and(|it| it.code == 0);
            if !is_done && !mains_began {
                return self.advance(container, sandbox, &restarts, cx);
            }
        }
        let mut is_held = false;
        for container in &spec.containers {
            let restarts = |exit: &Exit| restarts(&pod, container, exit);
            // Unlike init containers, one that is done stays done in a new sandbox.
            let record = self.container_records.get(&container.name);
            // As in kuberuntime's `SyncPod`: one after the other, and until a container's postStart hook is over none that
            // comes after it is begun. All starts of a pod go through one shim, which with many at once does not even say
            // how it is.
            if is_held && !record.is_some_and(ContainerRecord::is_alive) {
                continue;
            }
            let exit = record.and_then(ContainerRecord::latest).and_then(exit_of);
            if exit.is_none_or(restarts) || record.is_some_and(ContainerRecord::must_restart) {
                self.advance(container, sandbox, &restarts, cx);
            }
            let has_hook = container.lifecycle.as_ref().is_some_and(|it| it.post_start.is_some());
            let record = self.container_records.get(&container.name);
            is_held |= record.is_some_and(|it| it.starting.is_some() || has_hook && it.is_beginning());
        }
    }

    fn advance(
        &mut self,
        container: &Container,
        sandbox: &ObservedSandbox,
        restarts: &dyn Fn(&Exit) -> bool,
        cx: &mut Context<'_>,
    ) {
        let (blockers, is_begun) = self.with_container_record(container, cx, |record, context, cx| {
            containers::keep_stopping(record, context, None, cx);
            let was_starting = record.starting.is_some();
            let blockers = containers::advance(record, context, sandbox, restarts, cx);
            (blockers, record.starting.is_some() && !was_starting)
        });
        if blockers == containers::StartBlockers::VolumeImages {
            self.fetch_image_volumes(container, cx);
        }
        if is_begun {
            self.look_again_for_images(container);
        }
    }

    fn drive_probes(&mut self, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        let is_ending = self.ending.is_some() || self.shutdown_pause.is_some();
        for container in all_containers(&pod) {
            self.with_container_record(container, cx, |record, context, cx| {
                probe::drive(record, context, is_ending, cx)
            });
        }
    }
}
