//! Which APIServices are unavailable, under kube-aggregator's names.

use corten_metrics::{IntCounterVec, IntGaugeVec, Registry, forget_labelled, registered};

use crate::condition::Condition;

pub(crate) struct Measures {
    unavailable: IntGaugeVec,
    failures: IntCounterVec,
}

impl Measures {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            unavailable: registered::gauge(
                registry,
                "aggregator_unavailable_apiservice",
                "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
                &["name"],
            ),
            failures: registered::counter(
                registry,
                "aggregator_unavailable_apiservice_total",
                "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
                &["name", "reason"],
            ),
        }
    }

    /// Counted where it becomes unavailable, or is it from the start (`AvailableConditionController.updateAPIServiceStatus`).
    pub(crate) fn found(&self, name: &str, before: Option<&Condition>, now: &Condition) {
        self.unavailable.with_label_values(&[name]).set(i64::from(!now.is_available));
        if !now.is_available && before.is_none_or(|it| it.is_available) {
            self.failures.with_label_values(&[name, now.reason]).inc();
        }
    }

    pub(crate) fn forget(&self, name: &str) {
        // Nothing may have been found of it.
        let _ = self.unavailable.remove_label_values(&[name]);
        forget_labelled(&self.failures, "name", name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_becomes_unavailable_is_counted_once_and_forgotten_with_its_object() {
        let registry = Registry::new();
        let measures = Measures::new(&registry);
        let condition = |is_available, reason| Condition { is_available, reason, message: String::new() };
        let (failed, passed) = (condition(false, "FailedDiscoveryCheck"), condition(true, "Passed"));
        let text = || corten_metrics::encoded(&registry.gather());
        measures.found("v1.a", None, &failed);
        measures.found("v1.a", Some(&failed), &failed);
        let once = r#"aggregator_unavailable_apiservice_total{name="v1.a",reason="FailedDiscoveryCheck"} 1"#;
        assert!(text().lines().any(|it| it == once), "{}", text());
        assert!(text().contains(r#"aggregator_unavailable_apiservice{name="v1.a"} 1"#), "{}", text());
        measures.found("v1.a", Some(&failed), &passed);
        assert!(text().contains(r#"aggregator_unavailable_apiservice{name="v1.a"} 0"#), "{}", text());
        measures.forget("v1.a");
        assert_eq!(text(), "");
    }
}
