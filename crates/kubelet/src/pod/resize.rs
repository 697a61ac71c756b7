//! Resources that change while containers run (`pods/resize`): granted where the node has room, then brought about.
//!
//! `PodMachine::pod` always holds what is granted, so that all others need not know: what is asked for beyond that waits
//! here, `Infeasible` (the node never has it) or `Deferred` (others have it now).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_api::{
    apimachinery::pkg::apis::meta::v1::Time as ApiTime,
    core::v1::{Container, Pod, PodCondition, PodStatus, ResourceRequirements},
};
use corten_meta::{Quantity, Time};
use corten_reconcile::{
    Actor,
    EventType::{Normal, Warning},
    Step, StepState, Wait,
};
use serde_json::{Value, json};

use crate::{
    Failure, HostEffect, MemoryCheck, ResizeStep, Resources,
    pod::{
        containers,
        context::Context,
        machine::PodMachine,
        span::{Span, step},
    },
    spec::{
        pod::{all_containers, is_sidecar, spec_of},
        resources, sandbox,
    },
};

/// How long until what others hold is looked at again, and until what failed is tried again.
pub(crate) const DEFERRED: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_secs(10);
/// The key of the pod's own resources among its containers'.
const OF_POD: &str = "";

#[derive(Debug, Default)]
pub(crate) struct Resize {
    /// What is asked for and not granted, by container.
    pub(crate) desired: BTreeMap<String, ResourceRequirements>,
    /// Why it is not: reason and message.
    pub(crate) pending: Option<(&'static str, String)>,
    pub(crate) told: Option<(i64, &'static str)>,
    pub(crate) progress: Option<Progress>,
    /// What the pod's cgroup was last told, where that was after its start.
    pub(crate) cgroup: Option<Resources>,
}

/// What is granted is being brought about.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    in_flight: Option<Change>,
    error: Option<String>,
    retry_at: Option<Time>,
    generation: i64,
}

/// What one effect brings about.
#[derive(Clone, Debug, Default)]
struct Change {
    /// By container: the id of the attempt, and what it has afterwards.
    containers: BTreeMap<String, (String, ResourceRequirements)>,
    cgroup: Resources,
}

impl Resize {
    /// A new sandbox comes with a cgroup that has what is granted.
    pub(crate) fn sandbox_made(&mut self) {
        self.cgroup = None;
    }
}

impl PodMachine {
    /// Takes in a newer version of the pod. What it asks for beyond what is granted is set apart.
    pub(crate) fn take(&mut self, pod: Arc<Pod>) {
        let is_new = spec_of(&self.pod).containers.is_empty();
        let granted = if is_new { granted_before(&pod) } else { granted(&self.pod) };
        self.resize.desired = granted
            .iter()
            .filter_map(|(name, granted)| {
                let asked = resources_of(&pod, name)?;
                (!same(&asked, granted)).then(|| (name.clone(), asked))
            })
            .collect();
        self.pod = match self.resize.desired.is_empty() {
            true => pod,
            false => with_resources(&pod, |name| self.resize.desired.contains_key(name).then(|| granted[name].clone())),
        };
        if self.resize.desired.is_empty() {
            self.resize.pending = None;
        }
    }

    /// The resources a container's running attempt was given.
    fn actual(&self, container: &Container) -> ResourceRequirements {
        let granted = || container.resources.clone().unwrap_or_default();
        let record = self.container_records.get(&container.name);
        let Some(running) = record.and_then(|it| it.running()) else { return granted() };
        if let Some((id, given)) = record.and_then(|it| it.given.as_ref())
            && *id == running.id
        {
            return given.clone();
        }
        // An earlier run of the kubelet has started it, and told what it gave.
        let status = self.pod.status.as_ref();
        let lists = status.map(|it| [&it.container_statuses, &it.init_container_statuses]);
        let mut told = lists.into_iter().flatten().flat_map(|it| it.iter().flatten());
        let is_it = |id: &Option<String>| id.as_ref().is_some_and(|it| it.ends_with(running.id.as_str()));
        let told = told.find(|it| it.name == container.name && is_it(&it.container_id));
        told.and_then(|it| it.resources.clone()).unwrap_or_else(granted)
    }

