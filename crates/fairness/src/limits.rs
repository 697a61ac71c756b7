//! What all requests together may take, and how much of it one user. One request is bounded where it is read; these bounds
//! are for the sum of them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use corten_meta::Status;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for room before it is asked to come again.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY_AFTER_SECONDS: u32 = 1;
/// Room is counted in pieces of this size.
const PIECE_BYTES: usize = 1024;
/// Of the room for bodies one user has at most one in so many parts: who sends slowly keeps it for a while.
const PARTS_OF_BODIES: usize = 4;
/// Of the places for watches.
const PARTS_OF_WATCHES: usize = 2;
/// From so many users on those are forgotten who hold nothing.
const USERS_REMEMBERED: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of request bodies that are held at once, from their first byte until the request is answered.
    pub body_bytes: usize,
    /// Watches that are open at once.
    pub watches: usize,
    /// Requests that are answered at once, each as wide as it is: all priority levels share these seats.
    pub seats: u32,
    /// Connections of one address: a Pod cannot keep everybody else out.
    pub connections_of_address: usize,
    /// Of one list in another version than its objects are stored in: as long as it is being sent it is in memory.
    pub converted_list_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 256 << 20,
            watches: 50_000,
            seats: 600,
            connections_of_address: 4096,
            converted_list_bytes: 256 << 20,
        }
    }
}

/// What is left of the limits.
pub struct Budget {
    bodies: Shared,
    watches: Shared,
}

/// A part of the room, held until this is dropped.
pub struct Permit {
    all: OwnedSemaphorePermit,
    own: OwnedSemaphorePermit,
}

impl Permit {
    pub fn merge(&mut self, more: Self) {
        self.all.merge(more.all);
        self.own.merge(more.own);
    }
}

/// Something that there is only so much of, and a share of it for each user.
struct Shared {
    all: Arc<Semaphore>,
    share: usize,
    of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Shared {
    fn new(all: usize, parts: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), share: all.div_ceil(parts), of_users: Mutex::default() }
    }

    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut of_users = self.of_users.lock();
        if let Some(own) = of_users.get(user) {
            return own.clone();
        }
        if of_users.len() >= USERS_REMEMBERED {
            // Who waits for a share has it in hand, too.
            of_users.retain(|_, own| Arc::strong_count(own) > 1);
        }
        of_users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Self {
            bodies: Shared::new(limits.body_bytes.div_ceil(PIECE_BYTES), PARTS_OF_BODIES),
            watches: Shared::new(limits.watches, PARTS_OF_WATCHES),
        }
    }

    /// Room for `bytes` more of a body.
    ///
    /// # Errors
    /// 429 where other bodies, or the user's own, take all there is for too long.
    pub async fn for_body(&self, user: &str, bytes: usize) -> Result<Permit, Status> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).map_err(|_| too_many())?;
        let own = self.bodies.of(user);
        let room = async {
            // First one's own: nobody holds what is others' while they wait for it.
            let own = own.acquire_many_owned(pieces).await?;
            Ok::<_, tokio::sync::AcquireError>(Permit {
                own,
                all: self.bodies.all.clone().acquire_many_owned(pieces).await?,
            })
        };
        let room = tokio::time::timeout(PATIENCE, room).await.map_err(|_| too_many())?;
        Ok(room.expect("the semaphores are never closed"))
    }

    /// A place for one watch.
    ///
    /// # Errors
    /// 429 where all are taken, or the user's: watches do not end soon.
    pub fn for_watch(&self, user: &str) -> Result<Permit, Status> {
        let own = self.watches.of(user).try_acquire_owned().map_err(|_| too_many())?;
        let all = self.watches.all.clone().try_acquire_owned().map_err(|_| too_many())?;
        Ok(Permit { all, own })
    }
}

fn too_many() -> Status {
    Status::too_many_requests("Too many requests, please try again later.", RETRY_AFTER_SECONDS)
}
