//! The controllers of pods against their text worlds.

use super::check;
use crate::{CronJobs, DaemonSets, Jobs, ReplicationControllers, StatefulSets, TtlAfterFinished};

#[test]
fn cron_job() {
    check(&CronJobs, "cron_job");
}

#[test]
fn daemon_set() {
    check(&DaemonSets, "daemon_set");
}

#[test]
fn job() {
    check(&Jobs, "job");
}

#[test]
fn replication_controller() {
    check(&ReplicationControllers, "replication_controller");
}

#[test]
fn stateful_set() {
    check(&StatefulSets, "stateful_set");
}

#[test]
fn ttl_after_finished() {
    check(&TtlAfterFinished, "ttl_after_finished");
}
