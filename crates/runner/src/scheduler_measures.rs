//! What a scheduler tells of its work, counted and timed under kube-scheduler's names.
//!
//! One loop writes, and whoever asks for metrics reads: nothing is locked or allocated for what happens at each pod.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use corten_api::scheduling::NODE_HAS_NO_ROOM;
use corten_client::Error;
use corten_reconcile::{LoopMetric, MetricKind};
use corten_scheduler::{
    ExtensionPoint, Fact, Moment, Observer, PLUGINS, Pending, PluginSet, PodQueue, PointStatus, Profile, QueueEvent,
    Span, TryResult,
};
use tokio::time::Instant;

use crate::{CountedDurations, CountedMetric};

/// One try of so many has its plugins timed, as upstream has it (`pluginMetricsSamplePercent`), and none so soon after another: where
/// tries are many, that is next to none of them.
const TIMED_ONE_OF: u64 = 10;
const TIMED_EACH: Duration = Duration::from_millis(10);

/// The points at which plugins are timed and counted one by one.
const POINTS_OF_PLUGINS: [ExtensionPoint; 3] =
    [ExtensionPoint::PreFilter, ExtensionPoint::Filter, ExtensionPoint::Score];

/// Pods that were bound at a later try are counted together.
const TRIES_MAX: usize = 15;

const fn doubling<const N: usize>(first: f64) -> [f64; N] {
    growing(first, 2.0)
}

const fn growing<const N: usize>(first: f64, factor: f64) -> [f64; N] {
    let mut bounds = [first; N];
    let mut at = 1;
    while at < N {
        bounds[at] = bounds[at - 1] * factor;
        at += 1;
    }
    bounds
}

const SECONDS_OF_TRIES: [f64; 15] = doubling(0.001);
const SECONDS_OF_POINTS: [f64; 12] = doubling(0.0001);
const SECONDS_OF_PLUGINS: [f64; 20] = growing(0.00001, 1.5);
const SECONDS_OF_PODS: [f64; 20] = doubling(0.01);
const TRIES: [f64; 5] = doubling(1.0);
const VICTIMS: [f64; 7] = doubling(1.0);

static TRIED: LoopMetric = LoopMetric {
    name: "scheduler_schedule_attempts_total",
    help: "How many tries to schedule a pod have ended, by what they came to: an error is the scheduler's own, or an answer to what it wrote.",
    labels: &["profile", "result"],
    kind: MetricKind::Counter,
};

static TRY_TOOK: LoopMetric = LoopMetric {
    name: "scheduler_scheduling_attempt_duration_seconds",
    help: "How long tries to schedule a pod took, with the binding.",
    labels: &["profile", "result"],
    kind: MetricKind::Histogram(&SECONDS_OF_TRIES),
};

static SEARCH_TOOK: LoopMetric = LoopMetric {
    name: "scheduler_scheduling_algorithm_duration_seconds",
    help: "How long it took to find a node for a pod, or that there is none.",
    labels: &[],
    kind: MetricKind::Histogram(&SECONDS_OF_TRIES),
};

static POINT_TOOK: LoopMetric = LoopMetric {
    name: "scheduler_framework_extension_point_duration_seconds",
    help: "How long all plugins of one extension point took together.",
    labels: &["extension_point", "profile", "status"],
    kind: MetricKind::Histogram(&SECONDS_OF_POINTS),
};

static PLUGIN_TOOK: LoopMetric = LoopMetric {
    name: "scheduler_plugin_execution_duration_seconds",
    help: "How long one plugin took at an extension point, a filter or a score on one node: of a tenth of all tries, and of no more than a hundred a second.",
    labels: &["extension_point", "plugin", "status"],
    kind: MetricKind::Histogram(&SECONDS_OF_PLUGINS),
};

static PLUGIN_ASKED: LoopMetric = LoopMetric {
    name: "scheduler_plugin_evaluation_total",
    help: "In how many tries to schedule a pod a plugin had its say at an extension point.",
    labels: &["extension_point", "plugin", "profile"],
    kind: MetricKind::Counter,
};

