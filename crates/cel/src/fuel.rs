//! A bound of time that needs no clock: how much work evaluations have done, whatever upstream charges for it.
//!
//! Upstream's costs leave out what is cheap as a rule, such as what is inside of lists that are compared and what it takes to
//! compile a pattern that an object holds, and it ends what takes too long by the request's deadline. Here each evaluation has so
//! much fuel, and all that share a limit have so much together: the rules of an object, the policies of a request. The count is
//! the thread's, since comparisons happen deep within functions.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
};

/// What one evaluation may take. A unit is a node that is visited, about ten nanoseconds.
pub(crate) const OF_EVALUATION: u64 = 50_000_000;

/// What is evaluated where it is asked for: some milliseconds. What takes more is done where nobody waits behind it.
pub const MOMENT: u64 = 500_000;

/// Outside of every limit nothing is counted.
const UNBOUNDED: u64 = u64::MAX;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(UNBOUNDED) };
}

/// Takes some, for evaluations and what else an expression or an object causes; is there still enough?
pub fn spend(units: u64) -> bool {
    LEFT.with(|left| {
        if left.get() == UNBOUNDED {
            return true;
        }
        let rest = left.get().saturating_sub(units);
        left.set(rest);
        rest > 0
    })
}

/// Takes what it costs to read or compare so many bytes; is there still enough?
pub(crate) fn spend_read(bytes: usize) -> bool {
    spend(bytes as u64 / 64)
}

/// Takes what it costs to make so many bytes: a unit for each, so that fuel bounds memory, too. Is there still enough?
pub(crate) fn spend_made(bytes: usize) -> bool {
    spend(bytes as u64)
}

/// Has this thread used up its fuel? What evaluations have found since is not right.
pub fn is_spent() -> bool {
    LEFT.with(Cell::get) == 0
}

/// Limits this thread's fuel until it is dropped. What is used is also taken from the limit around it, which may have less left.
#[derive(Debug)]
pub struct FuelLimit {
    before: u64,
    given: u64,
}

impl FuelLimit {
    /// With so many units, if there are as many.
    pub fn of(units: u64) -> Self {
        let before = LEFT.with(Cell::get);
        let given = before.min(units);
        LEFT.with(|it| it.set(given));
        Self { before, given }
    }

    fn used(&self) -> u64 {
        self.given - LEFT.with(Cell::get).min(self.given)
    }
}

impl Drop for FuelLimit {
    fn drop(&mut self) {
        let rest = if self.before == UNBOUNDED { UNBOUNDED } else { self.before - self.used() };
        LEFT.with(|it| it.set(rest));
    }
}

/// What the write of one object has for all its evaluations, on whatever threads they happen one after the other. A write that is
/// tried again after a conflict has it anew, and a request that deletes a collection has it for each object.
#[derive(Debug)]
pub struct Fuel(AtomicU64);

impl Fuel {
    /// For all policies and conditions that are asked about one request; about a second.
    pub const REQUEST: u64 = 2 * OF_EVALUATION;
    /// For the rules and patterns of one object, or of one definition.
    pub const OBJECT: u64 = OF_EVALUATION;

    pub const fn new(units: u64) -> Self {
        Self(AtomicU64::new(units))
    }

    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes some for work beside evaluations; is there still enough?
    pub fn take(&self, units: u64) -> bool {
        let rest = self.left().saturating_sub(units);
        self.0.store(rest, Ordering::Relaxed);
        rest > 0
    }

    /// Does something with at most so many units of it. Says whether they were enough.
    pub fn lend<T>(&self, units: u64, run: impl FnOnce() -> T) -> (T, bool) {
        let limit = FuelLimit::of(units.min(self.left()));
        let made = run();
        let (used, was_enough) = (limit.used(), !is_spent());
        drop(limit);
        self.0.store(self.left().saturating_sub(used), Ordering::Relaxed);
        (made, was_enough)
    }
}
