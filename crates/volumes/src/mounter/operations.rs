//! What is counted of what is done with volumes, under upstream's names.

use std::{sync::Arc, time::Duration};

use corten_reconcile::{LoopMetric, MetricKind, Tally};
use parking_lot::Mutex;

/// Plugins are drivers that Pods name: beyond so many rows they are counted together.
const ROWS_MAX: usize = 256;

const SECONDS: MetricKind =
    MetricKind::Histogram(&[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0]);

static DURATIONS: LoopMetric = LoopMetric {
    name: "storage_operation_duration_seconds",
    help: "[ALPHA] Storage operation duration",
    labels: &["volume_plugin", "operation_name", "status", "migrated"],
    kind: SECONDS,
};
/// Upstream has it no longer, and dashboards still ask for it.
static ERRORS: LoopMetric = LoopMetric {
    name: "storage_operation_errors_total",
    help: "[ALPHA] Storage operation errors (Deprecated since 1.21.0)",
    labels: &["volume_plugin", "operation_name"],
    kind: MetricKind::Counter,
};

static CALLS: LoopMetric = LoopMetric {
    name: "csi_operations_seconds",
    help: "[ALPHA] Container Storage Interface operation duration with gRPC error code status total",
    labels: &["driver_name", "method_name", "grpc_status_code", "migrated"],
    kind: SECONDS,
};

/// See the module's documentation. Clones count together.
#[derive(Clone, Debug)]
pub struct StorageOperations(Arc<Mutex<Tallies>>);

#[derive(Debug)]
struct Tallies {
    durations: Tally,
    errors: Tally,
    calls: Tally,
}

impl Default for StorageOperations {
    fn default() -> Self {
        let of = |metric| Tally::new(metric, ROWS_MAX);
        Self(Arc::new(Mutex::new(Tallies { durations: of(&DURATIONS), errors: of(&ERRORS), calls: of(&CALLS) })))
    }
}

impl StorageOperations {
    /// An operation has ended. `plugin`: `kubernetes.io/csi:DRIVER`, `kubernetes.io/empty-dir`.
    pub fn note(&self, plugin: &str, operation: &str, took: Duration, is_done: bool) {
        let mut tallies = self.0.lock();
        let status = if is_done { "success" } else { "fail-unknown" };
        // Nothing is migrated: there are no drivers within the tree that others could take the place of.
        tallies.durations.count(&[plugin, operation, status, "false"], took.as_secs_f64());
        if !is_done {
            tallies.errors.count(&[plugin, operation], 1.0);
        }
    }

    /// A driver has answered, or its time was over. `code`: as Go's gRPC names it, `OK`, `DeadlineExceeded`.
    pub(crate) fn note_call(&self, driver: &str, method: &str, code: &str, took: Duration) {
        self.0.lock().calls.count(&[driver, method, code, "false"], took.as_secs_f64());
    }

    pub fn tallies(&self) -> Vec<Tally> {
        let tallies = self.0.lock();
        vec![tallies.durations.clone(), tallies.errors.clone(), tallies.calls.clone()]
    }
}

/// Upstream's name of the plugin that asks a driver.
pub fn csi_plugin(driver: &str) -> String {
    format!("kubernetes.io/csi:{driver}")
}
