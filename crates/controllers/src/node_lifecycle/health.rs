//! When a node was last heard of, and what is said of one that has been silent for too long.

use std::time::Duration;

use corten_meta::Time;
use serde_json::{Value, json};

use crate::projections::{Lease, Node};

/// Upstream's `--node-monitor-grace-period` and `--node-startup-grace-period`.
const GRACE: Duration = Duration::from_secs(50);
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// What a kubelet reports, and nobody else can know.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

pub(super) struct Health {
    pub(super) heard: Time,
    /// When it counts as silent.
    pub(super) deadline: Time,
}

impl Health {
    /// A node is heard by its lease and its status. Nobody heard it before `since`, so nothing is concluded from that. What is
    /// of a time to come was written before the clock was set back, and says nothing.
    pub(super) fn of(node: &Node, lease: Option<&Lease>, since: Option<Time>, now: Time) -> Self {
        let renewed = lease.and_then(|it| it.spec.renew_time).map(|it| Time(it.0));
        let ready = node.condition("Ready");
        let (reported, grace) = match ready {
            Some(ready) => (ready.last_heartbeat_time, GRACE),
            None => (node.metadata.creation_timestamp, STARTUP_GRACE),
        };
        let is_past = |it: &Time| *it <= now.after(GRACE);
        let heard = [renewed, reported, since].into_iter().flatten().filter(is_past).max();
        let heard = heard.unwrap_or(Time::from_unix_seconds(0));
        Self { heard, deadline: heard.after(grace) }
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