    /// What the status says a container has; while it does not run, what it will have.
    pub(crate) fn shown_resources(&self, container: &Container) -> Option<ResourceRequirements> {
        container.resources.as_ref().map(|_| self.actual(container))
    }

    /// Brings about what is granted: in place, or with the container's next start.
    pub(crate) fn drive_resize(&mut self, cx: &mut Context<'_>) {
        if self.ending.is_some() || self.resize.progress.as_ref().is_some_and(|it| it.in_flight.is_some()) {
            return;
        }
        let pod = self.pod.clone();
        let mut change = Change::default();
        let (mut steps, mut checks) = (Vec::new(), Vec::new());
        let mut restarts = false;
        for container in resizable(&pod) {
            let Some(id) = self.container_records.get(&container.name).and_then(|it| Some(it.running()?.id.clone()))
            else {
                continue;
            };
            let (had, wanted) = (self.actual(container), container.resources.clone().unwrap_or_default());
            if same(&had, &wanted) {
                continue;
            }
            if needs_restart(container, &had, &wanted) {
                restarts = true;
                self.with_container_record(container, cx, |record, context, cx| {
                    if record.stopping.is_none() {
                        record.restart_of = Some(id);
                        containers::stop(record, context, Some("resize requires restart"), None, cx);
                    }
                });
                continue;
            }
            let resources = resources::of_container(container, &pod, cx.facts);
            if let Some(bytes) = less_memory(&had, &wanted) {
                checks.push(MemoryCheck { container: Some((container.name.clone(), id.clone())), limit_bytes: bytes });
            }
            steps.push(ResizeStep::Container { id: id.clone(), resources });
            change.containers.insert(container.name.clone(), (id, wanted));
        }
        let actual = with_resources(&pod, |name| {
            let container = all_containers(&pod).find(|it| it.name == name)?;
            Some(self.actual(container))
        });
        let before = self.resize.cgroup.unwrap_or_else(|| resources::of_pod(&actual));
        let after = resources::of_pod(&pod);
        if steps.is_empty() && before == after {
            if !restarts {
                self.complete_resize(cx);
            }
            return;
        }
        self.begin_progress(cx);
        let progress = self.resize.progress.get_or_insert_default();
        if !cx.is_due(progress.retry_at) {
            return;
        }
        if before.memory_limit_bytes != after.memory_limit_bytes
            && is_less(after.memory_limit_bytes, before.memory_limit_bytes)
        {
            checks.insert(0, MemoryCheck { container: None, limit_bytes: after.memory_limit_bytes });
        }
        // No step leaves a container with more than its pod.
        steps.insert(0, ResizeStep::Pod(widest(before, after)));
        steps.push(ResizeStep::Pod(after));
        change.cgroup = after;
        progress.in_flight = Some(change);
        cx.host(HostEffect::Resize { pod: self.who.clone(), qos: sandbox::qos(&pod), steps, checks });
    }

    pub(crate) fn begin_progress(&mut self, cx: &mut Context<'_>) {
        if self.resize.progress.is_none() {
            let generation = self.pod.metadata.generation.unwrap_or(0);
            self.resize.progress = Some(Progress { generation, ..Progress::default() });
            let message = format!("Pod resize started: {}", self.allocation(&self.pod, None));
            cx.event(&self.who, "", Normal, "ResizeStarted", message);
        }
    }

    fn complete_resize(&mut self, cx: &mut Context<'_>) {
        let all_run = || {
            resizable(&self.pod).all(|it| self.container_records.get(&it.name).is_some_and(|it| it.running().is_some()))
        };
        if self.resize.progress.is_some() && all_run() {
            self.resize.progress = None;
            let message = format!("Pod resize completed: {}", self.allocation(&self.pod, None));
            cx.event(&self.who, "", Normal, "ResizeCompleted", message);
        }
    }

