//! A bound of time that needs no clock: how much work an evaluation has done, whatever upstream charges for it.
//!
//! Upstream's costs leave out what is cheap as a rule, such as what is inside of lists that are compared, and it ends what takes
//! too long by the request's deadline. Here each evaluation has so much fuel; the count is the thread's, since comparisons happen
//! deep within functions.

use std::cell::Cell;

/// A unit is a node that is visited, about ten nanoseconds.
pub(crate) const FUEL: u64 = 50_000_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(FUEL) };
}

/// Takes some; is there still enough?
pub(crate) fn spend(units: u64) -> bool {
    LEFT.with(|left| {
        let rest = left.get().saturating_sub(units);
        left.set(rest);
        rest > 0
    })
}

pub(crate) fn is_spent() -> bool {
    LEFT.with(Cell::get) == 0
}

/// A full tank, until it is dropped: then what was left before, less what was used.
pub(crate) struct Tank {
    before: u64,
}

impl Tank {
    pub(crate) fn full() -> Self {
        Self { before: LEFT.with(|it| it.replace(FUEL)) }
    }
}

impl Drop for Tank {
    fn drop(&mut self) {
        LEFT.with(|it| it.set(self.before));
    }
}
