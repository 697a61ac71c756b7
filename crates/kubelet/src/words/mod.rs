//! What the kubelet is told, what it answers, and what it is set to.

pub(crate) mod certificate;
pub(crate) mod config;
pub(crate) mod container;
pub(crate) mod cpu_set;
pub(crate) mod device;
pub(crate) mod device_claim;
pub(crate) mod effect;
pub(crate) mod event;
pub(crate) mod managers;
pub(crate) mod measure;
pub mod node_problem;
pub(crate) mod observed;
pub(crate) mod persistent;
pub(crate) mod service;
mod subject;
pub(crate) mod thresholds;
pub(crate) mod token;
pub(crate) mod trust_bundle;
pub(crate) mod volume;
