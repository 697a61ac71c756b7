//! The Pod Security Standards: which Pods a level allows, and how the labels of a namespace say which level counts.
//!
//! Checks are versioned by policy, not by server: a namespace may ask for the rules as they were in an older release.

mod baseline;
mod check;
mod policy;
mod restricted;
#[cfg(test)]
mod tests;

pub use check::Refusal;
use check::{Check, Pod};
pub use policy::{Level, LevelVersion, Policy, Version};
use serde_json::Value;

/// Everything in the Pod that the level forbids: baseline checks first, each half by name, as in the messages of
/// pod-security-admission.
pub fn refusals(level: LevelVersion, metadata: &Value, spec: &Value) -> Vec<Refusal> {
    let pod = Pod { metadata, spec, version: level.version };
    let applies = |it: &&Check| level.version.is_at_least(it.since);
    let restricted = || restricted::CHECKS.iter().filter(applies);
    let overridden = |check: &Check| restricted().any(|it| it.replaces == Some(check.name));
    match level.level {
        Level::Privileged => Vec::new(),
        Level::Baseline => baseline::CHECKS.iter().filter(applies).filter_map(|it| (it.run)(&pod)).collect(),
        Level::Restricted => {
            let baseline = baseline::CHECKS.iter().filter(applies).filter(|it| !overridden(it));
            baseline.chain(restricted()).filter_map(|it| (it.run)(&pod)).collect()
        }
    }
}

/// All reasons with what exactly is wrong: `privileged (container "c" must not set ...), hostPort (...)`.
pub fn detail(refusals: &[Refusal]) -> String {
    let written = refusals.iter().map(|it| match &*it.detail {
        "" => it.reason.to_owned(),
        detail => format!("{} ({detail})", it.reason),
    });
    written.collect::<Vec<_>>().join(", ")
}

/// The reasons alone.
pub fn reason(refusals: &[Refusal]) -> String {
    refusals.iter().map(|it| it.reason).collect::<Vec<_>>().join(", ")
}
