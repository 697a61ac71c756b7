//! What a hook of a commit is, and what it is asked.

use corten_cacher::body::BoxFuture;
use corten_kinds::Kind;
use corten_meta::Status;
use corten_store::{Error, Store, Txn};
use serde_json::Value;

use crate::{plugin::Attributes, service_reservations::ServiceReservations};

/// One write, about to be committed.
pub struct Write<'a> {
    pub request: &'a Attributes<'a>,
    pub store: &'a dyn Store,
    /// What the request has taken for its object.
    pub reservations: &'a ServiceReservations,
    /// The object as it is to be stored; `None` where it is to be removed. What is stored now is the request's `old`.
    pub new: Option<&'a Value>,
}

pub(crate) trait CommitHook: Sync {
    /// Completes an object that is to be stored, before it is validated, with what the server gives it.
    ///
    /// # Errors
    /// As the request is to be answered where that cannot be given.
    fn complete(
        &self,
        _request: &Attributes<'_>,
        _reservations: &ServiceReservations,
        _object: &mut Value,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Does [`CommitHook::complete`] allocate a value for objects of the kind? Then a create is tried again with another value where
    /// another server was faster to give this one away.
    fn allocates_for(&self, _kind: &Kind) -> bool {
        false
    }

    /// Does the write concern the hook? Asked of every write, so it costs next to nothing where it does not.
    fn concerns(&self, write: &Write<'_>) -> bool;

    /// Begins the hook's part of the write, once for all attempts. `None` where there is nothing to write.
    fn begin<'a>(&'a self, write: &'a Write<'a>) -> BoxFuture<'a, Option<Box<dyn WritePart + 'a>>>;
}

/// A hook's part of one write. If it is dropped before it is finished, nobody knows whether the commit took place.
pub(crate) trait WritePart: Send + Sync {
    /// Adds to the transaction what is to be written along, and on which conditions. Asked again for each attempt.
    ///
    /// # Errors
    /// As the request is to be answered where it must not be written.
    fn add_to(&self, txn: &mut Txn) -> Result<(), Status>;

    /// Given where a condition may have failed only because another write of the same hook came first, so that the next attempt
    /// may succeed: what is answered when it never does.
    fn contention(&self) -> Option<Status> {
        None
    }

    /// The commit took place.
    fn committed(self: Box<Self>) {}

    /// The commit did not take place.
    fn refused<'s>(self: Box<Self>, _store: &'s dyn Store) -> BoxFuture<'s, Result<(), Error>>
    where
        Self: 's,
    {
        Box::pin(async { Ok(()) })
    }
}
