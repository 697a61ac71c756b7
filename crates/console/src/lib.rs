//! How verbs speak: what they print, how a failure says what to do next, and that something takes its time.

pub mod failure;
pub mod output;
pub mod progress;
pub mod shell;
