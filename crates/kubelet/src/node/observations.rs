//! What the node sees of Pods' processes and no API object says, for `corten why`: the ports at which they listen, how much their
//! CPU limits hold them back, which of their name servers do not answer.

use std::collections::{BTreeMap, VecDeque};

use corten_meta::{Key, Time};
use corten_reconcile::{Observation, Throttled};

/// CPU limits are looked at over so many seconds at least.
const SPAN_SECONDS: i64 = 30;
/// So many readings are kept of a container, whatever the clock does.
const READINGS_MAX: usize = 8;
/// A limit holds a container back where it bites in so many of a hundred periods: the threshold of the alert
/// `CPUThrottlingHigh` of kubernetes-mixin.
const THROTTLED_PERCENT: u64 = 25;
/// Fewer periods say nothing: a container is run in periods of 100 ms, and only those count in which it wanted to run.
const PERIODS_MIN: u64 = 50;

/// One reading of a Pod that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodReading {
    pub key: Key,
    /// TCP ports at which it answers others. `None` where it has the node's network, or nothing could be read.
    pub listening: Option<Vec<u16>>,
    pub containers: Vec<CpuReading>,
    /// Name servers of its resolv.conf that were asked and did not answer.
    pub silent_name_servers: Vec<String>,
}

/// The counters of one container's CPU limit, since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuReading {
    pub container: String,
    /// Of the runtime: another run of the container is another one.
    pub id: String,
    /// Periods in which it ran, and those in which it used up its limit.
    pub periods: u64,
    pub throttled: u64,
    /// Thousandths of a CPU; `None` where it has no limit.
    pub limit_millis: Option<u64>,
}

#[derive(Clone, Copy)]
struct Periods {
    at: Time,
    all: u64,
    throttled: u64,
}

/// What is known between two readings.
#[derive(Default)]
pub struct Observations {
    /// The last readings of each container, the oldest first.
    periods: BTreeMap<String, VecDeque<Periods>>,
    told: BTreeMap<Key, Observation>,
}

impl Observations {
    /// What is new: `None` for a Pod that is no longer seen.
    pub fn step(&mut self, readings: &[PodReading], now: Time) -> Vec<(Key, Option<Observation>)> {
        let mut periods = BTreeMap::new();
        let mut told = BTreeMap::new();
        let mut news = Vec::new();
        for reading in readings {
            let throttled = reading.containers.iter().filter_map(|it| {
                let mut readings = self.periods.remove(&it.id).unwrap_or_default();
                let throttled = throttled(&mut readings, it, now);
                periods.insert(it.id.clone(), readings);
                throttled
            });
            let observation = Observation {
                throttled: throttled.collect(),
                listening: reading.listening.clone(),
                silent_name_servers: reading.silent_name_servers.clone(),
            };
            if self.told.remove(&reading.key).as_ref() != Some(&observation) {
                news.push((reading.key.clone(), Some(observation.clone())));
            }
            told.insert(reading.key.clone(), observation);
        }
        news.extend(std::mem::replace(&mut self.told, told).into_keys().map(|key| (key, None)));
        self.periods = periods;
        news
    }
}

/// What its limit did to the container since the oldest reading that is kept.
fn throttled(readings: &mut VecDeque<Periods>, reading: &CpuReading, now: Time) -> Option<Throttled> {
    let latest = Periods { at: now, all: reading.periods, throttled: reading.throttled };
    readings.push_back(latest);
    // The oldest goes where the one after it is old enough, too.
    while readings.len() > READINGS_MAX || readings.get(1).is_some_and(|it| it.at.after_seconds(SPAN_SECONDS) <= now) {
        readings.pop_front();
    }
    let oldest = readings.front().filter(|it| it.at.after_seconds(SPAN_SECONDS) <= now)?;
    let periods = latest.all.checked_sub(oldest.all).filter(|it| *it >= PERIODS_MIN)?;
    let throttled = latest.throttled.saturating_sub(oldest.throttled);
    let percent = (throttled.saturating_mul(100) / periods).min(100);
    let limit_millis = reading.limit_millis?;
    // In whole tens, so that it is not said anew at every reading.
    let said = Throttled { container: reading.container.clone(), percent: percent / 10 * 10, limit_millis };
    (percent >= THROTTLED_PERCENT).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(periods: u64, throttled: u64) -> PodReading {
        let main =
            CpuReading { container: "main".into(), id: "abc".into(), periods, throttled, limit_millis: Some(100) };
        PodReading { key: Key::new("shop", "web"), containers: vec![main], ..PodReading::default() }
    }

    fn at(seconds: i64) -> Time {
        Time::from_unix_seconds(1_000_000 + seconds)
    }

    fn percents(news: &[(Key, Option<Observation>)]) -> Vec<Option<Vec<u64>>> {
        let of = |it: &Observation| it.throttled.iter().map(|it| it.percent).collect();
        news.iter().map(|(_, it)| it.as_ref().map(of)).collect()
    }

    #[test]
    fn a_limit_that_bites_is_told_once_and_until_it_does_no_more() {
        let mut observations = Observations::default();
        // What was before the first reading is not known to be of late.
        assert_eq!(percents(&observations.step(&[reading(10_000, 9_000)], at(0))), [Some(vec![])]);
        assert!(observations.step(&[reading(10_150, 9_140)], at(15)).is_empty(), "too short to tell");
        assert_eq!(percents(&observations.step(&[reading(10_450, 9_420)], at(30))), [Some(vec![90])]);
        assert!(observations.step(&[reading(10_450, 9_420)], at(45)).is_empty());
        assert!(observations.step(&[reading(10_600, 9_560)], at(60)).is_empty(), "it goes on");
        let mut last = Vec::new();
        for (periods, seconds) in (10_750..).step_by(150).zip((75..150).step_by(15)) {
            last.extend(percents(&observations.step(&[reading(periods, 9_560)], at(seconds))));
        }
        assert_eq!(last.last(), Some(&Some(vec![])), "it ended: {last:?}");
        assert_eq!(percents(&observations.step(&[], at(200))), [None]);
    }

    #[test]
    fn another_run_of_a_container_begins_anew_and_a_clock_that_jumps_does_no_harm() {
        let mut observations = Observations::default();
        observations.step(&[reading(10_000, 9_000)], at(0));
        assert!(observations.step(&[reading(20, 10)], at(60)).is_empty(), "the counters went back");
        for second in 0..100 {
            observations.step(&[reading(1_000, 0)], at(-second));
        }
        assert!(observations.periods["abc"].len() <= READINGS_MAX);
        let mut idle = reading(1_010, 10);
        idle.containers[0].limit_millis = None;
        assert!(observations.step(&[idle], at(1_000)).is_empty());
    }
}
