//! A job with its pods, what they amount to, and the plan in the making.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::{Actor, Effect, EventType, Plan, View, Wait, status::status_patch};
use serde_json::json;

use super::{backoff::Record, failure_policy, finish, indexes::Indexes, look, manage, pods, track};
use crate::projections::{Condition, Job, JobStatus, Pod, Uncounted, reference};

pub(super) struct Tally<'a> {
    pub(super) view: &'a View,
    pub(super) job: &'a Job,
    pub(super) now: Time,
    /// All that belong to it; of an indexed job in the order of their indexes.
    pub(super) pods: Vec<&'a Pod>,
    pub(super) active: Vec<&'a Pod>,
    pub(super) status: JobStatus,
    /// With those that are not in the counters yet.
    pub(super) n_succeeded: i64,
    pub(super) n_failed: i64,
    pub(super) n_active: i64,
    pub(super) n_ready: i64,
    pub(super) n_terminating: i64,
    pub(super) succeeded_before: Indexes,
    pub(super) succeeded: Indexes,
    /// Failures in a row, where they are not counted for each index.
    pub(super) record: Option<Record>,
    /// Only where failures are counted for each index.
    pub(super) failed: Option<Indexes>,
    /// The last failed pod of each index that has no successor yet: it keeps its finalizer, for its count of failures.
    pub(super) kept: BTreeMap<i64, &'a Pod>,
    /// The condition that ends the job, once there is one.
    pub(super) end: Option<Condition>,
    pub(super) removals: Vec<Effect>,
    pub(super) creates: Vec<Effect>,
    pub(super) events: Vec<Effect>,
    pub(super) waits: Vec<Wait>,
    wake_at: Option<Time>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(view: &'a View, job: &'a Job, mut pods: Vec<&'a Pod>, now: Time) -> Self {
        if job.is_indexed() {
            pods.sort_by_key(|it| (pods::index(it), it.metadata.name.clone()));
        }
        let active: Vec<&Pod> = pods.iter().copied().filter(|it| it.is_active()).collect();
        let mut status = job.status.clone();
        status.uncounted_terminated_pods.get_or_insert_default();
        let mut tally = Self {
            view,
            job,
            now,
            n_active: count(&active, |_| true),
            n_ready: count(&active, Pod::is_ready),
            n_terminating: count(&pods, Pod::is_terminating),
            pods,
            active,
            status,
            n_succeeded: 0,
            n_failed: 0,
            succeeded_before: Indexes::default(),
            succeeded: Indexes::default(),
            record: Record::read(&job.metadata).filter(|it| it.is_past(now)),
            failed: None,
            kept: BTreeMap::new(),
            end: None,
            removals: Vec::new(),
            creates: Vec::new(),
            events: Vec::new(),
            waits: Vec::new(),
            wake_at: None,
        };
        tally.count();
        tally
    }

    pub(super) fn run(mut self) -> Plan {
        if self.status.start_time.is_none() && !self.job.spec.suspend {
            self.status.start_time = Some(self.now);
        }
        finish::decide(&mut self);
        if self.end.is_some() {
            manage::take_all(&mut self);
        } else {
            manage::run(&mut self);
            finish::complete(&mut self);
        }
        self.status.active = self.n_active;
        self.status.ready = Some(self.n_ready);
        self.status.terminating = Some(self.n_terminating);
        let released = track::run(&mut self);
        let status = self.status_patch();
        self.plan(status, released)
    }

    /// Pods are made before the status tells of them; but once that has failed, the status comes first.
    fn plan(mut self, status: Option<Effect>, released: Vec<Effect>) -> Plan {
        let failure = self.failure_event();
        let has_failed = failure.is_some();
        let look = Some(look(self.job, self.action()));
        let Self { creates, removals, events, waits, wake_at, .. } = self;
        let (first, last) = if has_failed { (Vec::new(), creates) } else { (creates, Vec::new()) };
        let effects = failure.into_iter().chain(removals).chain(first).chain(status).chain(events);
        Plan { effects: effects.chain(released).chain(last).collect(), waits, wake_at, look }
    }

    /// The word that stands for what is done; to take pods away goes before making them.
    fn action(&self) -> &'static str {
        if self.removals.iter().any(|it| matches!(it, Effect::Delete { .. })) {
            "pods_deleted"
        } else if self.creates.is_empty() {
            "tracking"
        } else {
            "pods_created"
        }
    }

    /// Exact, since it counts on from what was seen.
    fn status_patch(&self) -> Option<Effect> {
        let meta = &self.job.metadata;
        let changed = status_patch(resources::JOBS, meta, &self.job.status, &self.status);
        let is_recorded = self.record == Record::read(meta);
        if changed.is_none() && is_recorded {
            return None;
        }
        let mut patch = match changed {
            Some(Effect::Patch { patch, .. }) => patch,
            _ => json!({ "metadata": { "uid": meta.uid } }),
        };
        patch["metadata"]["resourceVersion"] = json!(meta.resource_version);
        if !is_recorded {
            let record = self.record.map(|it| it.to_string());
            patch["metadata"]["annotations"] = json!({ Record::ANNOTATION: record });
        }
        Some(Effect::Patch { resource: resources::JOBS, key: meta.key(), subresource: Some("status"), patch })
    }

    // ---- counting ----

    fn count(&mut self) {
        let job = self.job;
        let uncounted = self.uncounted().clone();
        let known: BTreeSet<&str> = uncounted.succeeded.iter().chain(&uncounted.failed).map(String::as_str).collect();
        let is_new = |it: &&&Pod| pods::is_tracked(it) && !known.contains(&*it.metadata.uid);
        let new: Vec<&Pod> = self.pods.iter().filter(is_new).filter(|it| self.is_valid(it)).copied().collect();
        self.n_succeeded = job.status.succeeded + len(&uncounted.succeeded) + count(&new, Pod::has_succeeded);
        let counts = |it: &Pod| pods::has_failed(job, it) && failure_policy::verdict(job, it).counts();
        self.n_failed = job.status.failed + len(&uncounted.failed) + count(&new, counts);
        if job.spec.backoff_limit_per_index.is_none() {
            let (succeeded, rest): (Vec<&Pod>, Vec<&Pod>) = new.iter().copied().partition(|it| it.has_succeeded());
            let failed: Vec<&Pod> = rest.into_iter().filter(|it| pods::has_failed(job, it)).collect();
            self.record = Record::with(self.record, &succeeded, &failed, self.now);
        }
        if !job.is_indexed() {
            return;
        }
        self.succeeded_before = Indexes::parse(&job.status.completed_indexes, self.completions());
        self.succeeded = self.succeeded_before.with(&self.indexes_of(|it| pods::is_tracked(it) && it.has_succeeded()));
        self.n_succeeded = self.succeeded.len();
        let Some(limit) = job.spec.backoff_limit_per_index else { return };
        let before = Indexes::parse(job.status.failed_indexes.as_deref().unwrap_or_default(), self.completions());
        self.failed = Some(before.with(&self.indexes_of(|it| pods::is_tracked(it) && fails_index(job, it, limit))));
        self.keep_last_failed();
    }

    fn keep_last_failed(&mut self) {
        let active = self.indexes_of(Pod::is_active);
        let is_over = |it: i64| {
            self.succeeded.has(it) || self.failed.as_ref().is_some_and(|failed| failed.has(it)) || active.has(it)
        };
        let rank = |it: &Pod| {
            let (counted, ignored) = pods::failures_before(it);
            (counted.saturating_add(ignored), pods::finished_at(it))
        };
        let mut kept: BTreeMap<i64, &Pod> = BTreeMap::new();
        for pod in self.pods.iter().filter(|it| pods::is_tracked(it) && pods::has_failed(self.job, it)) {
            let Some(index) = self.valid_index(pod).filter(|it| !is_over(*it)) else { continue };
            if kept.get(&index).is_none_or(|it| rank(it) <= rank(pod)) {
                kept.insert(index, pod);
            }
        }
        self.kept = kept;
    }

    pub(super) fn indexes_of(&self, is: impl Fn(&Pod) -> bool) -> Indexes {
        let pods = self.pods.iter().filter(|it| is(it));
        pods.filter_map(|it| self.valid_index(it)).collect::<BTreeSet<i64>>().into()
    }

    pub(super) fn valid_index(&self, pod: &Pod) -> Option<i64> {
        pods::index(pod).filter(|it| *it < self.completions())
    }

    /// Of an indexed job, pods without an index that is wanted do not count.
    pub(super) fn is_valid(&self, pod: &Pod) -> bool {
        !self.job.is_indexed() || self.valid_index(pod).is_some()
    }

    pub(super) fn completions(&self) -> i64 {
        self.job.spec.completions.unwrap_or(0)
    }

    pub(super) fn uncounted(&mut self) -> &mut Uncounted {
        self.status.uncounted_terminated_pods.get_or_insert_default()
    }

    // ---- what it says ----

    pub(super) fn event(&self, event_type: EventType, reason: &'static str, message: String) -> Effect {
        Effect::Event { about: reference(self.job), event_type, reason, message }
    }

    pub(super) fn wait(&mut self, reason: &str, message: impl Into<String>, actor: Actor) {
        self.waits.push(Wait::new(reason, message, actor));
    }

    pub(super) fn wake(&mut self, at: Time) {
        self.wake_at = Some(self.wake_at.map_or(at, |it| it.min(at)));
    }

    /// Did the last try to make a pod fail?
    pub(super) fn has_failed_to_create(&self) -> bool {
        let failure = self.view.failure(&self.job.metadata.key());
        failure.is_some_and(|it| matches!(it.effect, Effect::Create { .. }))
    }

    fn failure_event(&mut self) -> Option<Effect> {
        let failure = self.view.failure(&self.job.metadata.key())?;
        let (reason, words) = match &failure.effect {
            Effect::Create { .. } => ("FailedCreate", "Error creating"),
            Effect::Delete { .. } => ("FailedDelete", "Error deleting"),
            _ => return None,
        };
        let message = format!("{words}: {}", failure.message);
        self.wait(reason, format!("{}: {}", words.to_lowercase(), failure.message), Actor::Operator);
        Some(self.event(EventType::Warning, reason, message))
    }
}

fn fails_index(job: &Job, pod: &Pod, limit: i64) -> bool {
    if !pods::has_failed(job, pod) {
        return false;
    }
    match failure_policy::verdict(job, pod) {
        failure_policy::Verdict::FailIndex => true,
        verdict => verdict.counts() && pods::failures_before(pod).0 >= limit,
    }
}

fn count(pods: &[&Pod], is: impl Fn(&Pod) -> bool) -> i64 {
    i64::try_from(pods.iter().filter(|it| is(it)).count()).unwrap_or(i64::MAX)
}

fn len(list: &[String]) -> i64 {
    i64::try_from(list.len()).unwrap_or(i64::MAX)
}
