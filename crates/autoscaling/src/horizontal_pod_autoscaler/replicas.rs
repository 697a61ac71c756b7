//! How many replicas a measure asks for (`replica_calculator.go`).

use std::time::Duration;

use corten_meta::{Quantity, Time};

use super::{
    measured::{PodMetric, PodMetrics},
    pod::{AutoscaledPod, Standing},
    spec::Behavior,
};

/// `--horizontal-pod-autoscaler-tolerance`.
const TOLERANCE: f64 = 0.1;
/// No count is larger in the API.
pub(super) const REPLICAS_MAX: i64 = i32::MAX as i64;

/// How far what is measured may be from its target without anything being done.
#[derive(Clone, Copy)]
pub(super) struct Tolerances {
    up: f64,
    down: f64,
}

impl Tolerances {
    pub(super) fn of(behavior: Option<&Behavior>) -> Self {
        let of = |it: Option<Quantity>| it.map_or(TOLERANCE, Quantity::approximate);
        let (up, down) = behavior.map_or((None, None), |it| (it.scale_up.tolerance, it.scale_down.tolerance));
        Self { up: of(up), down: of(down) }
    }

    fn allow(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// What is measured of Pods, and the Pods.
pub(super) struct OfPods<'a> {
    pub(super) pods: &'a [&'a AutoscaledPod],
    pub(super) metrics: PodMetrics,
    pub(super) is_of_cpu: bool,
    /// The target's count now.
    pub(super) current: i64,
    pub(super) tolerances: Tolerances,
    pub(super) now: Time,
}

/// What a measure comes to.
pub(super) struct Count {
    pub(super) replicas: i64,
    /// In thousandths: of one Pod on average, or of all that is measured.
    pub(super) usage: i64,
    /// In percent of what is asked for.
    pub(super) utilization: Option<i64>,
}

/// How much is used, as a share of the target.
struct Use {
    ratio: f64,
    usage: i64,
    utilization: Option<i64>,
}

impl<'a> OfPods<'a> {
    /// By a share of what the Pods ask for (`GetResourceReplicas`).
    pub(super) fn by_utilization(self, target: i64, container: &str, resource: &str) -> Result<Count, String> {
        let pods = self.pods;
        let request = move |pod: &AutoscaledPod| pod.request(container, resource);
        let used = |metrics: &PodMetrics| {
            let (mut total, mut requested) = (0_i64, 0_i64);
            for pod in pods.iter().filter(|it| metrics.contains_key(&it.metadata.name)) {
                total = total.saturating_add(metrics[&pod.metadata.name].value);
                requested = requested.saturating_add(request(pod)?);
            }
            if requested == 0 {
                return Err("no metrics returned matched known pods".to_owned());
            }
            let percent = i128::from(total) * 100 / i128::from(requested);
            let percent = percent.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
            let percent = i64::try_from(percent).expect("it is within 32 bits");
            let usage = total / count(metrics.len());
            Ok(Use { ratio: float(percent) / float(target), usage, utilization: Some(percent) })
        };
        let requests_are_known = move || pods.iter().try_for_each(|it| request(it).map(drop));
        // What is not known uses all it asks for, or the target where that is more.
        let full = move |pod: &AutoscaledPod| {
            let whole = i128::from(request(pod).unwrap_or_default()) * i128::from(target.max(100)) / 100;
            i64::try_from(whole).unwrap_or(i64::MAX)
        };
        self.count(requests_are_known, used, full)
    }

    /// By what one Pod uses on average (`calcPlainMetricReplicas`).
    pub(super) fn by_average(self, target: i64) -> Result<Count, String> {
        let used = |metrics: &PodMetrics| {
            let total = metrics.values().fold(0, |sum: i64, it| sum.saturating_add(it.value));
            let usage = total / count(metrics.len());
            Ok(Use { ratio: float(usage) / float(target), usage, utilization: None })
        };
        self.count(|| Ok(()), used, |_| target)
    }

