//! What is remembered of an autoscaler, and how that holds back what its metrics ask for now: windows of stabilization, and
//! rates of change (KEP-853).
//!
//! ```text
//! asked for --> within the window --> within the rate --> within the bounds --> the new count
//! ```

use corten_meta::Time;
use serde::{Deserialize, Serialize};

use super::{
    replicas::{REPLICAS_MAX, float, up, whole},
    spec::{Behavior, ScalingRules, Spec, Status},
};

/// `--horizontal-pod-autoscaler-downscale-stabilization`.
const DOWNSCALE_STABILIZATION_SECONDS: i64 = 300;
/// Of what is remembered, the newest: more than an hour's looks bring.
const KEPT_MAX: usize = 1000;
/// Without a behavior a count is at most doubled, or raised to this (`calculateScaleUpLimit`).
const SCALE_UP_LIMIT_MINIMUM: i64 = 4;

/// As the runner keeps it: for an hour at most, and as long as the process lives, as upstream does.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Memory {
    /// Of the Pods that it scales, as its target said last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) selector: String,
    recommendations: Vec<Moment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scale_ups: Vec<Moment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scale_downs: Vec<Moment>,
    /// The change of the count that is under way: told of where it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<Attempt>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Why the count is changed.
    pub(super) reason: String,
    /// Of the autoscaler, where its target is left as it is.
    pub(super) status: Status,
}

/// A number of replicas, and when: in milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Moment(i64, i64);

impl Moment {
    fn is_after(self, cutoff: i64) -> bool {
        self.1 > cutoff
    }
}

