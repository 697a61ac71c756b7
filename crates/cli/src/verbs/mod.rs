//! A file for each verb of the command line.

pub(crate) mod certs;
pub(crate) mod completion;
pub(crate) mod down;
pub mod nodes;
pub(crate) mod reset;
pub(crate) mod supervise;
pub(crate) mod token;
pub(crate) mod up;
pub(crate) mod version;
pub(crate) mod volume;
pub(crate) mod why;
