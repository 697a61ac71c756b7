//! What Kubernetes stores, and a store that stores so.

mod forms;
#[path = "../../schema/src/golden.rs"]
#[expect(dead_code, reason = "other archives are others' business")]
mod golden;
mod keys;
mod stores;
mod values;
