//! Everything known of one pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_api::core::v1::{Container, Pod, PodSpec};
use corten_meta::Time;
use corten_reconcile::Decision;
use serde_json::{Map, Value};

use crate::{
    ObservedSandbox, PodRef, Snapshot, Volume,
    pod::{
        addresses::of_each_family,
        admission::Admission,
        claims::Claims,
        container_record::{ContainerContext, ContainerRecord, exit_of},
        context::Context,
        device_claims::DeviceClaims,
        resize::Resize,
        shutdown_pause::ShutdownPause,
        span::Span,
        termination::{KillPodOptions, Termination},
        unsupported::Support,
    },
    spec::{
        pod::{ephemeral_containers, field_path, is_sidecar, restarts, spec_of},
        pod_certificates::Certificates,
        tokens::Tokens,
        volumes::{Problem, ProblemKind},
    },
};

/// Everything known of one pod.
#[derive(Debug)]
pub(crate) struct PodMachine {
    pub(crate) who: PodRef,
    /// As the API last had it; only its names where the API never had it.
    pub(crate) pod: Arc<Pod>,
    /// The API wants it here; of a static pod: its manifest does.
    pub(crate) in_api: bool,
    /// The uid of the mirror pod that shows it.
    pub(crate) mirror: Option<String>,
    /// `status.startTime`: when this node first saw it.
    pub(crate) started: Time,
    pub(crate) start: Start,
    pub(crate) sandboxes: Vec<KnownSandbox>,
    pub(crate) sandbox_step: SandboxStep,
    pub(crate) removing: BTreeSet<String>,
    pub(crate) volumes: VolumeState,
    pub(crate) tokens: Tokens,
    pub(crate) certificates: Certificates,
    pub(crate) claims: Claims,
    pub(crate) device_claims: DeviceClaims,
    pub(crate) container_records: BTreeMap<String, ContainerRecord>,
    /// Of the volumes that are images: what is known of each.
    pub(crate) image_volumes: BTreeMap<String, ContainerRecord>,
    pub(crate) ending: Option<Termination>,
    /// Why a container cannot be stopped though the pod is ended, and since when.
    pub(crate) stop_problem: Option<(String, Time)>,
    /// The node wants it gone.
    pub(crate) termination: Option<KillPodOptions>,
    /// The machine is about to end, and the pod waits for the next boot.
    pub(crate) shutdown_pause: Option<ShutdownPause>,
    pub(crate) patch: PatchState,
    pub(crate) network: Span,
    pub(crate) recorded: Option<Decision>,
    /// The API has another pod of its name, whose steps are what is told.
    pub(crate) has_successor: bool,
    /// Whether this node takes it; `None`: not decided in this run of the kubelet.
    pub(crate) admission: Admission,
    pub(crate) support: Support,
    pub(crate) resize: Resize,
    /// All its containers are being stopped, to begin anew.
    pub(crate) restarting_all: Option<bool>,
    pub(crate) wake: Option<Time>,
}

/// Whether it is counted how long the pod takes until it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    #[default]
    Unknown,
    /// This run of the kubelet has seen it before it ran.
    Pending,
    Over,
}

#[derive(Debug)]
pub(crate) struct KnownSandbox {
    pub(crate) it: ObservedSandbox,
    pub(crate) learnt: Option<Time>,
    /// Its network is taken down; it only stays for its dead containers.
    pub(crate) is_stopped: bool,
}

/// The making of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct SandboxStep {
    pub(crate) in_flight: bool,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Time>,
    /// Why the last try failed.
    pub(crate) problem: Option<String>,
    pub(crate) attempts: u32,
    /// When to try again to stop or remove one, after a failure.
    pub(crate) end_retry_at: Option<Time>,
    /// Why one cannot be stopped or removed, and since when.
    pub(crate) end_problem: Option<(String, Time)>,
    /// So often in a row the runtime gave no answer in time.
    pub(crate) end_timeouts: u32,
}

#[derive(Debug, Default)]
pub(crate) struct VolumeState {
    pub(crate) in_flight: bool,
    /// When drivers that ask for it (`requiresRepublish`) publish again.
    pub(crate) republish_at: Option<Time>,
    /// They are to do it now.
    pub(crate) is_stale: bool,
    pub(crate) is_ready: bool,
    /// What was last given to the host.
    pub(crate) content: Vec<Volume>,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Time>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) span: Span,
}

/// The status at the API.
#[derive(Debug, Default)]
pub(crate) struct PatchState {
    pub(crate) in_flight: bool,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Time>,
    /// What was last sent, and the version it made: a server that keeps less than it is sent is not asked again and again.
    pub(crate) sent: Map<String, Value>,
    pub(crate) made: Option<String>,
}

impl VolumeState {
    /// Not there yet, and nothing says that they will not be.
    pub(crate) fn is_coming(&self) -> bool {
        let is_asked = |it: &Problem| matches!(it.kind, ProblemKind::Asked | ProblemKind::Unsigned);
        let is_asked = !self.problems.is_empty() && self.problems.iter().all(is_asked);
        self.failures == 0 && (is_asked || (self.in_flight && self.problems.is_empty()))
    }
}

