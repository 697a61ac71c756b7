//! What objects cost a namespace and whether a ResourceQuota lets them in: shared by admission, which charges, and by the
//! quota loop, which counts.
//!
//! `status.used` is never counted by hand elsewhere: [`usage`] says what an object costs, [`used`] sums it up for a quota,
//! [`charge`] adds one write.

mod amounts;
mod charge;
mod extended;
mod pod_amounts;
mod scopes;
#[cfg(test)]
mod tests;
mod usage;

pub use amounts::{Amounts, amounts, written};
pub use charge::charge;
use corten_meta::{Quantity, Resource, Time};
use extended::is_counted;
pub use extended::{DeviceClasses, Neighbours, counts};
pub use pod_amounts::{Side, of_pod, of_spec};
pub use scopes::in_scope;
use serde_json::Value;
use usage::counted_by;
pub use usage::{is_counted_on_update, usage};

/// What `status.used` must say: zero for every name in `spec.hard` that something is counted by, and what the objects of
/// the quota's namespace (of the resources that these names [`counts`]) cost.
pub fn used<'a>(
    spec: &Value,
    objects: impl IntoIterator<Item = (&'a Resource, &'a Value)>,
    now: Time,
    neighbours: &dyn Neighbours,
) -> Amounts {
    let hard = amounts(&spec["hard"]);
    let mut used: Amounts =
        hard.into_keys().filter(|it| counted_by(it).is_some()).map(|it| (it, Quantity::ZERO)).collect();
    for (resource, object) in objects {
        count(&mut used, spec, (resource, object), 1, now, neighbours);
    }
    used
}

/// Adds what so many objects like this one cost to what the quota of this `spec` has used of the names that are there.
pub fn count(
    used: &mut Amounts,
    spec: &Value,
    (resource, object): (&Resource, &Value),
    times: i64,
    now: Time,
    neighbours: &dyn Neighbours,
) {
    if !used.keys().any(|it| counts(it, resource)) || !in_scope(spec, resource, object) {
        return;
    }
    for (name, amount) in usage(resource, object, now, neighbours) {
        if let Some(sum) = used.get_mut(&name).filter(|_| is_counted(&name, resource, neighbours)) {
            // What is only counted costs one.
            let amount = if times == 1 { amount } else { Quantity::units(times) };
            *sum = sum.plus(amount);
        }
    }
}
