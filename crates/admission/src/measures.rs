//! How long plugins take, under kube-apiserver's names.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use corten_metrics::{CelMetrics, Histogram, HistogramVec, LocalHistogram, Metrics, Outcome, registered};
use corten_policies::matching::Verdict;
use parking_lot::Mutex;

use crate::operation::Operation;

/// In seconds: kube-apiserver's buckets of both.
const SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// So many histograms each plugin has: by half, operation, and whether it refused.
const PER_PLUGIN: usize = 2 * OPERATIONS.len() * 2;
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
/// So many threads observe without waiting for each other.
const THREADS: usize = 16;

/// Which half of a plugin is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Admit,
    Validate,
}

impl Half {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// What came of a half of a plugin, or of all plugins.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) half: Half,
    pub(crate) operation: Operation,
    pub(crate) is_refused: bool,
}

impl Asked {
    fn place(self) -> usize {
        let half = usize::from(self.half == Half::Validate);
        (half * OPERATIONS.len() + self.operation as usize) * 2 + usize::from(self.is_refused)
    }

    /// `type`, `operation` and `rejected`.
    fn labels(self) -> [&'static str; 3] {
        let rejected = if self.is_refused { "true" } else { "false" };
        [self.half.as_str(), OPERATIONS[self.operation as usize], rejected]
    }
}

/// What threads have observed and nobody has asked for yet: of each plugin, and of the steps after them; empty until the first write.
/// A write observes some fifty times, and counters that two threads share would go from one core to the other each time.
type Observed = Vec<Option<Box<LocalHistogram>>>;

pub struct Measures {
    /// The plugins, in the order they are asked.
    names: Box<[&'static str]>,
    plugins: HistogramVec,
    steps: HistogramVec,
    observed: [Mutex<Observed>; THREADS],
    pub(crate) cel: CelMetrics,
}

impl Measures {
    /// Of the plugins with these names, in the order they are asked.
    pub fn new(metrics: &Metrics, names: impl Iterator<Item = &'static str>) -> Self {
        let names: Box<[_]> = names.collect();
        let histogram = |name, help, labels: &[&str]| {
            registered::histogram(metrics.registry(), name, help, SECONDS.to_vec(), labels)
        };
        Self {
            plugins: histogram(
                "apiserver_admission_controller_admission_duration_seconds",
                "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                &["name", "type", "operation", "rejected"],
            ),
            steps: histogram(
                "apiserver_admission_step_admission_duration_seconds",
                "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
                &["type", "operation", "rejected"],
            ),
            observed: Default::default(),
            names,
            cel: metrics.cel.clone(),
        }
    }

    /// One plugin, by its place in the table.
    pub(crate) fn plugin(&self, nth: usize, asked: Asked, took: Duration) {
        let [half, operation, rejected] = asked.labels();
        let make = || self.plugins.with_label_values(&[self.names[nth], half, operation, rejected]);
        self.observe(nth * PER_PLUGIN + asked.place(), make, took);
    }

    /// All plugins.
    pub(crate) fn step(&self, asked: Asked, took: Duration) {
        let make = || self.steps.with_label_values(&asked.labels());
        self.observe(self.names.len() * PER_PLUGIN + asked.place(), make, took);
    }

    fn observe(&self, place: usize, make: impl FnOnce() -> Histogram, took: Duration) {
        let mut observed = self.observed[of_this_thread()].lock();
        if observed.is_empty() {
            observed.resize_with((self.names.len() + 1) * PER_PLUGIN, || None);
        }
        observed[place].get_or_insert_with(|| Box::new(make().local())).observe(took.as_secs_f64());
    }

    /// Adds what threads have observed to what is told: before somebody is told.
    pub fn publish(&self) {
        for observed in &self.observed {
            observed.lock().iter().flatten().for_each(|it| it.flush());
        }
    }
}

/// Where this thread observes. Threads beyond the bound share.
fn of_this_thread() -> usize {
    static N_THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = N_THREADS.fetch_add(1, Ordering::Relaxed) % THREADS;
    }
    PLACE.with(|it| *it)
}

/// What is counted of a verdict. One that is ignored for the failure policy's sake is an error, too.
pub(crate) fn outcome_of(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Matches => Outcome::Match,
        Verdict::Excluded(_) => Outcome::Exclusion,
        Verdict::Ignored(_) | Verdict::Failed(_) => Outcome::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plugin_half_operation_and_outcome_is_counted_apart() {
        let metrics = Metrics::default();
        let names = ["one", "two", "three"];
        let measures = Measures::new(&metrics, names.into_iter());
        let took = Duration::from_millis(50);
        let mut n = 0;
        for half in [Half::Admit, Half::Validate] {
            for operation in [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect] {
                for is_refused in [false, true] {
                    let asked = Asked { half, operation, is_refused };
                    measures.step(asked, took);
                    (0..names.len()).for_each(|it| measures.plugin(it, asked, took));
                    n += 1;
                }
            }
        }
        measures.publish();
        let text = metrics.text(Vec::new());
        let counted = |name: &str| text.lines().filter(|it| it.starts_with(name) && it.ends_with(" 1")).count();
        assert_eq!(counted("apiserver_admission_step_admission_duration_seconds_count"), n);
        assert_eq!(counted("apiserver_admission_controller_admission_duration_seconds_count"), n * names.len());
        let line = r#"apiserver_admission_step_admission_duration_seconds_bucket{operation="DELETE",rejected="true",type="validate",le="0.025"} 0"#;
        assert!(text.lines().any(|it| it == line), "{text}");
    }
}