impl PodMachine {
    pub(crate) fn new(who: PodRef, pod: Arc<Pod>, in_api: bool, now: Time) -> Self {
        let told = pod.status.as_ref().and_then(|it| it.start_time.as_ref()).map(|it| Time(it.0));
        let mut machine = Self {
            who,
            pod: Arc::default(),
            in_api,
            mirror: None,
            started: told.unwrap_or(now),
            start: Start::default(),
            sandboxes: Vec::new(),
            sandbox_step: SandboxStep::default(),
            removing: BTreeSet::new(),
            volumes: VolumeState::default(),
            tokens: Tokens::default(),
            certificates: Certificates::default(),
            claims: Claims::default(),
            device_claims: DeviceClaims::default(),
            container_records: BTreeMap::new(),
            image_volumes: BTreeMap::new(),
            ending: None,
            stop_problem: None,
            termination: None,
            shutdown_pause: None,
            patch: PatchState::default(),
            network: Span::default(),
            recorded: None,
            has_successor: false,
            admission: Admission::default(),
            support: Support::default(),
            resize: Resize::default(),
            restarting_all: None,
            wake: None,
        };
        machine.take(pod);
        machine
    }

    pub(crate) fn spec(&self) -> &PodSpec {
        spec_of(&self.pod)
    }

    /// The sandbox that containers may run in.
    pub(crate) fn sandbox(&self) -> Option<&ObservedSandbox> {
        self.sandboxes.iter().rev().map(|it| &it.it).find(|it| it.ready)
    }

    /// The pod's addresses: its sandbox's, or the node's for a pod in the host's network.
    pub(crate) fn ips(&self, cx: &Context<'_>) -> Vec<String> {
        match self.sandbox() {
            Some(_) if self.spec().host_network == Some(true) => cx.config.node_ips.clone(),
            Some(sandbox) => of_each_family(&sandbox.ips, &cx.config.node_ips),
            None => Vec::new(),
        }
    }

    /// Takes in what the runtime shows of this pod.
    pub(crate) fn observe(&mut self, snapshot: &Snapshot, ignored: &BTreeMap<String, Time>) {
        let mut shown = BTreeSet::new();
        let mine = |pod: &PodRef| pod.uid == self.who.uid;
        for sandbox in snapshot.sandboxes.iter().filter(|it| mine(&it.pod) && !ignored.contains_key(&it.id)) {
            shown.insert(sandbox.id.as_str());
            match self.sandboxes.iter_mut().find(|it| it.it.id == sandbox.id) {
                Some(known) if known.learnt.is_none_or(|at| Some(at) < snapshot.taken_at) => {
                    known.it = sandbox.clone();
                }
                Some(_) => {}
                None => self.sandboxes.push(KnownSandbox { it: sandbox.clone(), learnt: None, is_stopped: false }),
            }
        }
        let taken_at = snapshot.taken_at;
        self.sandboxes
            .retain(|it| shown.contains(it.it.id.as_str()) || it.learnt.is_some_and(|at| Some(at) >= taken_at));
        self.sandboxes.sort_by_key(|it| (it.it.attempt, it.it.created_at));
        for container in snapshot.containers.iter().filter(|it| mine(&it.pod) && !ignored.contains_key(&it.id)) {
            shown.insert(container.id.as_str());
            self.container_records.entry(container.name.clone()).or_default().observe(container.clone(), None);
        }
        let is_ending = self.ending.is_some();
        for record in self.container_records.values_mut() {
            record.retain(|it| {
                let is_new = it.learnt.is_some_and(|at| Some(at) >= taken_at);
                shown.contains(it.it.id.as_str()) || is_new || (is_ending && it.has_ended())
            });
        }
    }

    /// Calls `act` with the container's record and everything it needs beside it.
    pub(crate) fn with_container_record<R>(
        &mut self,
        container: &Container,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut ContainerRecord, &ContainerContext<'_>, &mut Context<'_>) -> R,
    ) -> R {
        let ips = self.ips(cx);
        let field = field_path(&self.pod, &container.name);
        let target = self.target_of(&container.name);
        let images = self.volume_images();
        let record = self.container_records.entry(container.name.clone()).or_default();
        let (persistent, prepared) = (self.claims.resolved(), self.device_claims.prepared());
        let (who, pod, field, pod_ips, images) = (&self.who, &*self.pod, &*field, &*ips, &images);
        let context = ContainerContext {
            who,
            pod,
            container,
            field,
            pod_ips,
            target,
            images,
            persistent: &persistent,
            prepared: &prepared,
        };
        act(record, &context, cx)
    }

    /// The container whose processes an ephemeral one is to see, or that there is none.
    fn target_of(&self, name: &str) -> Option<Result<String, String>> {
        let target = ephemeral_containers(&self.pod).find(|it| it.name == name)?.target_container_name.as_deref();
        let target = target.filter(|it| !it.is_empty())?;
        let latest = self.container_records.get(target).and_then(ContainerRecord::latest);
        Some(latest.map(|it| it.id.clone()).ok_or_else(|| format!("unable to find target container {target}")))
    }

    /// True where no container will run again by itself: all have ended, or an init container has failed for good.
    pub(crate) fn is_finished(&self) -> bool {
        if self.must_restart_all() {
            return false;
        }
        let pod = &self.pod;
        let ended_for_good = |container: &Container| {
            let record = self.container_records.get(&container.name);
            let exit =
                record.filter(|it| it.starting.is_none() && !it.must_restart()).and_then(|it| exit_of(it.latest()?));
            exit.filter(|exit| !restarts(pod, container, exit)).map(|it| it.code)
        };
        let spec = self.spec();
        let mut init = spec.init_containers.iter().flatten().filter(|it| !is_sidecar(it));
        let init_failed = init.any(|it| ended_for_good(it).is_some_and(|it| it != 0));
        init_failed || (!spec.containers.is_empty() && spec.containers.iter().all(|it| ended_for_good(it).is_some()))
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.container_records.values().any(|it| it.starting.is_some())
    }
}
