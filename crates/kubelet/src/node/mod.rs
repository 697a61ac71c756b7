//! What is known of the node itself, and what it does for its own sake.

pub(crate) mod admission;
pub(crate) mod critical;
pub(crate) mod devices;
pub(crate) mod image_gc;
pub(crate) mod local_storage;
pub(crate) mod managers;
pub(crate) mod observations;
pub(crate) mod pressure;
pub(crate) mod rank;
pub(crate) mod shutdown;
pub(crate) mod status;
pub(crate) mod topology;
