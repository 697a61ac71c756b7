//! What the node counts of its own work: one number for each effect of the kubelet and each result of a probe.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use corten_kubelet::{HostEffect, ManagerCounts, Outcome, PodRef, ProbeKind, ProbeVerdict, RequestCounts};
use corten_reconcile::{LoopMetric, MetricKind, Tally};

use super::{
    exposition::{Sample, Text, Times, number},
    pod_volumes::PodVolumes,
};

/// Which probe had which result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Probed {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) kind: &'static str,
    pub(crate) result: &'static str,
}

/// Upstream's buckets of calls to the runtime: 5 ms, and each two and a half times the one before.
const SECONDS_OF_OPERATIONS: [f64; 14] = [
    0.005,
    0.0125,
    0.03125,
    0.078125,
    0.1953125,
    0.48828125,
    1.220703125,
    3.0517578125,
    7.62939453125,
    19.073486328125,
    47.6837158203125,
    119.20928955078125,
    298.0232238769531,
    745.0580596923828,
];

static POD_START: LoopMetric = LoopMetric {
    name: "kubelet_pod_start_duration_seconds",
    help: "[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run",
    labels: &[],
    kind: MetricKind::Histogram(&[
        0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0,
        600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
    ]),
};
static CGROUPS: LoopMetric = LoopMetric {
    name: "kubelet_cgroup_manager_duration_seconds",
    help: "[ALPHA] Duration in seconds for cgroup manager operations. Broken down by method.",
    labels: &["operation_type"],
    kind: MetricKind::Histogram(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]),
};
/// More operations than there are.
const CGROUP_OPERATIONS_MAX: usize = 8;

#[derive(Default)]
struct Operation {
    n: u64,
    errors: u64,
    times: Times,
}

struct Counted {
    probes: BTreeMap<Probed, u64>,
    /// By upstream's name of the call.
    operations: BTreeMap<&'static str, Operation>,
    images_collected: u64,
    /// By signal.
    evictions: BTreeMap<String, u64>,
    preemptions: BTreeMap<&'static str, u64>,
    managers: ManagerCounts,
    pod_starts: Tally,
    cgroups: Tally,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            probes: BTreeMap::new(),
            operations: BTreeMap::new(),
            images_collected: 0,
            evictions: BTreeMap::new(),
            preemptions: BTreeMap::new(),
            managers: ManagerCounts::default(),
            pod_starts: Tally::new(&POD_START, 1),
            cgroups: Tally::new(&CGROUPS, CGROUP_OPERATIONS_MAX),
        }
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    counted: Mutex<Counted>,
    volumes: PodVolumes,
}

impl Counters {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which volumes Pods are to have, and have.
    pub(crate) fn volumes(&self) -> &PodVolumes {
        &self.volumes
    }

    /// Takes note of one effect that has ended.
    pub(crate) fn note(&self, pod: &PodRef, operation: Option<&'static str>, outcome: &Outcome, took: Duration) {
        let mut counted = self.counted();
        match outcome {
            Outcome::Probed { container, probe, verdict, .. } => {
                let probed = Probed {
                    uid: pod.uid.clone(),
                    namespace: pod.key.namespace.clone(),
                    pod: pod.key.name.clone(),
                    container: container.clone(),
                    kind: kind(*probe),
                    result: result(verdict),
                };
                *counted.probes.entry(probed).or_default() += 1;
            }
            Outcome::PodRemoved(Ok(())) => counted.probes.retain(|it, _| it.uid != pod.uid),
            _ => {}
        }
        if let Some(name) = operation {
            let operation = counted.operations.entry(name).or_default();
            operation.n += 1;
            operation.errors += u64::from(has_failed(outcome));
            operation.times.count(&SECONDS_OF_OPERATIONS, took.as_secs_f64());
        }
    }

    pub(crate) fn note_image_removed(&self) {
        self.counted().images_collected += 1;
    }

