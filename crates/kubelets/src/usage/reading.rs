//! One answer of a kubelet, and what two of them say together.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::Time;

use super::{Pair, SHORTEST, exposition};

/// What a kubelet measured at one moment.
#[derive(Debug)]
pub struct Reading {
    /// By this server's clock.
    pub taken: Time,
    node: Point,
    /// By namespace and name; their containers by name.
    pods: BTreeMap<(String, String), BTreeMap<String, Point>>,
}

/// What one container, or a node, had used at one moment, by the node's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Point {
    cpu_nanos: Option<(i64, i64)>,
    memory_bytes: Option<i64>,
    started_unix_millis: Option<i64>,
}

/// What was used over a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub nanocores: i64,
    pub memory_bytes: i64,
}

/// The while: its end, and how long it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub end: Time,
    pub length: Duration,
}

impl Reading {
    pub(crate) fn parse(text: &str, taken: Time) -> Self {
        let mut reading = Self { taken, node: Point::default(), pods: BTreeMap::new() };
        for sample in exposition::samples(text) {
            let Some((owner, quantity)) = sample.name.split_once('_') else { continue };
            let point = match owner {
                "node" => &mut reading.node,
                "container" => {
                    let pod = (sample.label("namespace").to_owned(), sample.label("pod").to_owned());
                    reading.pods.entry(pod).or_default().entry(sample.label("container").to_owned()).or_default()
                }
                _ => continue,
            };
            match quantity {
                "cpu_usage_seconds_total" => {
                    let at = sample.unix_millis.unwrap_or_else(|| taken.unix_millis());
                    point.cpu_nanos = Some((whole(sample.value * 1e9), at));
                }
                "memory_working_set_bytes" => point.memory_bytes = Some(whole(sample.value)),
                "start_time_seconds" => point.started_unix_millis = Some(whole(sample.value * 1e3)),
                _ => {}
            }
        }
        reading
    }
}

#[expect(clippy::cast_possible_truncation, reason = "out of range becomes the end of the range")]
fn whole(number: f64) -> i64 {
    number as i64
}

impl Pair {
    /// What the node uses; `None` while it is not known.
    pub fn node(&self) -> Option<(Use, Window)> {
        between(self.older.as_ref().map(|it| it.node), self.newer.as_ref()?.node)
    }

    /// What each container of a Pod uses. As in metrics-server: of all, or of none.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<(BTreeMap<&str, Use>, Window)> {
        let key = (namespace.to_owned(), name.to_owned());
        let newer = self.newer.as_ref()?.pods.get(&key)?;
        let older = self.older.as_ref().and_then(|it| it.pods.get(&key));
        let mut window: Option<Window> = None;
        let mut uses = BTreeMap::new();
        for (container, point) in newer {
            // One that has just ended is told with its start alone.
            if point.cpu_nanos.is_none() && point.memory_bytes.is_none() {
                continue;
            }
            let before = older.and_then(|it| it.get(container)).copied();
            let (used, over) = between(before, *point)?;
            // The earliest end and the longest while hold for all.
            let known = window.get_or_insert(over);
            *known = Window { end: known.end.min(over.end), length: known.length.max(over.length) };
            uses.insert(&**container, used);
        }
        Some((uses, window?))
    }
}

/// As in metrics-server: a container that is new since the older reading had used nothing when it began.
fn between(older: Option<Point>, newer: Point) -> Option<(Use, Window)> {
    let ((used, end), memory_bytes) = (newer.cpu_nanos?, newer.memory_bytes?);
    let before = older.and_then(|it| it.cpu_nanos);
    let is_restarted = |at: i64| newer.started_unix_millis.is_some_and(|it| it > at);
    let (used_before, begin) = match before {
        Some((used_before, at)) if !is_restarted(at) && used_before <= used => (used_before, at),
        _ => (0, newer.started_unix_millis?),
    };
    let millis =
        u64::try_from(end.saturating_sub(begin)).ok().filter(|it| u128::from(*it) * 10 >= SHORTEST.as_millis())?;
    let nanocores = i128::from(used.saturating_sub(used_before)) * 1000 / i128::from(millis);
    let used = Use { nanocores: i64::try_from(nanocores).unwrap_or(i64::MAX), memory_bytes };
    Some((used, Window { end: Time::from_unix_millis(end), length: Duration::from_millis(millis) }))
}