static REFUSED: LoopMetric = LoopMetric {
    name: "scheduler_unschedulable_pods",
    help: "How many pods a plugin keeps from all nodes or out of the queue, since they were tried last. A pod counts with each plugin that turned nodes down.",
    labels: &["plugin", "profile"],
    kind: MetricKind::Gauge,
};

static POD_TOOK: LoopMetric = LoopMetric {
    name: "scheduler_pod_scheduling_sli_duration_seconds",
    help: "How long it took from when a pod came to the queue until it was bound, by how many tries that were.",
    labels: &["attempts"],
    kind: MetricKind::Histogram(&SECONDS_OF_PODS),
};

static POD_TRIES: LoopMetric = LoopMetric {
    name: "scheduler_pod_scheduling_attempts",
    help: "How many tries it took until a pod was bound.",
    labels: &[],
    kind: MetricKind::Histogram(&TRIES),
};

static PENDING: LoopMetric = LoopMetric {
    name: "scheduler_pending_pods",
    help: "How many pods wait to be tried (active), for their back-off to end (backoff), for something that helps them (unschedulable), or for what keeps them out of the queue (gated).",
    labels: &["queue"],
    kind: MetricKind::Gauge,
};

static INCOMING: LoopMetric = LoopMetric {
    name: "scheduler_queue_incoming_pods_total",
    help: "How many pods have come to a queue, by why they did.",
    labels: &["event", "queue"],
    kind: MetricKind::Counter,
};

static PREEMPTIONS: LoopMetric = LoopMetric {
    name: "scheduler_preemption_attempts_total",
    help: "How often pods were looked for that leave their nodes for others.",
    labels: &[],
    kind: MetricKind::Counter,
};

static PREEMPTED: LoopMetric = LoopMetric {
    name: "scheduler_preemption_victims",
    help: "How many pods leave their nodes for another, each time that any do.",
    labels: &[],
    kind: MetricKind::Histogram(&VICTIMS),
};

static CONFLICTS: LoopMetric = LoopMetric {
    name: "corten_scheduler_binding_conflicts_total",
    help: "How many bindings came too late: another scheduler had taken the room of the node (no_room), or had bound the pod (bound_elsewhere).",
    labels: &["reason"],
    kind: MetricKind::Counter,
};

/// Who has bound a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binder {
    This,
    /// Another scheduler was faster, and bound it to this node.
    Another(String),
}

/// Another scheduler was faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingConflict {
    NoRoom,
    BoundElsewhere,
}

impl BindingConflict {
    const ALL: [Self; 2] = [Self::NoRoom, Self::BoundElsewhere];

    /// Who has bound a pod, or why it is not bound.
    pub(crate) fn of(bound: &Result<Binder, Error>) -> Option<Self> {
        match bound {
            Ok(Binder::This) => None,
            Ok(Binder::Another(_)) => Some(Self::BoundElsewhere),
            Err(error) => {
                let mut causes = error.status()?.details.iter().flat_map(|it| &it.causes);
                causes.any(|it| it.reason == NODE_HAS_NO_ROOM).then_some(Self::NoRoom)
            }
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::BoundElsewhere => "bound_elsewhere",
        }
    }
}

/// What is counted of the scheduler of a process.
pub(crate) struct SchedulerMeasures {
    begun: Instant,
    profiles: Vec<OfProfile>,
    plugins: OfPlugins,
    n_asked_to_time: AtomicU64,
    /// Of the clock that begins with these measures, in nanoseconds.
    timed_at: AtomicU64,
    searches: Histogram,
    /// By how many tries it took, from one on; the last is of all that took more.
    pods: [Histogram; TRIES_MAX],
    pod_tries: Histogram,
    /// As the gauge has them, from `active` to `gated`.
    pending: [AtomicU64; 4],
    /// By queue, and by the place of the event.
    incoming: [Box<[AtomicU64]>; PodQueue::ALL.len()],
    n_preemptions: AtomicU64,
    conflicts: [AtomicU64; BindingConflict::ALL.len()],
    victims: Histogram,
}

/// Configured ones are few, and the only ones that there are.
struct OfProfile {
    name: String,
    tries: [Histogram; TryResult::ALL.len()],
    points: [[Histogram; PointStatus::ALL.len()]; ExtensionPoint::ALL.len()],
    /// In how many tries each plugin had its say.
    asked: [[AtomicU64; PLUGINS.len()]; POINTS_OF_PLUGINS.len()],
    /// How many pods each plugin turned down.
    refused: [AtomicU64; PLUGINS.len()],
}

