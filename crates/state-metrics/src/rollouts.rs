//! How many replicas a rollout may have beyond those that are wanted, or below them.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum IntOrPercent {
    Int(i32),
    Percent(String),
}

/// Of so many replicas; `None` where the text is no percentage.
pub(crate) fn rounded(of: &IntOrPercent, replicas: i32, round: fn(f64) -> f64) -> Option<f64> {
    match of {
        IntOrPercent::Int(number) => Some(f64::from(*number)),
        IntOrPercent::Percent(text) => {
            let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
            Some(round(percent * f64::from(replicas) / 100.0))
        }
    }
}