/// What a window or a rate made of a count, and why.
pub(super) struct Held {
    pub(super) replicas: i64,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

fn cutoff(now: Time, seconds: i64) -> i64 {
    now.unix_millis().saturating_sub(seconds.saturating_mul(1000))
}

fn keep(moments: &mut Vec<Moment>, moment: Moment) {
    moments.push(moment);
    let n_old = moments.len().saturating_sub(KEPT_MAX);
    moments.drain(..n_old);
}

impl Memory {
    /// Who looks for the first time holds on to what there is (`recordInitialRecommendation`).
    pub(super) fn begin(&mut self, replicas: i64, now: Time) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Moment(replicas, now.unix_millis()));
        }
    }

    /// `stabilizeRecommendation`
    pub(super) fn stabilized(&mut self, desired: i64, now: Time) -> i64 {
        let cutoff = cutoff(now, DOWNSCALE_STABILIZATION_SECONDS);
        self.recommendations.retain(|it| it.1 >= cutoff);
        let most = self.recommendations.iter().map(|it| it.0).max().unwrap_or(desired).max(desired);
        keep(&mut self.recommendations, Moment(desired, now.unix_millis()));
        most
    }

    /// `stabilizeRecommendationWithBehaviors`
    pub(super) fn stabilized_by(&mut self, behavior: &Behavior, current: i64, desired: i64, now: Time) -> Held {
        let up = cutoff(now, behavior.scale_up.stabilization_window_seconds.unwrap_or_default());
        let window = behavior.scale_down.stabilization_window_seconds;
        let down = cutoff(now, window.unwrap_or(DOWNSCALE_STABILIZATION_SECONDS));
        let since = |cutoff| self.recommendations.iter().filter(move |it| it.is_after(cutoff)).map(|it| it.0);
        let least = since(up).fold(desired, i64::min);
        let most = since(down).fold(desired, i64::max);
        let replicas = current.max(least).min(most);
        self.recommendations.retain(|it| it.1 >= up.min(down));
        keep(&mut self.recommendations, Moment(desired, now.unix_millis()));
        let (reason, message) = if desired >= current {
            (
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent recommendation",
            )
        } else {
            (
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent recommendation",
            )
        };
        Held { replicas, reason, message }
    }

    /// `storeScaleEvent`
    pub(super) fn scaled(&mut self, behavior: Option<&Behavior>, from: i64, to: i64, now: Time) {
        let Some(behavior) = behavior else { return };
        let (moments, rules) = if to > from {
            (&mut self.scale_ups, &behavior.scale_up)
        } else {
            (&mut self.scale_downs, &behavior.scale_down)
        };
        let longest = rules.policies.iter().map(|it| it.period_seconds).max().unwrap_or_default();
        let cutoff = cutoff(now, longest);
        moments.retain(|it| it.1 >= cutoff);
        keep(moments, Moment((to - from).abs(), now.unix_millis()));
    }

    /// The count at the beginning of the last `seconds`.
    fn at_start_of(&self, seconds: i64, current: i64, now: Time) -> i64 {
        let cutoff = cutoff(now, seconds);
        let sum = |moments: &[Moment]| -> i64 { moments.iter().filter(|it| it.is_after(cutoff)).map(|it| it.0).sum() };
        current - sum(&self.scale_ups) + sum(&self.scale_downs)
    }

    /// `calculateScaleUpLimitWithScalingRules`
    fn most(&self, rules: &ScalingRules, current: i64, now: Time) -> i64 {
        let limits = rules.policies.iter().map(|policy| {
            let start = self.at_start_of(policy.period_seconds, current, now);
            if policy.r#type == "Percent" {
                up(float(start) * (1.0 + float(policy.value) / 100.0))
            } else {
                start.saturating_add(policy.value)
            }
        });
        let limit = match &*rules.select_policy {
            "Disabled" => return current,
            "Min" => limits.min(),
            _ => limits.max(),
        };
        limit.unwrap_or(REPLICAS_MAX).clamp(current, REPLICAS_MAX.max(current))
    }

    /// `calculateScaleDownLimitWithBehaviors`
    fn least(&self, rules: &ScalingRules, current: i64, now: Time) -> i64 {
        let limits = rules.policies.iter().map(|policy| {
            let start = self.at_start_of(policy.period_seconds, current, now);
            if policy.r#type == "Percent" {
                whole(float(start) * (1.0 - float(policy.value) / 100.0))
            } else {
                start.saturating_sub(policy.value)
            }
        });
        let limit = match &*rules.select_policy {
            "Disabled" => return current,
            // The smallest change leaves the most.
            "Min" => limits.max(),
            _ => limits.min(),
        };
        limit.unwrap_or(0).min(current)
    }

    /// `convertDesiredReplicasWithBehaviorRate`
    pub(super) fn limited_by(&self, behavior: &Behavior, spec: &Spec, current: i64, desired: i64, now: Time) -> Held {
        if desired > current {
            let limit = self.most(&behavior.scale_up, current, now);
            let (most, reason) = if spec.max_replicas > limit {
                (limit, "ScaleUpLimit")
            } else {
                (spec.max_replicas, "TooManyReplicas")
            };
            if desired > most {
                return limited(most, reason);
            }
        } else if desired < current {
            let limit = self.least(&behavior.scale_down, current, now);
            let (least, reason) =
                if spec.min() < limit { (limit, "ScaleDownLimit") } else { (spec.min(), "TooFewReplicas") };
            if desired < least {
                return limited(least, reason);
            }
        }
        limited(desired, "DesiredWithinRange")
    }
}

/// `convertDesiredReplicasWithRules`
pub(super) fn limited_without_behavior(spec: &Spec, current: i64, desired: i64) -> Held {
    let limit = current.saturating_mul(2).max(SCALE_UP_LIMIT_MINIMUM);
    let (most, reason) =
        if spec.max_replicas > limit { (limit, "ScaleUpLimit") } else { (spec.max_replicas, "TooManyReplicas") };
    if desired < spec.min() {
        return limited(spec.min(), "TooFewReplicas");
    }
    if desired > most {
        return limited(most, reason);
    }
    limited(desired, "DesiredWithinRange")
}

fn limited(replicas: i64, reason: &'static str) -> Held {
    let message = match reason {
        "ScaleUpLimit" => "the desired replica count is increasing faster than the maximum scale rate",
        "ScaleDownLimit" => "the desired replica count is decreasing faster than the maximum scale rate",
        "TooManyReplicas" => "the desired replica count is more than the maximum replica count",
        "TooFewReplicas" => "the desired replica count is less than the minimum replica count",
        _ => "the desired count is within the acceptable range",
    };
    Held { replicas, reason, message }
}
