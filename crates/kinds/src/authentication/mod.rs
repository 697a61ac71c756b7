//! `authentication.k8s.io`: reviews that are answered, never stored.

pub(crate) mod self_subject_review;
pub(crate) mod token_review;