/// What plugins took, each at each of its points.
type OfPlugins = [[Box<[Histogram]>; PLUGINS.len()]; POINTS_OF_PLUGINS.len()];

struct Histogram {
    bounds: &'static [f64],
    /// Up to each bound and above the one before it; the last is above all.
    counts: Box<[AtomicU64]>,
    /// The bits of a float.
    sum: AtomicU64,
}

impl SchedulerMeasures {
    pub(crate) fn new(profiles: &[Profile]) -> Self {
        let of_profile = |it: &Profile| OfProfile {
            name: it.name.clone(),
            tries: std::array::from_fn(|_| Histogram::new(&SECONDS_OF_TRIES)),
            points: std::array::from_fn(|_| std::array::from_fn(|_| Histogram::new(&SECONDS_OF_POINTS))),
            asked: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        let of_statuses = || PointStatus::ALL.iter().map(|_| Histogram::new(&SECONDS_OF_PLUGINS)).collect();
        Self {
            begun: Instant::now(),
            profiles: profiles.iter().map(of_profile).collect(),
            plugins: std::array::from_fn(|_| std::array::from_fn(|_| of_statuses())),
            n_asked_to_time: AtomicU64::new(0),
            timed_at: AtomicU64::new(0),
            searches: Histogram::new(&SECONDS_OF_TRIES),
            pods: std::array::from_fn(|_| Histogram::new(&SECONDS_OF_PODS)),
            pod_tries: Histogram::new(&TRIES),
            pending: Default::default(),
            incoming: std::array::from_fn(|_| zeros(QueueEvent::COUNT)),
            n_preemptions: AtomicU64::new(0),
            conflicts: Default::default(),
            victims: Histogram::new(&VICTIMS),
        }
    }

    /// Are these its profiles?
    pub(crate) fn is_of(&self, profiles: &[Profile]) -> bool {
        self.profiles.iter().map(|it| &it.name).eq(profiles.iter().map(|it| &it.name))
    }

    pub(crate) fn set_pending(&self, now: Pending) {
        let Pending { active, backoff, unschedulable, gated } = now;
        for (gauge, number) in self.pending.iter().zip([active, backoff, unschedulable, gated]) {
            gauge.store(u64::try_from(number).unwrap_or(u64::MAX), Relaxed);
        }
    }

    /// The scheduler runs here no more: nothing waits for it.
    pub(crate) fn ended(&self) {
        self.set_pending(Pending::default());
        self.profiles.iter().flat_map(|it| &it.refused).for_each(|it| it.store(0, Relaxed));
    }

    fn refused(&self, profile: &str, plugins: PluginSet, change: impl Fn(&AtomicU64)) {
        if let Some(of) = self.of(profile) {
            plugins.iter().for_each(|it| change(&of.refused[it]));
        }
    }

    /// What is told of each plugin by itself.
    fn all_of_plugins(&self) -> [CountedMetric; 3] {
        let (mut took, mut asked, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for (point, plugins) in POINTS_OF_PLUGINS.iter().zip(&self.plugins) {
            for (plugin, statuses) in PLUGINS.iter().zip(plugins) {
                for (status, of) in PointStatus::ALL.iter().zip(statuses).filter(|it| it.1.n() > 0) {
                    took.push((owned(&[point.as_str(), plugin.name, status.as_str()]), of.counted()));
                }
            }
        }
        for profile in &self.profiles {
            for (point, plugins) in POINTS_OF_PLUGINS.iter().zip(&profile.asked) {
                for (plugin, n) in PLUGINS.iter().zip(plugins).filter(|it| it.1.load(Relaxed) > 0) {
                    asked.push((owned(&[point.as_str(), plugin.name, &profile.name]), stands_at(n.load(Relaxed))));
                }
            }
            for (plugin, n) in PLUGINS.iter().zip(&profile.refused).filter(|it| it.1.load(Relaxed) > 0) {
                refused.push((owned(&[plugin.name, &profile.name]), stands_at(n.load(Relaxed))));
            }
        }
        [(&PLUGIN_ASKED, asked), (&PLUGIN_TOOK, took), (&REFUSED, refused)]
            .map(|(metric, rows)| CountedMetric { metric, rows })
    }

    /// What was asked of the API server was answered: a pod of this profile is bound, or it is not.
    pub(crate) fn bound(&self, profile: &str, is_bound: bool, from: Moment) {
        let status = if is_bound { PointStatus::Success } else { PointStatus::Error };
        let span = Span { from, to: self.moment() };
        self.tell(&Fact::Ran { point: ExtensionPoint::Bind, status, profile, span });
    }

    pub(crate) fn conflicted(&self, conflict: BindingConflict) {
        self.conflicts[conflict as usize].fetch_add(1, Relaxed);
    }

    fn of(&self, profile: &str) -> Option<&OfProfile> {
        self.profiles.iter().find(|it| it.name == profile)
    }

    /// All metrics as they stand now.
    pub(crate) fn all(&self) -> Vec<CountedMetric> {
        let labels = owned;
        let (mut tried, mut try_took, mut point_took) = (Vec::new(), Vec::new(), Vec::new());
        for profile in &self.profiles {
            for (result, of) in TryResult::ALL.iter().zip(&profile.tries).filter(|it| it.1.n() > 0) {
                let labels = labels(&[&profile.name, result.as_str()]);
                tried.push((labels.clone(), stands_at(of.n())));
                try_took.push((labels, of.counted()));
            }
            for (point, statuses) in ExtensionPoint::ALL.iter().zip(&profile.points) {
                for (status, of) in PointStatus::ALL.iter().zip(statuses).filter(|it| it.1.n() > 0) {
                    point_took.push((labels(&[point.as_str(), &profile.name, status.as_str()]), of.counted()));
                }
            }
        }
        let numbers = (1..TRIES_MAX).map(|it| it.to_string()).chain([format!("{TRIES_MAX}+")]);
        let pods = numbers.zip(&self.pods).filter(|it| it.1.n() > 0);
        let pending = ["active", "backoff", "unschedulable", "gated"].iter().zip(&self.pending);
        let mut incoming = Vec::new();
        for (queue, counts) in PodQueue::ALL.iter().zip(&self.incoming) {
            let counts = QueueEvent::all().zip(counts.iter().map(|it| it.load(Relaxed))).filter(|it| it.1 > 0);
            incoming.extend(counts.map(|(event, n)| (labels(&[&event.to_string(), queue.as_str()]), stands_at(n))));
        }
        let conflicts = BindingConflict::ALL.iter().zip(&self.conflicts);
        let only = |it: CountedDurations| vec![(Vec::new(), it)];
        [
            (&CONFLICTS, conflicts.map(|(it, n)| (labels(&[it.as_str()]), stands_at(n.load(Relaxed)))).collect()),
            (&POINT_TOOK, point_took),
            (&PENDING, pending.map(|(queue, it)| (labels(&[queue]), stands_at(it.load(Relaxed)))).collect()),
            (&POD_TRIES, only(self.pod_tries.counted())),
            (&POD_TOOK, pods.map(|(number, of)| (vec![number], of.counted())).collect()),
            (&PREEMPTIONS, only(stands_at(self.n_preemptions.load(Relaxed)))),
            (&PREEMPTED, only(self.victims.counted())),
            (&INCOMING, incoming),
            (&TRIED, tried),
            (&SEARCH_TOOK, only(self.searches.counted())),
            (&TRY_TOOK, try_took),
        ]
        .into_iter()
        .map(|(metric, rows)| CountedMetric { metric, rows })
        .chain(self.all_of_plugins())
        .collect()
    }
}

impl Observer for SchedulerMeasures {
    fn moment(&self) -> Moment {
        Moment(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn times_plugins(&self) -> bool {
        if !self.n_asked_to_time.fetch_add(1, Relaxed).is_multiple_of(TIMED_ONE_OF) {
            return false;
        }
        let (now, last) = (self.moment().0, self.timed_at.load(Relaxed));
        let is_due = last == 0 || u128::from(now.saturating_sub(last)) >= TIMED_EACH.as_nanos();
        if is_due {
            self.timed_at.store(now, Relaxed);
        }
        is_due
    }

    fn tell(&self, fact: &Fact<'_>) {
        match *fact {
            Fact::Ran { point, status, profile, span } => {
                if let Some(of) = self.of(profile) {
                    of.points[point as usize][status as usize].observe(seconds(span));
                }
            }
            Fact::Evaluated { point, plugins, profile } => {
                let asked = self.of(profile).zip(place_of(point)).map(|(of, place)| &of.asked[place]);
                for plugin in plugins.iter() {
                    // One loop writes: nobody's count is lost.
                    asked.map(|it| &it[plugin]).inspect(|it| it.store(it.load(Relaxed) + 1, Relaxed));
                }
            }
            Fact::PluginRan { plugin, point, status, span } => {
                if let Some(place) = place_of(point) {
                    self.plugins[place][plugin][status as usize].observe(seconds(span));
                }
            }
            Fact::Refused { plugins, profile } => {
                self.refused(profile, plugins, |it| {
                    it.fetch_add(1, Relaxed);
                });
            }
            Fact::RefusedNoMore { plugins, profile } => {
                // Nothing where the scheduler has ended meanwhile.
                let less = |it: u64| it.checked_sub(1);
                self.refused(profile, plugins, |it| {
                    let _ = it.fetch_update(Relaxed, Relaxed, less);
                });
            }
            Fact::Searched(span) => self.searches.observe(seconds(span)),
            Fact::Tried { result, profile, span } => {
                if let Some(of) = self.of(profile) {
                    of.tries[result as usize].observe(seconds(span));
                }
            }
            Fact::Scheduled { n_tries, waited } => {
                let number = usize::try_from(n_tries).unwrap_or(TRIES_MAX).clamp(1, TRIES_MAX);
                self.pods[number - 1].observe(waited.as_secs_f64());
                self.pod_tries.observe(f64::from(n_tries));
            }
            Fact::Queued { queue, event } => {
                self.incoming[queue as usize][event.index()].fetch_add(1, Relaxed);
            }
            Fact::SoughtVictims => {
                self.n_preemptions.fetch_add(1, Relaxed);
            }
            Fact::ChoseVictims { n_pods } => {
                self.victims.observe(f64::from(u32::try_from(n_pods).unwrap_or(u32::MAX)));
            }
        }
    }
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: zeros(bounds.len() + 1), sum: AtomicU64::new(0) }
    }

    fn observe(&self, value: f64) {
        let bucket = self.bounds.iter().take_while(|it| **it < value).count();
        self.counts[bucket].fetch_add(1, Relaxed);
        let with = |sum: u64| Some((f64::from_bits(sum) + value).to_bits());
        // It is never refused.
        let _ = self.sum.fetch_update(Relaxed, Relaxed, with);
    }

    fn n(&self) -> u64 {
        self.counts.iter().map(|it| it.load(Relaxed)).sum()
    }

    fn counted(&self) -> CountedDurations {
        let mut n = 0;
        let mut counts = self.counts.iter().map(|it| {
            n += it.load(Relaxed);
            n
        });
        let up_to = self.bounds.iter().copied().zip(&mut counts).collect();
        let n = counts.next().unwrap_or_default();
        CountedDurations { up_to, n, seconds: f64::from_bits(self.sum.load(Relaxed)) }
    }
}

fn place_of(point: ExtensionPoint) -> Option<usize> {
    POINTS_OF_PLUGINS.iter().position(|it| *it == point)
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|it| (*it).to_owned()).collect()
}

fn zeros(n: usize) -> Box<[AtomicU64]> {
    std::iter::repeat_with(AtomicU64::default).take(n).collect()
}

fn seconds(span: Span) -> f64 {
    Duration::from_nanos(span.to.0.saturating_sub(span.from.0)).as_secs_f64()
}

/// What a counter or a gauge stands at.
#[expect(clippy::cast_precision_loss, reason = "a metric is a float; nothing here is counted beyond 2^53")]
fn stands_at(number: u64) -> CountedDurations {
    CountedDurations { up_to: Vec::new(), n: number, seconds: number as f64 }
}

#[cfg(test)]
mod tests;
