//! The contract between minds and hands: a [`View`] goes in, a [`Plan`] comes out.
//!
//! A [`Controller`] is asked: `reconcile(view, key, now) -> Plan`. It does no I/O, reads no clock and no random number.
//! What it watches, reads and writes is declared, and the runner refuses an effect that was not declared.

mod controller;
mod effect;
#[cfg(feature = "fixture")]
pub mod fixture;
mod journal;
mod plan;
mod view;

pub use controller::{API_GROUPS, Controller, DEFINED, Origin, Subject, Verb, Wake, Watch, Write};
pub use effect::{Effect, EventType, Propagation};
pub use journal::{Decision, Journal, Observation, Step, StepState, Throttled};
pub use plan::{Actor, Plan, Wait};
pub use view::{Answer, AnyProjection, Failure, Object, Projection, Table, View};
