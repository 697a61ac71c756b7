//! How long plugins take, under kube-apiserver's names.

use std::time::Duration;

use corten_metrics::{CelMetrics, HistogramsPerThread, Metrics, Outcome, registered};
use corten_policies::matching::Verdict;

use crate::operation::Operation;

/// In seconds: kube-apiserver's buckets of both.
const SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// So many histograms each plugin has: by half, operation, and whether it refused.
const PER_PLUGIN: usize = 2 * OPERATIONS.len() * 2;
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

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

pub struct Measures {
    /// The plugins, in the order they are asked.
    names: Box<[&'static str]>,
    /// A write observes some fifty times.
    plugins: HistogramsPerThread,
    steps: HistogramsPerThread,
    pub(crate) cel: CelMetrics,
}

impl Measures {
    /// Of the plugins with these names, in the order they are asked.
    pub fn new(metrics: &Metrics, names: impl Iterator<Item = &'static str>) -> Self {
        let names: Box<[_]> = names.collect();
        let histogram = |name, help, labels: &[&str], n| {
            registered::histogram_per_thread(metrics.registry(), name, help, SECONDS.to_vec(), labels, n * PER_PLUGIN)
        };
        Self {
            plugins: histogram(
                "apiserver_admission_controller_admission_duration_seconds",
                "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                &["name", "type", "operation", "rejected"],
                names.len(),
            ),
            steps: histogram(
                "apiserver_admission_step_admission_duration_seconds",
                "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
                &["type", "operation", "rejected"],
                1,
            ),
            names,
            cel: metrics.cel.clone(),
        }
    }

    /// One plugin, by its place in the table.
    pub(crate) fn plugin(&self, nth: usize, asked: Asked, took: Duration) {
        let values = || {
            let [half, operation, rejected] = asked.labels();
            [self.names[nth], half, operation, rejected]
        };
        self.plugins.observe(nth * PER_PLUGIN + asked.place(), values, took.as_secs_f64());
    }

    /// All plugins.
    pub(crate) fn step(&self, asked: Asked, took: Duration) {
        self.steps.observe(asked.place(), || asked.labels(), took.as_secs_f64());
    }
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
        let text = metrics.text(Vec::new());
        let counted = |name: &str| text.lines().filter(|it| it.starts_with(name) && it.ends_with(" 1")).count();
        assert_eq!(counted("apiserver_admission_step_admission_duration_seconds_count"), n);
        assert_eq!(counted("apiserver_admission_controller_admission_duration_seconds_count"), n * names.len());
        let line = r#"apiserver_admission_step_admission_duration_seconds_bucket{operation="DELETE",rejected="true",type="validate",le="0.025"} 0"#;
        assert!(text.lines().any(|it| it == line), "{text}");
    }
}
