//! Pods that a manifest on the node asks for, and their images at the API.

pub(crate) mod manifest;
pub(crate) mod mirror;
