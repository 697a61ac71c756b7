//! Answers "why is this not running?": reads an object, its events and the loops' journals, and follows what each
//! waits for down to whoever must act.
//!
//! [`gather`] reads, [`account`] decides what it means, [`render`] prints; only the first does I/O.

mod account;
mod gather;
mod render;

pub(crate) use account::{Account, State};
pub(crate) use gather::explain;
pub(crate) use render::render;
