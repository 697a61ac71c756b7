//! Which node's pods may be made to leave now: slowly within a zone, more slowly or not at all where much of it is down.
//!
//! The taints themselves say when the last node of a zone was given up: nothing else has to be remembered.

use std::{cmp::Ordering, collections::BTreeMap, time::Duration};

use corten_meta::Time;
use corten_reconcile::{Actor, View, Wait};

use super::taints::{NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, of_ready};
use crate::projections::{Node, Taint};

/// Upstream's `--node-eviction-rate` and `--secondary-node-eviction-rate`: 0.1 and 0.01 nodes a second.
const PERIOD: Duration = Duration::from_secs(10);
const SECONDARY_PERIOD: Duration = Duration::from_secs(100);
/// `--large-cluster-size-threshold`: in smaller zones, nothing is evicted while much of them is down.
const LARGE: usize = 50;
/// `--unhealthy-zone-threshold`, in percent, and never for fewer nodes than this.
const UNHEALTHY_PERCENT: usize = 55;
const UNHEALTHY_MIN: usize = 3;
/// Zones change; whoever waits looks again this often (`NodeEvictionPeriod`).
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) struct Decision {
    /// The key of the `NoExecute` taint the node should have.
    pub(super) no_execute: Option<&'static str>,
    /// When to decide again, and for what that waits.
    pub(super) later: Option<(Time, Option<Wait>)>,
}

#[derive(Default)]
struct Zone {
    n_ready: usize,
    n_not_ready: usize,
}

#[derive(PartialEq, Eq)]
enum State {
    Normal,
    Partial,
    Full,
}

impl Zone {
    fn state(&self) -> State {
        let n = self.n_ready + self.n_not_ready;
        if self.n_ready == 0 && self.n_not_ready > 0 {
            State::Full
        } else if self.n_not_ready >= UNHEALTHY_MIN && self.n_not_ready * 100 >= n * UNHEALTHY_PERCENT {
            State::Partial
        } else {
            State::Normal
        }
    }

    /// The time between two nodes' evictions; nothing where there are to be none.
    fn period(&self) -> Option<Duration> {
        match self.state() {
            State::Normal | State::Full => Some(PERIOD),
            State::Partial if self.n_ready + self.n_not_ready > LARGE => Some(SECONDARY_PERIOD),
            State::Partial => None,
        }
    }
}

pub(super) fn decide(view: &View, node: &Node, now: Time) -> Decision {
    let Some(key) = node.ready().filter(|it| *it != "True").map(of_ready) else {
        return Decision { no_execute: None, later: None };
    };
    let zones = zones(view);
    let later = |at: Time, wait| Some((at.max(now).min(now.after(LOOK_AGAIN)), wait));
    if zones.values().all(|it| it.state() == State::Full) {
        let message = "no node is ready: its pods are left where they are";
        let wait = Wait::new("AllNodesDisrupted", message, Actor::Operator);
        return Decision { no_execute: None, later: later(now.after(LOOK_AGAIN), Some(wait)) };
    }
    if no_execute(node).is_some() {
        return Decision { no_execute: Some(key), later: later(now.after(LOOK_AGAIN), None) };
    }
    let Some(period) = zones.get(&node.zone()).and_then(Zone::period) else {
        let wait = Wait::new(
            "ZoneDisrupted",
            "most of its zone is not ready: its pods are left where they are",
            Actor::Operator,
        );
        return Decision { no_execute: None, later: later(now.after(LOOK_AGAIN), Some(wait)) };
    };
    // One that is deleted is given no taint: nobody waits for it, whatever holds it.
    let counts = |it: &&Node| it.zone() == node.zone() && !it.metadata.is_deleting();
    let neighbours: Vec<&Node> = view.list::<Node>().filter(counts).collect();
    let last = neighbours.iter().filter_map(|it| no_execute(it)?.time_added).max();
    let n_before = neighbours.iter().filter(|it| is_waiting(it) && order(it, node) == Ordering::Less).count();
    let turns = u32::try_from(n_before).unwrap_or(u32::MAX).saturating_add(u32::from(last.is_some()));
    let at = last.unwrap_or(now).after(period.saturating_mul(turns));
    if n_before == 0 && at <= now {
        return Decision { no_execute: Some(key), later: None };
    }
    let message = match n_before {
        0 => format!("another node of its zone was given up less than {} s ago", period.as_secs()),
        n => format!("{n} nodes of its zone have their pods evicted before it"),
    };
    let wait = Wait::new("NodeEvictionRateLimited", message, Actor::Cluster);
    Decision { no_execute: None, later: later(at, Some(wait)) }
}

/// As in `GetZoneKey`: one text of region and zone.
pub(super) fn key(node: &Node) -> String {
    match node.zone() {
        ("", "") => String::new(),
        (region, zone) => format!("{region}:\0:{zone}"),
    }
}

fn zones(view: &View) -> BTreeMap<(&str, &str), Zone> {
    let mut zones: BTreeMap<(&str, &str), Zone> = BTreeMap::new();
    for node in view.list::<Node>() {
        let Some(ready) = node.ready() else { continue };
        let zone = zones.entry(node.zone()).or_default();
        if ready == "True" {
            zone.n_ready += 1;
        } else {
            zone.n_not_ready += 1;
        }
    }
    zones
}

pub(super) fn no_execute(node: &Node) -> Option<&Taint> {
    node.taint(NOT_READY, NO_EXECUTE).or_else(|| node.taint(UNREACHABLE, NO_EXECUTE))
}

fn is_waiting(node: &Node) -> bool {
    node.ready().is_some_and(|it| it != "True") && no_execute(node).is_none()
}

/// Who went first goes first, by when that was first seen here: a node writes its conditions itself, and could say that it went before
/// all others again and again.
fn order(a: &Node, b: &Node) -> Ordering {
    let seen =
        |it: &Node| [NOT_READY, UNREACHABLE].iter().filter_map(|key| it.taint(key, NO_SCHEDULE)?.time_added).min();
    let rank = |it: &Node| (seen(it).is_none(), seen(it));
    rank(a).cmp(&rank(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
}
