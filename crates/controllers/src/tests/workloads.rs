//! The controllers of pods against their text worlds.

use corten_reconcile::{Controller, fixture::World};

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
fn looks_at_jobs_are_counted_by_what_is_done() {
    for (lines, counted) in [
        ("job sum", Some("NonIndexed pods_created")),
        ("job sum indexed completions=3 parallelism=2", Some("Indexed pods_created")),
        ("job sum parallelism=0\npod sum-a owner=job/sum tracked", Some("NonIndexed pods_deleted")),
        ("job sum\npod sum-a owner=job/sum tracked running", Some("NonIndexed tracking")),
        ("job sum\npod sum-a labels=app=sum", Some("NonIndexed reconciling")),
        ("job sum spec.managedBy=example.com/other", None),
        (r#"job sum status.conditions=[{"type":"Complete","status":"True"}]"#, None),
    ] {
        let world = World::parse(lines).expect("the world can be read");
        let plan = Jobs.reconcile(&world.view(&Jobs.watches()), &world.asked(), world.now);
        assert_eq!(plan.look.map(|it| it.labels.join(" ")).as_deref(), counted, "{lines}");
    }
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
