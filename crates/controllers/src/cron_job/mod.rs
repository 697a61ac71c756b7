//! Makes a Job of each CronJob whenever its schedule says so, and clears up after them.
//!
//! A Job's name holds the minute it was due: whoever finds it there knows that it has been made, and nobody makes two.

mod due;
mod jobs;
mod round;

use corten_api::resources;
use corten_meta::{Key, Time};
use corten_reconcile::{Controller, Plan, Verb, View, Wake, Watch, Write};

use round::Round;

use crate::projections::{CronJob, Job};

pub struct CronJobs;

impl Controller for CronJobs {
    fn name(&self) -> &'static str {
        "cronjob"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<CronJob>(Wake::Itself), Watch::new::<Job>(Wake::Controller("CronJob"))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::JOBS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::JOBS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::CRON_JOBS, fields: &["status"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(cron_job) = view.get::<CronJob>(key) else { return Plan::default() };
        let controls = |it: &&Job| it.metadata.controller().is_some_and(|owner| owner.uid == cron_job.metadata.uid);
        let jobs = view.owned_by::<Job>(&cron_job.metadata.uid).filter(controls).collect();
        Round::new(view, cron_job, jobs, now).run()
    }
}
