//! Corten's own kinds: `corten.dev`.

pub(crate) mod journal;
pub(crate) mod vertical_pod_autoscaler;
