//! Gives minds their hands: feeds views from informers, carries out plans through the client, keeps the journal.
//!
//! All time goes through a [`Clock`] and tokio's timers, so a simulator with a paused clock drives it all.

use std::sync::Arc;

mod barrier;
mod controller;
mod declared;
mod effects;
mod events;
#[cfg(test)]
mod fake;
mod feed;
mod journal;
mod node;
mod queue;
mod scheduler;
mod sources;

pub use controller::run_controller;
pub use events::EventRecorder;
pub use journal::JournalBook;
pub use node::{Hands, run_node};
pub use scheduler::run_scheduler;

/// What time it is. The one clock of a process, or a simulation's.
pub type Clock = Arc<dyn Fn() -> corten_meta::Time + Send + Sync>;
