//! Deletes Jobs that have been over for as long as their `ttlSecondsAfterFinished` says, with their pods.

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Controller, Effect, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write};

use crate::projections::Job;

pub struct TtlAfterFinished;

impl Controller for TtlAfterFinished {
    fn name(&self) -> &'static str {
        "ttl-after-finished"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Job>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Delete, resource: resources::JOBS, fields: &[] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some((job, end)) = view.get::<Job>(key).and_then(|it| Some((it, end(it)?))) else {
            return Plan::default();
        };
        if now < end {
            let message = format!("it is over, and is deleted at {end}");
            let waits = vec![Wait::new("TtlAfterFinished", message, Actor::Cluster)];
            return Plan { waits, wake_at: Some(end), ..Plan::default() };
        }
        let delete = Effect::Delete {
            resource: resources::JOBS,
            key: key.clone(),
            uid: job.metadata.uid.clone(),
            propagation: Propagation::Foreground,
            grace_seconds: None,
        };
        Plan { effects: vec![delete], ..Plan::default() }
    }
}

/// When it has been over for long enough.
fn end(job: &Job) -> Option<Time> {
    let ttl = job.spec.ttl_seconds_after_finished.filter(|_| !job.metadata.is_deleting())?;
    let finished_at = job.finish()?.last_transition_time?;
    Some(finished_at.after(Duration::from_secs(u64::try_from(ttl).unwrap_or(0))))
}
