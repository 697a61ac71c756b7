//! What a Pod asks for: from its spec to words for the runtime. Nothing here remembers a pod.

pub(crate) mod claims;
pub(crate) mod container;
pub(crate) mod downward;
pub(crate) mod env;
pub(crate) mod env_file;
pub(crate) mod foreign;
pub(crate) mod huge_pages;
pub(crate) mod image_volumes;
pub(crate) mod images;
pub(crate) mod node_selection;
pub(crate) mod pem;
pub(crate) mod pod;
pub(crate) mod pod_certificates;
pub(crate) mod read_only;
pub(crate) mod requests;
pub(crate) mod resolv;
pub(crate) mod resources;
pub(crate) mod runtime_class;
pub(crate) mod sandbox;
pub(crate) mod services;
pub(crate) mod sources;
pub(crate) mod swap;
pub(crate) mod tokens;
pub(crate) mod trust_bundles;
pub(crate) mod user_namespace;
pub(crate) mod volumes;