    pub(crate) fn note_eviction(&self, signal: &str) {
        *self.counted().evictions.entry(signal.to_owned()).or_default() += 1;
    }

    pub(crate) fn note_preemption(&self, resource: &'static str) {
        *self.counted().preemptions.entry(resource).or_default() += 1;
    }

    pub(crate) fn note_pod_start(&self, took: Duration) {
        self.counted().pod_starts.count::<&str>(&[], took.as_secs_f64());
    }

    /// Something was done with a Pod's cgroups, whatever came of it.
    pub(crate) fn note_cgroups(&self, operation: &'static str, took: Duration) {
        self.counted().cgroups.count(&[operation], took.as_secs_f64());
    }

    pub(crate) fn note_managers(&self, counts: ManagerCounts) {
        self.counted().managers = counts;
    }

    pub(crate) fn probes(&self) -> BTreeMap<Probed, u64> {
        self.counted().probes.clone()
    }

    pub(crate) fn write(&self, text: &mut Text) {
        let counted = self.counted();
        let label = |name: &'static str| [("operation_type", name)];
        let of = |read: fn(&Operation) -> f64| {
            let samples = counted.operations.iter().map(move |(name, it)| Sample::new(&label(name), read(it)));
            samples.collect::<Vec<_>>()
        };
        let help = "[ALPHA] Cumulative number of runtime operations by operation type.";
        text.metric("kubelet_runtime_operations_total", "counter", help, of(|it| number(it.n)));
        let help = "[ALPHA] Cumulative number of runtime operation errors by operation type.";
        text.metric("kubelet_runtime_operations_errors_total", "counter", help, of(|it| number(it.errors)));
        let help = "[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.";
        let times = counted.operations.iter().map(|(name, it)| (*name, &it.times));
        let name = "kubelet_runtime_operations_duration_seconds";
        text.histogram((name, help), &SECONDS_OF_OPERATIONS, "operation_type", times);
        let help =
            "[ALPHA] Total number of images garbage collected by the kubelet, whether through disk usage or image age.";
        let collected = Sample::new(&[("reason", "space")], number(counted.images_collected));
        text.metric("kubelet_image_garbage_collected_total", "counter", help, [collected]);
        let evictions = counted.evictions.iter();
        let samples = evictions.map(|(signal, n)| Sample::new(&[("eviction_signal", &**signal)], number(*n)));
        let help = "[ALPHA] Cumulative number of pod evictions by eviction signal";
        text.metric("kubelet_evictions", "counter", help, samples.collect::<Vec<_>>());
        let preemptions = counted.preemptions.iter();
        let samples = preemptions.map(|(resource, n)| Sample::new(&[("preemption_signal", *resource)], number(*n)));
        let help = "[ALPHA] Cumulative number of pod preemptions by preemption resource";
        text.metric("kubelet_preemptions", "counter", help, samples.collect::<Vec<_>>());
        managers(text, &counted.managers);
        text.tally(&counted.pod_starts);
        text.tally(&counted.cgroups);
        self.volumes.write(text);
    }
}

