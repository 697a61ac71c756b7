//! A cron job with its jobs, and the plan in the making.

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Effect, EventType, Plan, View, Wait, go_on_after_failed, status::status_patch};

use super::{
    due::{Unclear, due},
    jobs,
};
use crate::{
    metrics::CRON_JOB_SKEW,
    projections::{CronJob, CronJobStatus, Job, reference},
};

pub(super) struct Round<'a> {
    view: &'a View,
    cron_job: &'a CronJob,
    jobs: Vec<&'a Job>,
    now: Time,
    status: CronJobStatus,
    effects: Vec<Effect>,
    waits: Vec<Wait>,
    wake_at: Option<Time>,
}

impl<'a> Round<'a> {
    pub(super) fn new(view: &'a View, cron_job: &'a CronJob, jobs: Vec<&'a Job>, now: Time) -> Self {
        let status = cron_job.status.clone();
        Self { view, cron_job, jobs, now, status, effects: Vec::new(), waits: Vec::new(), wake_at: None }
    }

    pub(super) fn run(mut self) -> Plan {
        self.follow_jobs();
        self.forget_missing();
        if !self.cron_job.metadata.is_deleting() {
            self.act();
        }
        let (meta, old) = (&self.cron_job.metadata, &self.cron_job.status);
        // Last, so that a job that could not be made does not count as made.
        self.effects.extend(status_patch(resources::CRON_JOBS, meta, old, &self.status));
        let next = std::mem::take(&mut self.effects);
        self.clear_up();
        if self.effects.is_empty() || next.is_empty() {
            self.effects.extend(next);
        } else {
            // Old jobs go though none can be made, which they may be in the way of, and the other way round.
            self.effects.insert(0, Effect::Sequence(next));
            go_on_after_failed(&mut self.effects, self.view.failure(&meta.key()));
        }
        Plan { effects: self.effects, waits: self.waits, wake_at: self.wake_at, ..Plan::default() }
    }

    // ---- the jobs there are ----