    pub(crate) fn resized(&mut self, result: Result<(), Failure>, cx: &mut Context<'_>) {
        let Some(progress) = &mut self.resize.progress else { return };
        let Some(change) = progress.in_flight.take() else { return };
        match result {
            Ok(()) => {
                (progress.error, progress.retry_at) = (None, None);
                self.resize.cgroup = Some(change.cgroup);
                for (name, given) in change.containers {
                    if let Some(record) = self.container_records.get_mut(&name) {
                        record.given = Some(given);
                    }
                }
            }
            Err(Failure { message }) => {
                progress.retry_at = Some(cx.now.after(RETRY));
                cx.wake_at(cx.now.after(RETRY));
                if progress.error.as_ref() != Some(&message) {
                    progress.error = Some(message.clone());
                    let message = format!("Pod resize error: {}", self.allocation(&self.pod, Some(&message)));
                    cx.event(&self.who, "", Warning, "ResizeError", message);
                }
            }
        }
    }

    /// As the events of KEP-1287 show it: containers, generation, error.
    pub(crate) fn allocation(&self, pod: &Pod, error: Option<&str>) -> String {
        let show = |it: &Container| json!({"name": it.name, "resources": it.resources});
        let spec = spec_of(pod);
        let sidecars: Vec<Value> =
            spec.init_containers.iter().flatten().filter(|it| is_sidecar(it)).map(show).collect();
        let containers: Vec<Value> = spec.containers.iter().map(show).collect();
        let mut text = String::from("{");
        if !sidecars.is_empty() {
            text.push_str(&format!("\"initContainers\":{},", Value::from(sidecars)));
        }
        text.push_str(&format!("\"containers\":{}", Value::from(containers)));
        if let Some(resources) = &spec.resources {
            text.push_str(&format!(",\"podResources\":{}", json!(resources)));
        }
        text.push_str(&format!(",\"generation\":{}", pod.metadata.generation.unwrap_or(0)));
        if let Some(error) = error {
            text.push_str(&format!(",\"error\":{}", Value::from(error)));
        }
        text.push('}');
        text
    }

    /// Only while something is asked for that the pod does not have.
    pub(crate) fn resize_step(&self) -> Option<Step> {
        let error =
            self.resize.progress.as_ref().and_then(|it| it.error.as_ref()).map(|it| ("ResizeError", it.as_str()));
        let pending = self.resize.pending.as_ref().map(|(reason, message)| (*reason, message.as_str()));
        let (reason, message) = pending.or(error)?;
        // What others have may come free; a smaller wish only its author has.
        let actor = if reason == "Deferred" { Actor::Cluster } else { Actor::Author };
        let mut step = step("resize", StepState::Blocked, Span::default());
        step.wait = Some(Wait::new(reason, message.to_owned(), actor));
        Some(step)
    }

