//! Container logs in CRI's format: `2026-11-20T10:57:29.123456789Z stdout F the line`.
//!
//! A long line is written in parts (`P`), the last of which is full (`F`); readers get it whole.

mod line;
mod open;
mod reader;
mod rotate;
mod tail;

use corten_meta::Time;

pub use line::LogStream;
pub use reader::{read, tail_of};
pub(crate) use rotate::rotate_all;
pub use rotate::{RotateLimits, rotate};

/// What of a log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on with what is written from now on, until the container has ended.
    pub follow: bool,
    pub tail_lines: Option<u64>,
    pub since: Option<Time>,
    /// Begin each line with its time.
    pub timestamps: bool,
    pub limit_bytes: Option<u64>,
    /// One of the two only.
    pub stream: Option<LogStream>,
}

#[cfg(test)]
mod tests;
