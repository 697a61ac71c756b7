//! Where expressions and patterns are evaluated: little work where it is asked for, much work where nobody waits behind it.
//!
//! A mind does not give way to others while it thinks. What takes more than a moment is begun anew on a thread of its own, a few at
//! a time, so that other requests are answered meanwhile, and the deadline of this one holds.

use corten_cacher::apart::in_turn;
use corten_cel::{Fuel, MOMENT};
use serde_json::Value;

/// What `evaluate` says, which may take as much as is left. It is asked twice where a moment is not enough.
pub async fn evaluated<T>(fuel: &Fuel, evaluate: impl Fn() -> T) -> T {
    let left = fuel.left();
    let (made, was_enough) = fuel.lend(MOMENT, &evaluate);
    if was_enough || left <= MOMENT {
        return made;
    }
    in_turn(|| fuel.lend(u64::MAX, &evaluate).0).await
}

/// Of each part of an object that is shown to an expression and taken back.
const FUEL_OF_PART: u64 = 20;

/// What it takes to copy, compare and prune an object.
pub(crate) fn weight(object: &Value) -> u64 {
    let within: u64 = match object {
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(entries) => entries.values().map(weight).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    within + FUEL_OF_PART
}
