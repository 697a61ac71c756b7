//! The nouns every object shares: names, metadata, time, quantities, selectors, and the one error on the wire.
//!
//! Nothing here does I/O, reads a clock or knows a single kind.

pub mod address;
mod aggregate;
mod condition;
pub mod depth;
pub mod duration;
pub mod field;
mod from_json;
mod json;
mod key;
pub mod number;
mod object_meta;
pub mod quantity;
mod release;
pub mod reserved;
mod resource;
pub mod schedule;
pub mod selector;
mod stable_hash;
mod status;
mod time;
mod violation;

pub use aggregate::aggregate;
pub use condition::transition_time;
pub use depth::DEPTH_MAX;
pub use from_json::from_json;
pub use json::projected;
pub use key::Key;
pub use object_meta::{Named, ObjectMeta, ObjectReference, OwnerReference};
pub use quantity::Quantity;
pub use release::release;
pub use resource::{Resource, Segment};
pub use schedule::Schedule;
pub use selector::{FieldRequirement, FieldSelector, LabelSelector, LabelSelectorRequirement, Requirement, Selector};
pub use stable_hash::{stable_hash, stable_hash_from};
pub use status::{Cause, Details, Retry, Status};
pub use time::{InvalidTime, MicroTime, Time};
pub use violation::{Rule, Violation, Violations, shortened};