fn managers(text: &mut Text, counts: &ManagerCounts) {
    type Read = fn(&RequestCounts) -> u64;
    let of = |it: Read, asked: RequestCounts| [Sample::new(&[], number(it(&asked)))];
    let (n, errors): (Read, Read) = (|it| it.n, |it| it.errors);
    for (name, asked, read, help) in [
        (
            "kubelet_cpu_manager_pinning_requests_total",
            counts.cpu,
            n,
            "[ALPHA] The number of cpu core allocations which required pinning.",
        ),
        (
            "kubelet_cpu_manager_pinning_errors_total",
            counts.cpu,
            errors,
            "[ALPHA] The number of cpu core allocations which required pinning failed.",
        ),
        (
            "kubelet_memory_manager_pinning_requests_total",
            counts.memory,
            n,
            "[ALPHA] The number of memory pages allocations which required pinning.",
        ),
        (
            "kubelet_memory_manager_pinning_errors_total",
            counts.memory,
            errors,
            "[ALPHA] The number of memory pages allocations which required pinning that failed.",
        ),
        (
            "kubelet_topology_manager_admission_requests_total",
            counts.topology,
            n,
            "[ALPHA] The number of admission requests where resources have to be aligned.",
        ),
        (
            "kubelet_topology_manager_admission_errors_total",
            counts.topology,
            errors,
            "[ALPHA] The number of admission request failures where resources could not be aligned.",
        ),
    ] {
        text.metric(name, "counter", help, of(read, asked));
    }
    let cpus = |n: usize| number(u64::try_from(n).unwrap_or(u64::MAX));
    let help = "[ALPHA] The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.";
    let shared = [Sample::new(&[], cpus(counts.shared_cpus.saturating_mul(1000)))];
    text.metric("kubelet_cpu_manager_shared_pool_size_millicores", "gauge", help, shared);
    let help = "[ALPHA] The total number of CPUs exclusively allocated to containers running on this node";
    let own = [Sample::new(&[], cpus(counts.own_cpus))];
    text.metric("kubelet_cpu_manager_exclusive_cpu_allocation_count", "gauge", help, own);
}

fn kind(probe: ProbeKind) -> &'static str {
    match probe {
        ProbeKind::Startup => "Startup",
        ProbeKind::Liveness => "Liveness",
        ProbeKind::Readiness => "Readiness",
    }
}

fn result(verdict: &ProbeVerdict) -> &'static str {
    match verdict {
        ProbeVerdict::Success | ProbeVerdict::Warning(_) => "successful",
        ProbeVerdict::Failure(_) | ProbeVerdict::SilentFailure(_) => "failed",
        ProbeVerdict::Unknown(_) => "unknown",
    }
}

/// Upstream's name of the call to the runtime that an effect comes down to.
pub(crate) fn operation(effect: &HostEffect) -> Option<&'static str> {
    match effect {
        HostEffect::RunSandbox(_) => Some("run_podsandbox"),
        HostEffect::StopSandbox { .. } => Some("stop_podsandbox"),
        HostEffect::RemoveSandbox { .. } => Some("remove_podsandbox"),
        HostEffect::InspectImage { .. } => Some("image_status"),
        HostEffect::PullImage { .. } => Some("pull_image"),
        HostEffect::StartContainer(_) => Some("start_container"),
        HostEffect::StopContainer { .. } => Some("stop_container"),
        HostEffect::RemoveContainer { .. } => Some("remove_container"),
        _ => None,
    }
}

fn has_failed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Sandbox(result) => result.is_err(),
        Outcome::SandboxStopped { result, .. }
        | Outcome::SandboxRemoved { result, .. }
        | Outcome::Stopped { result, .. }
        | Outcome::Removed { result, .. } => result.is_err(),
        Outcome::Image { result, .. } => result.is_err(),
        Outcome::Pulled { result, .. } => result.is_err(),
        Outcome::Container { result, .. } => result.is_err(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_pods_and_work_at_cgroups_are_told() {
        let counters = Counters::default();
        let told = || {
            let mut text = Text::default();
            counters.write(&mut text);
            text.into_string()
        };
        assert!(told().contains("\nkubelet_pod_start_duration_seconds_count 0\n"), "dashboards ask from the begin");
        counters.note_pod_start(Duration::from_secs(3));
        counters.note_cgroups("create", Duration::from_millis(20));
        let text = told();
        for line in [
            "kubelet_pod_start_duration_seconds_bucket{le=\"2\"} 0",
            "kubelet_pod_start_duration_seconds_bucket{le=\"3\"} 1",
            "kubelet_pod_start_duration_seconds_sum 3",
            "kubelet_cgroup_manager_duration_seconds_bucket{operation_type=\"create\",le=\"0.01\"} 0",
            "kubelet_cgroup_manager_duration_seconds_bucket{operation_type=\"create\",le=\"0.025\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
    }
}
