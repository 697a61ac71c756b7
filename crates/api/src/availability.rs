//! What a silent node means for a Pod: an annotation of the Pod, or of its Namespace.
//!
//! Nobody knows of a node that says nothing whether its Pods run. One that matters more than once is moved soon; one that must never
//! run twice stays until its node is back, or somebody says that it is dead.

/// [`HIGH`] or [`BEST_EFFORT`]; without it a Pod stays for as long as on Kubernetes.
pub const AVAILABILITY: &str = "corten.dev/availability";
pub const HIGH: &str = "high";
pub const BEST_EFFORT: &str = "best-effort";

/// How long one of high availability stays on a node that is not ready, or is not heard of.
pub const HIGH_SECONDS: i64 = 10;