    /// The two conditions, where they hold. Upstream has none that says `False`.
    pub(crate) fn resize_conditions(&self, status: &mut PodStatus, now: Time) {
        const PENDING: &str = "PodResizePending";
        const IN_PROGRESS: &str = "PodResizeInProgress";
        let generation = self.pod.metadata.generation;
        let pending = self.resize.pending.as_ref();
        let pending = pending.map(|(reason, message)| (PENDING, *reason, message.as_str(), generation));
        let progress = self.resize.progress.as_ref().map(|it| match &it.error {
            Some(error) => (IN_PROGRESS, "Error", error.as_str(), Some(it.generation)),
            None => (IN_PROGRESS, "", "", Some(it.generation)),
        });
        let conditions = status.conditions.get_or_insert_default();
        let old: Vec<PodCondition> =
            conditions.extract_if(.., |it| it.type_ == PENDING || it.type_ == IN_PROGRESS).collect();
        for (name, reason, message, observed_generation) in pending.into_iter().chain(progress) {
            let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
            let before = old.iter().find(|it| it.type_ == name);
            let since = before.and_then(|it| it.last_transition_time.clone()).unwrap_or(ApiTime(now.0));
            conditions.push(PodCondition {
                type_: name.into(),
                status: "True".into(),
                reason: text(reason),
                message: text(message),
                last_probe_time: before.and_then(|it| it.last_probe_time.clone()).or_else(|| Some(since.clone())),
                last_transition_time: Some(since),
                observed_generation,
            });
        }
    }
}

/// Containers whose resources may change: those that stay.
fn resizable(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = spec_of(pod);
    spec.init_containers.iter().flatten().filter(|it| is_sidecar(it)).chain(&spec.containers)
}

fn granted(pod: &Pod) -> BTreeMap<String, ResourceRequirements> {
    let of_pod = spec_of(pod).resources.clone().map(|it| (OF_POD.to_owned(), it));
    let each = resizable(pod).map(|it| (it.name.clone(), it.resources.clone().unwrap_or_default()));
    each.chain(of_pod).collect()
}

/// What an earlier run of the kubelet has granted, as the status tells; a pod that never ran has what it asks for.
fn granted_before(pod: &Pod) -> BTreeMap<String, ResourceRequirements> {
    let status = pod.status.as_ref();
    let lists = status.map(|it| [&it.container_statuses, &it.init_container_statuses]);
    let told: Vec<_> = lists.into_iter().flatten().flat_map(|it| it.iter().flatten()).collect();
    let mut granted = granted(pod);
    for (name, granted) in &mut granted {
        let it = told.iter().find(|it| it.name == *name && it.container_id.as_ref().is_some_and(|it| !it.is_empty()));
        if let Some(resources) = it.and_then(|it| it.resources.clone()) {
            *granted = resources;
        }
    }
    if let (Some(granted), Some(told)) = (granted.get_mut(OF_POD), status.and_then(|it| it.resources.clone())) {
        *granted = told;
    }
    granted
}

fn resources_of(pod: &Pod, name: &str) -> Option<ResourceRequirements> {
    if name == OF_POD {
        return spec_of(pod).resources.clone();
    }
    resizable(pod).find(|it| it.name == name).map(|it| it.resources.clone().unwrap_or_default())
}

/// The pod with other resources for those of its containers that `of` knows.
pub(crate) fn with_resources(pod: &Arc<Pod>, of: impl Fn(&str) -> Option<ResourceRequirements>) -> Arc<Pod> {
    let mut changed = (**pod).clone();
    let Some(spec) = &mut changed.spec else { return pod.clone() };
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        if let Some(resources) = of(&container.name) {
            container.resources = Some(resources);
        }
    }
    if let Some(resources) = of(OF_POD) {
        spec.resources = Some(resources);
    }
    Arc::new(changed)
}

fn amount(resources: &ResourceRequirements, limit: bool, name: &str) -> Option<Quantity> {
    let list = if limit { &resources.limits } else { &resources.requests };
    list.as_ref()?.get(name)?.0.parse().ok()
}

const COMPUTE: [&str; 2] = ["cpu", "memory"];

fn same(a: &ResourceRequirements, b: &ResourceRequirements) -> bool {
    COMPUTE.iter().all(|name| is_same(name, a, b))
}

fn is_same(name: &str, a: &ResourceRequirements, b: &ResourceRequirements) -> bool {
    [false, true].into_iter().all(|limit| amount(a, limit, name) == amount(b, limit, name))
}

fn needs_restart(container: &Container, had: &ResourceRequirements, wanted: &ResourceRequirements) -> bool {
    let mut policies = container.resize_policy.iter().flatten();
    policies.any(|it| it.restart_policy == "RestartContainer" && !is_same(&it.resource_name, had, wanted))
}

/// The new limit, where it is below the old one.
fn less_memory(had: &ResourceRequirements, wanted: &ResourceRequirements) -> Option<i64> {
    let value = |it| amount(it, true, "memory").map_or(0, Quantity::value);
    let (before, after) = (value(had), value(wanted));
    is_less(after, before).then_some(after)
}

/// Zero is no limit.
fn is_less(limit: i64, than: i64) -> bool {
    limit > 0 && (than <= 0 || limit < than)
}

/// What leaves room for both.
fn widest(a: Resources, b: Resources) -> Resources {
    let wider = |a: i64, b: i64| if a <= 0 || b <= 0 { 0 } else { a.max(b) };
    let cpu_quota = wider(a.cpu_quota, b.cpu_quota);
    Resources {
        cpu_shares: a.cpu_shares.max(b.cpu_shares),
        cpu_quota,
        cpu_period: if cpu_quota > 0 { a.cpu_period.max(b.cpu_period) } else { 0 },
        memory_limit_bytes: wider(a.memory_limit_bytes, b.memory_limit_bytes),
        oom_score_adj: b.oom_score_adj,
    }
}