    fn follow_jobs(&mut self) {
        for job in self.jobs.clone() {
            let is_listed = self.status.active.iter().any(|it| it.uid == job.metadata.uid);
            let name = &job.metadata.name;
            match (is_listed, job.finish()) {
                // Taken away to make room for another.
                (false, None) if job.metadata.is_deleting() => {}
                (false, None) => match jobs::due(self.cron_job, job) {
                    Some(due) => {
                        // Made, and not written down yet.
                        self.status.active.push(jobs::active(job));
                        self.status.last_schedule_time = self.status.last_schedule_time.max(Some(due));
                    }
                    None => {
                        let message = format!("Saw a job that the controller did not create or forgot: {name}");
                        self.say(EventType::Warning, "UnexpectedJob", message);
                    }
                },
                (true, Some(end)) => {
                    self.status.active.retain(|it| it.uid != job.metadata.uid);
                    let message = format!("Saw completed job: {name}, condition: {}", end.r#type);
                    self.say(EventType::Normal, "SawCompletedJob", message);
                }
                _ => {}
            }
            if job.condition("Complete").is_some() {
                let last = self.status.last_successful_time.max(job.status.completion_time);
                self.status.last_successful_time = last;
            }
        }
    }

    fn forget_missing(&mut self) {
        let uids: Vec<&str> = self.jobs.iter().map(|it| &*it.metadata.uid).collect();
        let (there, missing) =
            std::mem::take(&mut self.status.active).into_iter().partition(|it| uids.contains(&&*it.uid));
        self.status.active = there;
        for it in missing {
            self.say(EventType::Normal, "MissingJob", format!("Active job went missing: {}", it.name));
        }
    }

    fn clear_up(&mut self) {
        let spec = &self.cron_job.spec;
        let mut old = jobs::beyond(&self.jobs, "Complete", spec.successful_jobs_history_limit);
        old.extend(jobs::beyond(&self.jobs, "Failed", spec.failed_jobs_history_limit));
        old.into_iter().for_each(|it| self.delete(it));
    }

    // ---- the next one ----

    fn act(&mut self) {
        if self.cron_job.spec.suspend {
            return self.wait("Suspended", "it is suspended: no job is made until it is resumed", Actor::Author);
        }
        let due = match due(self.cron_job, self.now) {
            Ok(due) => due,
            Err(Unclear { reason, message, is_never }) => {
                if is_never {
                    self.wait_for_ever();
                } else {
                    self.wait(reason, &message, Actor::Author);
                }
                return self.say(EventType::Warning, reason, message);
            }
        };
        self.wake_at = due.next;
        if due.has_missed_many {
            let message =
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.say(EventType::Warning, "TooManyMissedTimes", message.to_owned());
        }
        match due.at {
            Some(at) => self.make(at),
            None => match due.next {
                Some(next) => self.wait("NotDue", &format!("its next job is due at {next}"), Actor::Cluster),
                None => self.wait_for_ever(),
            },
        }
    }

    fn make(&mut self, at: Time) {
        let spec = &self.cron_job.spec;
        let deadline = spec.starting_deadline_seconds.and_then(|it| u64::try_from(it).ok());
        if deadline.is_some_and(|it| at.after(Duration::from_secs(it)) < self.now) {
            let time = at.0.strftime("%a, %d %b %Y %H:%M:%S +0000");
            return self.say(
                EventType::Warning,
                "MissSchedule",
                format!("Missed scheduled time to start a job: {time}"),
            );
        }
        let name = jobs::name(self.cron_job, at);
        if self.status.active.iter().any(|it| it.name == name) || self.status.last_schedule_time == Some(at) {
            return;
        }
        let namespace = &self.cron_job.metadata.namespace;
        if let Some(there) = self.view.get::<Job>(&Key::new(&**namespace, &*name)) {
            return self.find(there, at);
        }
        match &*spec.concurrency_policy {
            "Forbid" if !self.status.active.is_empty() => {
                let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
                let wait = "its job is due, and waits for the one before to end";
                let wait = Wait::new("JobAlreadyActive", wait, Actor::Cluster);
                self.waits.extend(self.status.active.first().map(|it| wait.on("Job", &it.name)));
                return self.say(EventType::Normal, "JobAlreadyActive", message.to_owned());
            }
            "Replace" => self.replace(),
            _ => {}
        }
        self.say_failure();
        self.effects.push(Effect::Create { resource: resources::JOBS, object: jobs::job(self.cron_job, at) });
        self.say(EventType::Normal, "SuccessfulCreate", format!("Created job {name}"));
        self.effects.push(Effect::Count(CRON_JOB_SKEW.count(&[], self.now.since(at).as_secs_f64())));
        self.status.last_schedule_time = Some(at);
    }

    /// A job of this name is there already: made before, or somebody else's.
    fn find(&mut self, job: &Job, at: Time) {
        if self.jobs.iter().any(|it| it.metadata.uid == job.metadata.uid) {
            self.status.last_schedule_time = Some(at);
        } else {
            let message = format!("its job cannot be made: another one is called {}", job.metadata.name);
            self.wait("JobNameTaken", &message, Actor::Operator);
        }
    }

    fn replace(&mut self) {
        let running = std::mem::take(&mut self.status.active);
        for job in self.jobs.clone() {
            if running.iter().any(|it| it.uid == job.metadata.uid) && !job.metadata.is_deleting() {
                self.delete(job);
            }
        }
    }

    fn delete(&mut self, job: &Job) {
        self.effects.push(jobs::delete(job));
        self.say(EventType::Normal, "SuccessfulDelete", format!("Deleted job {}", job.metadata.name));
    }

    // ---- what it says ----

    /// What the last try failed with.
    fn say_failure(&mut self) {
        let failure = self.view.failure(&self.cron_job.metadata.key());
        let Some(failure) = failure.filter(|it| matches!(it.effect, Effect::Create { .. })) else { return };
        let message = format!("Error creating job: {}", failure.message);
        self.wait("FailedCreate", &message, Actor::Operator);
        self.say(EventType::Warning, "FailedCreate", message);
    }

    fn say(&mut self, event_type: EventType, reason: &'static str, message: String) {
        self.effects.push(Effect::Event { about: reference(self.cron_job), event_type, reason, message });
    }

    fn wait_for_ever(&mut self) {
        let schedule = &self.cron_job.spec.schedule;
        let message = format!("no time to come fits its schedule {schedule:?}: it never makes a job");
        self.wait("NeverDue", &message, Actor::Author);
    }

    fn wait(&mut self, reason: &str, message: &str, actor: Actor) {
        self.waits.push(Wait::new(reason, message, actor));
    }
}
