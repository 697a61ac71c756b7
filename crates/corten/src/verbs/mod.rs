//! The verbs that need the whole cluster in one process.

pub(crate) mod node;
pub(crate) mod server;
