//! What all requests together may take, and how much of it one party. One request is bounded where it is read; these bounds
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
/// Of the room for bodies one party has at most one in so many parts: who sends slowly keeps it for a while.
const PARTS_OF_BODIES: usize = 4;
/// And of that for small ones: a few who send slowly leave most of it to others.
const PARTS_OF_SMALL_BODIES: usize = 16;
/// Bodies of so many bytes do not wait for larger ones.
pub const SMALL_BODY_BYTES: usize = 64 * 1024;
/// Of the places for watches.
const PARTS_OF_WATCHES: usize = 2;
/// Read, a selector takes some twenty times its bytes: so many of them are as much as a watch takes without any.
const SELECTOR_BYTES_OF_PLACE: usize = 512;
/// From so many parties on those are forgotten who hold nothing.
const PARTIES_REMEMBERED: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of request bodies that are held at once, from their first byte until the request is answered. Small ones, and those of the cluster's
    /// own parts, have a quarter as much beside it.
    pub body_bytes: usize,
    /// Of large objects that are being written at once, as they are stored or sent. Those of the cluster's own parts have a quarter as
    /// much beside it.
    pub work_bytes: usize,
    /// Of answers that have not been read yet.
    pub unread_bytes: usize,
    /// Watches that are open at once; one with a long selector counts for several.
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
            work_bytes: 32 << 20,
            unread_bytes: 256 << 20,
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
    small_bodies: Shared,
    /// Of the parts of the cluster.
    system_bodies: Shared,
    work: Shared,
    system_work: Shared,
    watches: Shared,
}

/// Who sends a body.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    /// Who shares with nobody else.
    pub party: &'a str,
    /// Is it a part of the cluster, or who runs it?
    pub is_of_system: bool,
}

/// A part of the room, held until this is dropped.
#[derive(Default)]
pub struct Permit(Vec<[OwnedSemaphorePermit; 2]>);

impl Permit {
    pub fn merge(&mut self, more: Self) {
        for [all, own] in more.0 {
            let there = self.0.iter_mut().find(|it| Arc::ptr_eq(it[0].semaphore(), all.semaphore()));
            match there {
                Some(there) => {
                    there[0].merge(all);
                    there[1].merge(own);
                }
                None => self.0.push([all, own]),
            }
        }
    }
}

/// Something that there is only so much of, and a share of it for each party.
struct Shared {
    all: Arc<Semaphore>,
    share: usize,
    of_parties: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Shared {
    fn new(all: usize, parts: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), share: all.div_ceil(parts), of_parties: Mutex::default() }
    }

    fn of(&self, party: &str) -> Arc<Semaphore> {
        let mut of_parties = self.of_parties.lock();
        if let Some(own) = of_parties.get(party) {
            return own.clone();
        }
        if of_parties.len() >= PARTIES_REMEMBERED {
            // Who waits for a share has it in hand, too.
            of_parties.retain(|_, own| Arc::strong_count(own) > 1);
        }
        of_parties.entry(party.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }

    fn try_take(&self, party: &str, n: u32) -> Option<Permit> {
        let own = self.of(party).try_acquire_many_owned(n).ok()?;
        Some(Permit(vec![[self.all.clone().try_acquire_many_owned(n).ok()?, own]]))
    }

    async fn take(&self, party: &str, n: u32) -> Result<Permit, Status> {
        if let Some(taken) = self.try_take(party, n) {
            return Ok(taken);
        }
        let own = self.of(party);
        let taken = async {
            // First one's own: nobody holds what is others' while they wait for it.
            let own = own.acquire_many_owned(n).await?;
            Ok::<_, tokio::sync::AcquireError>(Permit(vec![[self.all.clone().acquire_many_owned(n).await?, own]]))
        };
        let taken = tokio::time::timeout(PATIENCE, taken).await.map_err(|_| too_many())?;
        Ok(taken.expect("the semaphores are never closed"))
    }
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        let pieces = limits.body_bytes.div_ceil(PIECE_BYTES);
        let of_bodies = |pieces: usize| Shared::new(pieces, PARTS_OF_BODIES);
        Self {
            bodies: of_bodies(pieces),
            small_bodies: Shared::new(pieces / PARTS_OF_BODIES, PARTS_OF_SMALL_BODIES),
            system_bodies: of_bodies(pieces / PARTS_OF_BODIES),
            work: of_bodies(limits.work_bytes.div_ceil(PIECE_BYTES)),
            system_work: Shared::new(limits.work_bytes.div_ceil(PIECE_BYTES) / PARTS_OF_BODIES, 1),
            watches: Shared::new(limits.watches, PARTS_OF_WATCHES),
        }
    }

    /// Room for `bytes` more of a body that has `before` already.
    ///
    /// # Errors
    /// 429 where other bodies, or the party's own, take all there is for too long.
    pub async fn for_body(&self, sender: Sender<'_>, before: usize, bytes: usize) -> Result<Permit, Status> {
        let pieces = (before + bytes).div_ceil(PIECE_BYTES) - before.div_ceil(PIECE_BYTES);
        let pieces = u32::try_from(pieces).map_err(|_| too_many())?;
        if pieces == 0 {
            return Ok(Permit::default());
        }
        let shared = match (sender.is_of_system, before + bytes) {
            (true, _) => &self.system_bodies,
            (false, ..=SMALL_BODY_BYTES) => &self.small_bodies,
            (false, _) => &self.bodies,
        };
        shared.take(sender.party, pieces).await
    }

    /// Room to change an object of so many bytes: read, it takes fifteen times as much and more. One that is larger than a party's share
    /// takes all of that.
    ///
    /// # Errors
    /// 429 where others, or the party's own, take all there is for too long.
    pub async fn for_work(&self, sender: Sender<'_>, bytes: usize) -> Result<Permit, Status> {
        let shared = if sender.is_of_system { &self.system_work } else { &self.work };
        let pieces = bytes.div_ceil(PIECE_BYTES).min(shared.share);
        shared.take(sender.party, u32::try_from(pieces).map_err(|_| too_many())?).await
    }

    /// A place for one watch, and more where its selectors are long: each holds its own for as long as it lasts.
    ///
    /// # Errors
    /// 429 where all are taken, or the party's: watches do not end soon.
    pub fn for_watch(&self, party: &str, selector_bytes: usize) -> Result<Permit, Status> {
        let places = u32::try_from(1 + selector_bytes / SELECTOR_BYTES_OF_PLACE).map_err(|_| too_many())?;
        self.watches.try_take(party, places).ok_or_else(too_many)
    }
}

fn too_many() -> Status {
    Status::too_many_requests("Too many requests, please try again later.", RETRY_AFTER_SECONDS)
}
