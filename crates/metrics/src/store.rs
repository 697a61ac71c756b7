//! How the store answers writes: how fast, and whether at all. The names are those that kube-apiserver has for etcd.

use std::time::Duration;

use corten_meta::Resource;
use parking_lot::Mutex;
use prometheus::{HistogramVec, IntCounterVec, Registry};

use crate::registered::{buckets_of_requests, counter, histogram};

const OPERATIONS: [&str; 3] = ["create", "update", "delete"];
const LABELS: [&str; 3] = ["operation", "group", "resource"];

pub struct StoreMetrics {
    took: HistogramVec,
    total: IntCounterVec,
    errors: IntCounterVec,
    refusal: Mutex<Option<String>>,
}

impl StoreMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let took = histogram(
            registry,
            "etcd_request_duration_seconds",
            "Etcd request latency in seconds for each operation and object type.",
            buckets_of_requests(),
            &LABELS,
        );
        let counted = |name, help| counter(registry, name, help, &LABELS);
        Self {
            took,
            total: counted("etcd_requests_total", "Etcd request counts for each operation and object type."),
            errors: counted(
                "etcd_request_errors_total",
                "Etcd failed request counts for each operation and object type.",
            ),
            refusal: Mutex::default(),
        }
    }

    /// One write was answered; `operation` is create, update or delete.
    pub fn wrote(
        &self,
        operation: &'static str,
        resource: &Resource,
        took: Duration,
        failure: Option<&corten_store::Error>,
    ) {
        let labels = [operation, &*resource.group, &*resource.plural];
        self.took.with_label_values(&labels).observe(took.as_secs_f64());
        self.total.with_label_values(&labels).inc();
        if failure.is_some() {
            self.errors.with_label_values(&labels).inc();
        }
        let refused = match failure {
            // What keeps the store says so itself, and whether it is over.
            Some(
                corten_store::Error::TooLarge { .. }
                | corten_store::Error::Encryption(_)
                | corten_store::Error::Unavailable(_),
            ) => return,
            other => other.map(ToString::to_string),
        };
        let mut refusal = self.refusal.lock();
        if *refusal != refused {
            *refusal = refused;
        }
    }

    /// Why the last write that was tried failed, if it did.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    pub(crate) fn forget(&self, resource: &Resource) {
        for operation in OPERATIONS {
            let labels = [operation, &*resource.group, &*resource.plural];
            // It may never have been written.
            let _ = self.took.remove_label_values(&labels);
            let _ = self.total.remove_label_values(&labels);
            let _ = self.errors.remove_label_values(&labels);
        }
    }
}
