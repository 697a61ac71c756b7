//! What objects cost a namespace and whether a ResourceQuota lets them in: shared by admission, which charges, and by the
//! quota loop, which counts.
//!
//! `status.used` is never counted by hand elsewhere: [`usage`] says what an object costs, [`used`] sums it up for a quota,
//! [`charge`] adds one write.

mod amounts;
mod charge;
mod pod_amounts;
mod scopes;
#[cfg(test)]
mod tests;
mod usage;

pub use amounts::{Amounts, amounts, written};
pub use charge::{charge, counts};
use corten_meta::{Quantity, Resource, Time};
pub use pod_amounts::{Side, of_pod, of_spec};
pub use scopes::in_scope;
use serde_json::Value;
pub use usage::{counted_by, is_counted_on_update, usage};

/// What `status.used` must say: zero for every name in `spec.hard` that something is counted by, and what the objects of
/// the quota's namespace (of the resources that [`counted_by`] gives for these names) cost.
pub fn used<'a>(spec: &Value, objects: impl IntoIterator<Item = (&'a Resource, &'a Value)>, now: Time) -> Amounts {
    let hard = amounts(&spec["hard"]);
    let mut used: Amounts =
        hard.into_keys().filter(|it| counted_by(it).is_some()).map(|it| (it, Quantity::ZERO)).collect();
    for (resource, object) in objects {
        if !used.keys().any(|it| counts(it, resource)) || !in_scope(spec, resource, object) {
            continue;
        }
        for (name, amount) in usage(resource, object, now) {
            if let Some(sum) = used.get_mut(&name) {
                *sum = sum.plus(amount);
            }
        }
    }
    used
}
