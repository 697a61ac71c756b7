//! When a node was last heard of, and what is said of one that has been silent for too long.

use std::time::Duration;

use corten_meta::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::projections::{Lease, Node};

/// Upstream's `--node-monitor-grace-period` and `--node-startup-grace-period`.
const GRACE: Duration = Duration::from_secs(50);
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// What a kubelet reports, and nobody else can know.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Two renewals of the Lease are missing.
const LATE: Duration = Duration::from_secs(25);
/// From here on clocks that are apart are told of. A renewal may come a little late.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// What is remembered of a node. As in upstream's `tryUpdateNodeHealth` it is heard when it says something new, whatever its own
/// clock says of when that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Heard {
    pub(super) uid: String,
    /// What it said last, by its clock.
    renewed: Option<Time>,
    reported: Option<Time>,
    /// When that came, by the clock of this process.
    at: Time,
    /// How far ahead its clock was then, in seconds.
    ahead: i64,
}

impl Heard {
    /// Nobody heard it before this process looked, `since` when: nothing is concluded from that.
    pub(super) fn of(
        node: &Node,
        lease: Option<&Lease>,
        before: Option<&Self>,
        since: Option<Time>,
        now: Time,
    ) -> Self {
        let renewed = lease.and_then(|it| it.spec.renew_time).map(|it| Time(it.0).whole_seconds());
        // That it is silent was written by this controller.
        let ready = node.condition("Ready").filter(|it| it.status != "Unknown");
        let reported = ready.and_then(|it| it.last_heartbeat_time);
        let uid = node.metadata.uid.to_string();
        let Some(before) = before.filter(|it| it.uid == uid) else {
            let at = since.map_or_else(|| last_said(node, renewed, now), |_| now.whole_seconds());
            return Self { uid, renewed, reported, at, ahead: 0 };
        };
        let is_news = |new: Option<Time>, old: Option<Time>| new.filter(|it| Some(*it) != old);
        let news = is_news(renewed, before.renewed);
        let is_heard = news.is_some() || is_news(reported, before.reported).is_some();
        // The clock may have been set back since.
        let at = if is_heard { now } else { before.at.min(now) };
        let ahead = news.map_or(before.ahead, |it| seconds_ahead(it, now));
        Self { uid, renewed, reported, at: at.whole_seconds(), ahead }
    }

    /// What is wrong where the node has a clock of another time.
    pub(super) fn clocks_apart(&self) -> Option<String> {
        let apart = self.ahead.unsigned_abs();
        (apart >= CLOCKS_APART.as_secs()).then(|| {
            let side = if self.ahead > 0 { "ahead of" } else { "behind" };
            format!("its clock is {apart} s {side} that of the server: certificates and tokens are not good by both")
        })
    }
}

/// By its lease and its status.
fn last_said(node: &Node, renewed: Option<Time>, now: Time) -> Time {
    let status = node.condition("Ready").map_or(node.metadata.creation_timestamp, |it| it.last_heartbeat_time);
    let past = [renewed, status].into_iter().flatten().filter(|it| *it <= now);
    past.max().unwrap_or(Time::from_unix_seconds(0))
}

fn seconds_ahead(time: Time, now: Time) -> i64 {
    let seconds = |it: Duration| i64::try_from(it.as_secs()).unwrap_or(i64::MAX);
    if time > now { seconds(time.since(now)) } else { -seconds(now.since(time)) }
}

pub(super) struct Health {
    pub(super) heard: Time,
    /// When it is said that it should have been heard of.
    pub(super) late: Time,
    /// When it counts as silent.
    pub(super) deadline: Time,
}

impl Health {
    pub(super) fn of(node: &Node, heard: &Heard) -> Self {
        let grace = if node.condition("Ready").is_some() { GRACE } else { STARTUP_GRACE };
        let deadline = heard.at.after(grace);
        // One without a Lease has promised nothing.
        let late = heard.renewed.map_or(deadline, |_| heard.at.after(LATE));
        Self { heard: heard.at, late, deadline }
    }
}

/// The conditions of a silent node that do not say so yet.
pub(super) fn silenced(node: &Node, now: Time) -> Vec<Value> {
    let condition = |r#type: &&str| match node.condition(r#type) {
        None => Some(json!({
            "type": r#type,
            "status": "Unknown",
            "lastHeartbeatTime": node.metadata.creation_timestamp,
            "lastTransitionTime": now,
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
        })),
        Some(it) if it.status == "Unknown" => None,
        Some(_) => Some(json!({
            "type": r#type,
            "status": "Unknown",
            "lastTransitionTime": now,
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        })),
    };
    REPORTED.iter().filter_map(condition).collect()
}
