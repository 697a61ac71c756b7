//! What the node says when its machine is about to end.

pub(crate) const TERMINATED: &str = "Terminated";

pub(crate) const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";

pub(crate) const NOT_ADMITTED: &str = "NodeShutdown";

pub(crate) const NOT_ADMITTED_MESSAGE: &str = "Pod was rejected as the node is shutting down.";

/// Stands in the node's condition.
pub(crate) const PROBLEM: &str = "node is shutting down";
