//! How types fit, and the check of a tree against declared ones.

pub(crate) mod checker;
mod fits;
mod literals;
mod patterns;
