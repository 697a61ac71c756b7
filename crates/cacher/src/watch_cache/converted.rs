//! An object in other versions than it is stored in, made once for all who ask: kept beside the stored object.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use corten_meta::Status;
use futures_util::future::{Shared, WeakShared};
use parking_lot::Mutex;

use super::Stored;
use crate::body::BoxFuture;

/// What becomes of several objects that are converted together.
pub type PendingConversion = Shared<Converting>;
type Converting = BoxFuture<'static, Result<Arc<[Arc<Stored>]>, Status>>;

/// One object in one other version.
#[derive(Clone)]
pub enum Slot {
    /// Somebody waits for it. Held weakly: a conversion that nobody waits for any more ends.
    UnderWay(WeakShared<Converting>, usize),
    Done(Arc<Stored>),
}

/// By version. Most objects are never asked for in another one.
#[derive(Default)]
pub struct Converted(OnceLock<Box<Slots>>);

type Slots = Mutex<Vec<(Box<str>, Slot)>>;

impl Converted {
    pub fn get(&self, version: &str) -> Option<Slot> {
        self.0.get()?.lock().iter().find(|it| *it.0 == *version).map(|it| it.1.clone())
    }

    /// Gives what was there before.
    pub fn set(&self, version: &str, slot: Slot) -> Option<Slot> {
        let mut slots = self.0.get_or_init(Box::default).lock();
        match slots.iter_mut().find(|it| *it.0 == *version) {
            Some(known) => Some(std::mem::replace(&mut known.1, slot)),
            None => {
                slots.push((version.into(), slot));
                None
            }
        }
    }

    /// Lets go of it: it is made again for who asks.
    pub fn forget(&self, version: &str) {
        if let Some(slots) = self.0.get() {
            slots.lock().retain(|it| *it.0 != *version);
        }
    }
}

impl fmt::Debug for Converted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converted").finish_non_exhaustive()
    }
}
