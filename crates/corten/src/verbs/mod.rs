//! The verbs that need the whole cluster in one process.

pub(crate) mod controllers;
pub(crate) mod etcd;
pub(crate) mod join;
pub(crate) mod migrate;
pub(crate) mod node;
pub(crate) mod scheduler;
pub(crate) mod server;
pub(crate) mod snapshot;
pub(crate) mod up;
