//! The cluster's own certificate authority, the certificates it issues, and the TLS settings made of them.
//!
//! A client's certificate is checked here and not by the TLS handshake: whoever presents a bad one gets a `Status` with
//! 401 instead of a dead connection.

mod authority;
mod certificate;
mod credential;
mod der;
mod error;
mod files;
mod folder;
mod issue;
mod joining;
mod machine_key;
mod possession;
mod published;
pub mod rotation;
pub mod sharing;
mod token_key;
mod trust;

pub use authority::{
    Authority, DynamicCertificate, EtcdAuthority, EtcdFiles, InUse, RENEWAL_INTERVAL, SIGNERS, SigningFiles,
    SigningRequest, unverified_client_config,
};
pub use certificate::Proven;
pub use credential::Credential;
pub use error::Error;
pub use folder::FRONT_PROXY_CLIENT;
pub use issue::Subject;
pub use joining::{BootstrapToken, is_public_key_hash, node_request, public_key_hashes};
pub use machine_key::MachineKey;
pub use possession::{is_proven, is_signed_by_its_key};
pub use published::with_authorities;
pub use token_key::TokenKey;
pub use trust::TokenKeys;
