//! The controllers: one file for each, one row in [`CONTROLLERS`].
//!
//! Each is a [`corten_reconcile::Controller`]: a pure function from what is seen to what is to be done.

mod deployment;
mod event_expiry;
mod garbage_collector;
mod namespace;
mod ownership;
mod replica_set;
mod seen;
mod service_account;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use corten_meta::{Key, Resource};
use corten_reconcile::{Controller, Effect, Failure};

pub use deployment::Deployments;
pub use event_expiry::EventExpiry;
pub use garbage_collector::GarbageCollector;
pub use namespace::Namespaces;
pub use replica_set::ReplicaSets;
pub use service_account::ServiceAccounts;

/// Every controller, in name order.
pub const CONTROLLERS: &[fn() -> Arc<dyn Controller>] = &[
    || Arc::new(Deployments),
    || Arc::new(EventExpiry),
    || Arc::new(GarbageCollector),
    || Arc::new(Namespaces),
    || Arc::new(ReplicaSets),
    || Arc::new(ServiceAccounts),
];

/// How many creates or deletes one plan holds at most: enough for speed, few enough that other keys get their turn.
pub(crate) const EFFECTS_MAX: usize = 500;

/// Begins with the effects behind the one that failed the last time: one object that cannot be deleted must not keep all
/// that come after it.
pub(crate) fn go_on_after_failed(effects: &mut [Effect], failure: Option<&Failure>) {
    let Some(failed) = failure.and_then(|it| target(&it.effect)) else { return };
    if let Some(at) = effects.iter().position(|it| target(it) == Some(failed)) {
        effects.rotate_left(at + 1);
    }
}

fn target(effect: &Effect) -> Option<(&Resource, &Key)> {
    match effect {
        Effect::Patch { resource, key, .. } | Effect::Delete { resource, key, .. } => Some((resource, key)),
        Effect::Create { .. } | Effect::Event { .. } | Effect::Ask { .. } => None,
    }
}
