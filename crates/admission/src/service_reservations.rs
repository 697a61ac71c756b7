//! Addresses and ports that are taken: by Services that are stored, and by requests that would store one.

use std::sync::Arc;

use corten_kinds::service_allocation::Holds;
use parking_lot::{Mutex, MutexGuard};

/// Clones are the same ranges.
#[derive(Clone, Default)]
pub struct Ranges(Arc<Mutex<Holds>>);

impl Ranges {
    pub(crate) fn of(taken: Holds) -> Self {
        Self(Arc::new(Mutex::new(taken)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Holds> {
        self.0.lock()
    }

    pub(crate) fn free(&self, holds: &Holds) {
        let mut taken = self.0.lock();
        taken.addresses.retain(|it| !holds.addresses.contains(it));
        taken.ports.retain(|it| !holds.ports.contains(it));
    }
}

/// What one request has taken and not stored yet. It goes back with the request.
#[derive(Default)]
pub struct ServiceReservations(Mutex<Option<Reserved>>);

struct Reserved {
    ranges: Ranges,
    holds: Holds,
}

impl ServiceReservations {
    /// Gives back what an earlier attempt of the same request took, then takes what `draw` adds.
    pub(crate) fn anew<T>(&self, ranges: &Ranges, draw: impl FnOnce(&mut Holds) -> T) -> T {
        let mut reserved = self.0.lock();
        *reserved = None;
        draw(&mut reserved.insert(Reserved { ranges: ranges.clone(), holds: Holds::default() }).holds)
    }

    /// Leaves to the caller what is about to be stored, and gives the rest back.
    pub(crate) fn hand_over(&self, stored: &Holds) {
        if let Some(mut claimed) = self.0.lock().take() {
            claimed.holds = claimed.holds.without(stored);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.ranges.free(&self.holds);
    }
}
