//! What holds of Pods that fight for room, at every commit.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

/// A gang whose Pods are one more than there are nodes, and no two fit one.
pub(crate) const HUGE: &str = "huge";

/// What no moment may break: nobody is evicted for nobody, and no part of a gang that is too large has a node.
#[derive(Default)]
pub(crate) struct Fights {
    /// Pods that have no node, with their priorities.
    waiting: BTreeMap<String, i64>,
    /// When a Pod of a priority last waited.
    waited: BTreeMap<i64, Instant>,
    pub(crate) n_evictions: u64,
}

impl Fights {
    pub(crate) fn gone(&mut self, key: &str) {
        if let Some(priority) = self.waiting.remove(key) {
            self.waited.insert(priority, Instant::now());
        }
    }

    /// A Pod was stored. Who sees it may be as far behind as this.
    pub(crate) fn stored(
        &mut self,
        key: &str,
        old: Option<&Value>,
        new: &Value,
        behind: Duration,
    ) -> Result<(), String> {
        let priority = new["spec"]["priority"].as_i64().unwrap_or(0);
        let node = new["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() && new["spec"]["schedulingGroup"]["podGroupName"] == HUGE {
            return Err(format!("{key} is on {node}, and not all of its gang can have nodes"));
        }
        if node.is_empty() && !is_over(new) {
            self.waiting.insert(key.to_owned(), priority);
        } else {
            self.gone(key);
        }
        let same = old.filter(|it| it["metadata"]["uid"] == new["metadata"]["uid"]);
        if !is_preempted(new) || same.is_some_and(is_preempted) {
            return Ok(());
        }
        self.n_evictions += 1;
        let now = Instant::now();
        let has_waited = self.waited.iter().any(|it| *it.0 > priority && now - *it.1 <= behind);
        let waits = self.waiting.values().any(|it| *it > priority);
        (waits || has_waited).then_some(()).ok_or_else(|| format!("{key} is evicted, and nobody more important waits"))
    }
}

fn is_preempted(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "DisruptionTarget" && it["reason"] == "PreemptionByScheduler")
}

/// Does the pod take no room any more?
pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}
