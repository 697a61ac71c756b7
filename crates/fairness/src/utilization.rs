//! How long each priority level was how full, and where its virtual time stands: under kube-apiserver's names, for who looks.

use std::time::Duration;

use corten_flowcontrol::DispatchTimes;
use corten_metrics::{
    MetricFamily,
    scraped::{self, Distribution},
};

use crate::{
    reads_and_writes::{Phase, ReadsAndWrites},
    timed_ratio::TimedRatio,
};

/// kube-apiserver's buckets of each.
const REQUESTS: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const SEATS: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const DEMAND: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

const LEVEL: &str = "priority_level";

/// What a level has to do, and what there is room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) waiting: u32,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) demand: u32,
    /// So many may wait.
    pub(crate) waiting_max: f64,
    /// Of the level; where it has none, a share of the server's.
    pub(crate) seats: f64,
}

/// Of one level.
pub(crate) struct Utilization {
    waiting: TimedRatio,
    executing: TimedRatio,
    seats: TimedRatio,
    demand: TimedRatio,
}

impl Default for Utilization {
    fn default() -> Self {
        let (waiting, executing) = (TimedRatio::new(REQUESTS), TimedRatio::new(REQUESTS));
        Self { waiting, executing, seats: TimedRatio::new(SEATS), demand: TimedRatio::new(DEMAND) }
    }
}

impl Utilization {
    /// It had so much to do for so long.
    pub(crate) fn stood(&mut self, load: &Load, time: Duration) {
        let of_seats = |it: u32| f64::from(it) / load.seats;
        self.waiting.stood(f64::from(load.waiting) / load.waiting_max, time);
        self.executing.stood(of_seats(load.executing), time);
        self.seats.stood(of_seats(load.seats_in_use), time);
        self.demand.stood(of_seats(load.demand), time);
    }

    pub(crate) fn counted(&self) -> CountedUtilization {
        CountedUtilization {
            waiting: self.waiting.counted(),
            executing: self.executing.counted(),
            seats: self.seats.counted(),
            demand: self.demand.counted(),
        }
    }
}

pub(crate) struct CountedUtilization {
    waiting: Distribution,
    executing: Distribution,
    seats: Distribution,
    demand: Distribution,
}

/// A level as it stands for who looks.
pub(crate) struct LevelMeasures {
    pub(crate) utilization: CountedUtilization,
    pub(crate) virtual_now: f64,
    pub(crate) last_dispatch: Option<DispatchTimes>,
}

pub(crate) fn families(levels: &[(&str, LevelMeasures)], requests: &ReadsAndWrites) -> Vec<MetricFamily> {
    let mut families = ratios(levels);
    families.extend(virtual_times(levels));
    let counted = requests.counted();
    families.extend(scraped::histogram(
        "apiserver_flowcontrol_read_vs_write_current_requests",
        "For how many nanoseconds which share of those that may were requests waiting or executing.",
        &["phase", "request_kind"],
        counted.iter().map(|(labels, it)| (&labels[..], it)),
    ));
    families
}

fn ratios(levels: &[(&str, LevelMeasures)]) -> Vec<MetricFamily> {
    let (waiting, executing) = (Phase::Waiting.as_str(), Phase::Executing.as_str());
    let mut by_phase = Vec::new();
    let mut seats = Vec::new();
    let mut demand = Vec::new();
    for (name, it) in levels {
        let of = &it.utilization;
        by_phase.extend([([executing, *name], &of.executing), ([waiting, *name], &of.waiting)]);
        seats.push(([executing, *name], &of.seats));
        demand.push(([*name], &of.demand));
    }
    let mut families = scraped::histogram(
        "apiserver_flowcontrol_priority_level_request_utilization",
        "For how many nanoseconds a priority level had how many requests waiting, of those its queues have room for, or executing, of its seats.",
        &["phase", LEVEL],
        by_phase.iter().map(|(labels, it)| (&labels[..], *it)),
    );
    families.extend(scraped::histogram(
        "apiserver_flowcontrol_priority_level_seat_utilization",
        "For how many nanoseconds which share of a priority level's seats was taken.",
        &["phase", LEVEL],
        seats.iter().map(|(labels, it)| (&labels[..], *it)),
    ));
    families.extend(scraped::histogram(
        "apiserver_flowcontrol_demand_seats",
        "For how many nanoseconds a priority level could have used how many times its seats.",
        &[LEVEL],
        demand.iter().map(|(labels, it)| (&labels[..], *it)),
    ));
    families
}

fn virtual_times(levels: &[(&str, LevelMeasures)]) -> Vec<MetricFamily> {
    let gauge = |name, help, of: &dyn Fn(&LevelMeasures) -> Option<f64>| {
        let samples: Vec<_> = levels.iter().filter_map(|(name, it)| Some(([*name], of(it)?))).collect();
        scraped::gauge(name, help, &[LEVEL], samples.iter().map(|(labels, it)| (&labels[..], *it)))
    };
    let bounds = |name, help, of: &dyn Fn(&DispatchTimes) -> (f64, f64)| {
        let mut samples = Vec::new();
        for (name, it) in levels {
            if let Some((low, high)) = it.last_dispatch.as_ref().map(of) {
                samples.extend([([*name, "min"], low), ([*name, "max"], high)]);
            }
        }
        scraped::gauge(name, help, &[LEVEL, "bound"], samples.iter().map(|(labels, it)| (&labels[..], *it)))
    };
    [
        gauge("apiserver_flowcontrol_current_r", "A priority level's virtual time, in seat-seconds.", &|it| {
            Some(it.virtual_now)
        }),
        gauge(
            "apiserver_flowcontrol_dispatch_r",
            "The virtual time at which a request of a queue began last, in seat-seconds.",
            &|it| Some(it.last_dispatch?.now),
        ),
        gauge(
            "apiserver_flowcontrol_latest_s",
            "When the request that began last was to begin by its queue's share, in virtual time.",
            &|it| Some(it.last_dispatch?.start),
        ),
        bounds(
            "apiserver_flowcontrol_next_s_bounds",
            "The earliest and the latest time at which the first request of a queue was to begin when one began last, in virtual time.",
            &|it| it.starts,
        ),
        bounds(
            "apiserver_flowcontrol_next_discounted_s_bounds",
            "As next_s_bounds, less the work that each queue had under way.",
            &|it| it.discounted,
        ),
    ]
    .concat()
}
