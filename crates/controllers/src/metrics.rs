//! What the controllers count, by upstream's names: `/metrics` has it once it happens.

use corten_reconcile::{LoopMetric, MetricKind};

pub(crate) static JOBS_FINISHED: LoopMetric = LoopMetric {
    name: "job_controller_jobs_finished_total",
    help: "The number of finished jobs",
    labels: &["completion_mode", "result", "reason"],
    kind: MetricKind::Counter,
};

pub(crate) static JOB_SYNCS: LoopMetric = LoopMetric {
    name: "job_controller_job_syncs_total",
    help: "The number of job syncs",
    labels: &["completion_mode", "action", "result"],
    kind: MetricKind::Counter,
};

pub(crate) static JOB_SYNC_TOOK: LoopMetric = LoopMetric {
    name: "job_controller_job_sync_duration_seconds",
    help: "The time it took to sync a job",
    labels: &["completion_mode", "action", "result"],
    kind: MetricKind::Histogram(&[
        0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384, 32.768, 65.536,
    ]),
};

pub(crate) static JOB_PODS_FINISHED: LoopMetric = LoopMetric {
    name: "job_controller_job_pods_finished_total",
    help: "The number of finished Pods that are fully tracked",
    labels: &["completion_mode", "result"],
    kind: MetricKind::Counter,
};

pub(crate) static CRON_JOB_SKEW: LoopMetric = LoopMetric {
    name: "cronjob_controller_job_creation_skew_duration_seconds",
    help: "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
    labels: &[],
    kind: MetricKind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
};

pub(crate) static NODE_EVICTIONS: LoopMetric = LoopMetric {
    name: "node_collector_evictions_total",
    help: "Number of Node evictions that happened since current instance of NodeController started.",
    labels: &["zone"],
    kind: MetricKind::Counter,
};
