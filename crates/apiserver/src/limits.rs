//! What all requests together may take. One request is bounded where it is read; these bounds are for the sum of them.

use std::{sync::Arc, time::Duration};

use corten_meta::Status;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for room before it is asked to come again.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY_AFTER_SECONDS: u32 = 1;
/// Room is counted in pieces of this size.
const PIECE_BYTES: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of request bodies that are held at once, from their first byte until the request is answered.
    pub body_bytes: usize,
    /// Watches that are open at once.
    pub watches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body_bytes: 256 * 1024 * 1024, watches: 50_000 }
    }
}

/// What is left of the limits.
pub(crate) struct Room {
    bodies: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

impl Room {
    pub(crate) fn new(limits: Limits) -> Self {
        let pieces = limits.body_bytes.div_ceil(PIECE_BYTES);
        Self { bodies: Arc::new(Semaphore::new(pieces)), watches: Arc::new(Semaphore::new(limits.watches)) }
    }

    /// Room for `bytes` more of a body, held until what is given is dropped.
    ///
    /// # Errors
    /// 429 where other bodies take all there is for too long.
    pub(crate) async fn for_body(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Status> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).map_err(|_| too_many())?;
        let room = self.bodies.clone().acquire_many_owned(pieces);
        let room = tokio::time::timeout(PATIENCE, room).await.map_err(|_| too_many())?;
        Ok(room.expect("the semaphore is never closed"))
    }

    /// A place for one watch.
    ///
    /// # Errors
    /// 429 where all are taken: watches do not end soon.
    pub(crate) fn for_watch(&self) -> Result<OwnedSemaphorePermit, Status> {
        self.watches.clone().try_acquire_owned().map_err(|_| too_many())
    }
}

fn too_many() -> Status {
    Status::too_many_requests("Too many requests, please try again later.", RETRY_AFTER_SECONDS)
}
