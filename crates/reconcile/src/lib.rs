//! The contract between minds and hands: a [`View`] goes in, a [`Plan`] comes out.
//!
//! A [`Controller`] is asked: `reconcile(view, key, now) -> Plan`. It does no I/O, reads no clock and no random number.
//! What it watches, reads and writes is declared, and the runner refuses an effect that was not declared.

mod controller;
mod count;
mod effect;
#[cfg(feature = "fixture")]
pub mod fixture;
mod journal;
pub mod node_journal;
mod plan;
mod projection;
pub mod served;
pub mod status;
mod view;

pub use controller::{API_GROUPS, Controller, DEFINED, Origin, Subject, Verb, Wake, Watch, Write};
pub use count::{Count, CountedLook, LoopMetric, MetricKind, Tally, TallyRow};
pub use effect::{ApiPath, Effect, EventType, Propagation};
pub use journal::{Decision, Journal, Observation, Step, StepState, Throttled};
pub use plan::{Actor, EFFECTS_MAX, Plan, Wait, go_on_after_failed};
pub use projection::{Condition, bare, is_zero, or_default, reference};
pub use view::{Answer, AnyProjection, Brought, Failure, Fetched, Object, Projection, SHARED_FOR, Table, View};
