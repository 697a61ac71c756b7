//! The links of the chain, one file each; `chain.rs` holds their order.

pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod authorize;
pub(crate) mod catch_panic;
pub(crate) mod catch_up;
pub(crate) mod cross_site;
pub(crate) mod deadline;
pub(crate) mod fairness;
pub(crate) mod impersonate;
pub(crate) mod indent;
pub(crate) mod measure;
pub(crate) mod next;
pub(crate) mod refusal;
pub(crate) mod request_info;
