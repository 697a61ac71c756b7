//! What a write commits beside its own object, kind by kind: what registry.Store of Kubernetes asks of `BeginCreate` and
//! `BeginUpdate`, and of the `FinishFunc` that they return.
//!
//! All of it is one transaction: the object, what goes along and the conditions of both hold together, or nothing is written.

use corten_kinds::Kind;
use corten_meta::Status;
use corten_store::{Error, Store, Txn};
use serde_json::Value;

pub use crate::commit_hook::Write;
use crate::{
    binding_room,
    commit_hook::{CommitHook, WritePart},
    plugin::Attributes,
    resource_quota,
    service_reservations::ServiceReservations,
    services,
};

/// Each is asked of every write.
const HOOKS: &[&dyn CommitHook] =
    &[&services::Allocation, &services::KeptIpAddress, &resource_quota::Charges, &binding_room::BindingRoom];

/// The parts of all hooks that a write concerns.
pub struct Commit<'a>(Vec<Box<dyn WritePart + 'a>>);

impl<'a> Commit<'a> {
    pub async fn begin(write: &'a Write<'a>) -> Self {
        let mut begun = Vec::new();
        for hook in HOOKS.iter().filter(|it| it.concerns(write)) {
            begun.extend(hook.begin(write).await);
        }
        Self(begun)
    }

    /// # Errors
    /// As the request is to be answered where it must not be written.
    pub fn add_to(&self, txn: &mut Txn) -> Result<(), Status> {
        self.0.iter().try_for_each(|it| it.add_to(txn))
    }

    /// See [`WritePart::contention`].
    pub fn contention(&self) -> Option<Status> {
        self.0.iter().find_map(|it| it.contention())
    }

    pub fn committed(self) {
        self.0.into_iter().for_each(|it| it.committed());
    }

    /// # Errors
    /// The store's, where it had to be asked who was faster.
    pub async fn refused(self, store: &dyn Store) -> Result<(), Error> {
        let mut result = Ok(());
        for begun in self.0 {
            // Every hook learns of it, whatever became of the one before.
            result = result.and(begun.refused(store).await);
        }
        result
    }
}

/// Completes an object with what the server gives its kind.
///
/// # Errors
/// As the request is to be answered where that cannot be given.
pub fn complete(
    request: &Attributes<'_>,
    reservations: &ServiceReservations,
    object: &mut Value,
) -> Result<(), Status> {
    HOOKS.iter().try_for_each(|it| it.complete(request, reservations, object))
}

/// Reports whether a hook allocates a value for objects of the kind: on a conflict their create is tried again with another.
pub fn allocates_for(kind: &Kind) -> bool {
    HOOKS.iter().any(|it| it.allocates_for(kind))
}
