//! Server-side apply: field sets, who owns which fields, and how a configuration merges into an object.
//!
//! Works on the DOM with the type table. Upstream's structured merge is the model: the same sets, orders and messages.

mod atomic;
mod compare;
mod element;
mod fields;
mod form;
mod merge;
mod owners;
mod remove;
mod set;
mod typed;
mod update;
mod wholes;

pub use atomic::atomics;
pub use compare::{Comparison, compare};
pub use fields::fields;
pub use merge::merged;
pub use owners::{BEFORE_FIRST_APPLY, Operation, Owner, Owners};
pub use set::Set;
pub use typed::misfits;
pub use update::{Applied, ApplyError, Conflict, OneView, Owned, Views, Write, apply, update};

#[cfg(test)]
mod tests;
