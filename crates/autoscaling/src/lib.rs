//! Fits workloads to what is measured of them: how many Pods they have, and what their Pods ask for.
//!
//! Each autoscaler is a [`corten_reconcile::Controller`]. They are rows of `CONTROLLERS` like all others, and have a crate of
//! their own because they share with each other what other controllers do not need: the `scale` of any kind, and metrics.

mod horizontal_pod_autoscaler;
mod scaler;
mod target;
#[cfg(test)]
mod tests;
mod vertical_pod_autoscaler;

pub use horizontal_pod_autoscaler::HorizontalPodAutoscalers;
pub use vertical_pod_autoscaler::VerticalPodAutoscalers;
