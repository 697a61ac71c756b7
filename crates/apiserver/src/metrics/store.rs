//! How the store answers writes: how fast, and whether at all. The names are those that kube-apiserver has for etcd.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use corten_meta::Resource;
use parking_lot::Mutex;

use super::{
    Word, head,
    histogram::{Bounds, Histogram},
};

const BOUNDS: Bounds = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

#[derive(Default)]
pub(crate) struct StoreMetrics {
    /// By operation, group and resource.
    requests: Mutex<BTreeMap<(&'static str, Word, Word), Series>>,
    refusal: Mutex<Option<String>>,
}

#[derive(Default)]
struct Series {
    took: Histogram,
    errors: u64,
}

impl StoreMetrics {
    /// One write was answered; `operation` is create, update or delete.
    pub(crate) fn wrote(
        &self,
        operation: &'static str,
        resource: &Resource,
        took: Duration,
        failure: Option<&corten_store::Error>,
    ) {
        let mut requests = self.requests.lock();
        let series = requests.entry((operation, resource.group.clone(), resource.plural.clone())).or_default();
        series.took.record(BOUNDS, took.as_secs_f64());
        series.errors += u64::from(failure.is_some());
        drop(requests);
        let refused = match failure {
            Some(corten_store::Error::TooLarge { .. }) => return,
            other => other.map(ToString::to_string),
        };
        let mut refusal = self.refusal.lock();
        if *refusal != refused {
            *refusal = refused;
        }
    }

    /// Why the last write that was tried failed, if it did.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let requests = self.requests.lock();
        let label = |(operation, group, resource): &(&str, Word, Word)| {
            format!("operation=\"{operation}\",group=\"{group}\",resource=\"{resource}\"")
        };
        let name = "etcd_request_duration_seconds";
        head(out, name, "histogram", "Etcd request latency in seconds for each operation and object type.")?;
        for (labels, series) in &*requests {
            series.took.write(out, name, &label(labels), BOUNDS)?;
        }
        head(out, "etcd_requests_total", "counter", "Etcd request counts for each operation and object type.")?;
        for (labels, series) in &*requests {
            writeln!(out, "etcd_requests_total{{{}}} {}", label(labels), series.took.count)?;
        }
        let name = "etcd_request_errors_total";
        head(out, name, "counter", "Etcd failed request counts for each operation and object type.")?;
        for (labels, series) in requests.iter().filter(|it| it.1.errors > 0) {
            writeln!(out, "{name}{{{}}} {}", label(labels), series.errors)?;
        }
        Ok(())
    }
}
