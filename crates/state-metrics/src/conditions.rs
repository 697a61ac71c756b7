//! Conditions, which each kind has in its status.

use corten_meta::Time;
use serde::Deserialize;

use crate::exposition::Samples;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) of: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) last_transition_time: Option<Time>,
}

impl Condition {
    pub(crate) fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// As a condition's status is told: one sample for each.
pub(crate) const STATUSES: [&str; 3] = ["true", "false", "unknown"];

/// The samples of every condition, for the labels `condition` and `status`.
pub(crate) fn of_each(conditions: &[Condition], out: &mut Samples<'_>) {
    for condition in conditions {
        for status in STATUSES {
            out.add(&[&condition.of, status], holds(condition, status));
        }
    }
}

/// The samples of every condition, for the labels `reason`, `condition` and `status`.
pub(crate) fn of_each_with_reason(conditions: &[Condition], out: &mut Samples<'_>) {
    for condition in conditions {
        for status in STATUSES {
            out.add(&[&condition.reason, &condition.of, status], holds(condition, status));
        }
    }
}

/// The samples of one condition, for the label `condition`.
pub(crate) fn of_one(condition: &Condition, out: &mut Samples<'_>) {
    for status in STATUSES {
        out.add(&[status], holds(condition, status));
    }
}

fn holds(condition: &Condition, status: &str) -> f64 {
    f64::from(u8::from(condition.status.eq_ignore_ascii_case(status)))
}