    /// Of Pods that are not ready and of those without a measure it is assumed what keeps the count from changing.
    fn count(
        mut self,
        check: impl Fn() -> Result<(), String>,
        used: impl Fn(&PodMetrics) -> Result<Use, String>,
        full: impl Fn(&AutoscaledPod) -> i64,
    ) -> Result<Count, String> {
        if self.pods.is_empty() {
            return Err("no pods returned by selector while calculating replica count".into());
        }
        let (n_ready, unready, missing) = self.grouped();
        if self.metrics.is_empty() {
            return Err("did not receive metrics for targeted pods (pods might be unready)".into());
        }
        check()?;
        let first = used(&self.metrics)?;
        let result = |replicas| Count { replicas, usage: first.usage, utilization: first.utilization };
        let grows_with_unready = !unready.is_empty() && first.ratio > 1.0;
        if !grows_with_unready && missing.is_empty() {
            let is_near = self.tolerances.allow(first.ratio);
            return Ok(result(if is_near { self.current } else { up(first.ratio * float(n_ready)) }));
        }
        if first.ratio < 1.0 {
            missing.iter().for_each(|it| self.assume(it, full(it)));
        } else if first.ratio > 1.0 {
            missing.iter().for_each(|it| self.assume(it, 0));
        }
        if grows_with_unready {
            unready.iter().for_each(|it| self.assume(it, 0));
        }
        let ratio = used(&self.metrics)?.ratio;
        let turns = first.ratio < 1.0 && ratio > 1.0 || first.ratio > 1.0 && ratio < 1.0;
        if self.tolerances.allow(ratio) || turns {
            return Ok(result(self.current));
        }
        let replicas = up(ratio * float(count(self.metrics.len())));
        let turns = ratio < 1.0 && replicas > self.current || ratio > 1.0 && replicas < self.current;
        Ok(result(if turns { self.current } else { replicas }))
    }

    fn assume(&mut self, pod: &AutoscaledPod, value: i64) {
        let metric = PodMetric { timestamp: self.now, window: Duration::ZERO, value };
        self.metrics.insert(pod.metadata.name.clone(), metric);
    }

    /// How many Pods count, which are not ready, and which are not measured. Only measures of those that count are kept.
    fn grouped(&mut self) -> (i64, Vec<&'a AutoscaledPod>, Vec<&'a AutoscaledPod>) {
        let (mut kept, mut n_ready) = (PodMetrics::new(), 0);
        let (mut unready, mut missing) = (Vec::new(), Vec::new());
        for pod in self.pods {
            let metric = self.metrics.remove(&pod.metadata.name);
            match (pod.standing(metric.as_ref(), self.is_of_cpu, self.now), metric) {
                (Standing::Counts, Some(metric)) => {
                    n_ready += 1;
                    kept.insert(pod.metadata.name.clone(), metric);
                }
                (Standing::Unready, _) => unready.push(*pod),
                (Standing::Missing, _) => missing.push(*pod),
                (Standing::Ignored | Standing::Counts, _) => {}
            }
        }
        self.metrics = kept;
        (n_ready, unready, missing)
    }
}

/// By one value, as many times the Pods that are ready as it is the target's (`getUsageRatioReplicaCount`).
pub(super) fn by_value(
    value: i64,
    target: i64,
    current: i64,
    pods: &[&AutoscaledPod],
    tolerances: Tolerances,
) -> Result<Count, String> {
    let ratio = float(value) / float(target);
    let result = |replicas| Ok(Count { replicas, usage: value, utilization: None });
    if current == 0 {
        return result(up(ratio));
    }
    if tolerances.allow(ratio) {
        return result(current);
    }
    if pods.is_empty() {
        let why = "no pods returned by selector while calculating replica count";
        return Err(format!("unable to calculate ready pods: {why}"));
    }
    let n_ready = pods.iter().filter(|it| it.is_running_and_ready()).count();
    result(up(ratio * float(count(n_ready))))
}

/// By one value that is divided among the replicas (`GetObjectPerPodMetricReplicas`, `GetExternalPerPodMetricReplicas`).
pub(super) fn by_value_per_replica(value: i64, target: i64, replicas: i64, tolerances: Tolerances) -> Count {
    let is_near = replicas != 0 && tolerances.allow(float(value) / (float(target) * float(replicas)));
    let wanted = if is_near { replicas } else { up(float(value) / float(target)) };
    let usage = if replicas == 0 { value } else { whole((float(value) / float(replicas)).ceil()) };
    Count { replicas: wanted, usage, utilization: None }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn up(replicas: f64) -> i64 {
    whole(replicas.ceil()).clamp(-REPLICAS_MAX, REPLICAS_MAX)
}

#[expect(clippy::cast_precision_loss, reason = "upstream calculates with floats, too")]
pub(super) fn float(number: i64) -> f64 {
    number as f64
}

/// Towards zero. What is beyond all numbers is the last of them, and what is none is nothing.
#[expect(clippy::cast_possible_truncation, reason = "floats are cut to the bounds of the type")]
pub(super) fn whole(number: f64) -> i64 {
    number as i64
}
