//! Why something could not be done with certificates and keys.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {path}: {cause}")]
    File { action: &'static str, path: PathBuf, cause: std::io::Error },
    #[error("{path} is not what the cluster's PKI expects there: {why}")]
    Malformed { path: PathBuf, why: String },
    #[error("the cluster's certificate authority in {0} has expired; `corten certs rotate-ca` makes a new one")]
    Expired(PathBuf),
    #[error("cannot issue a certificate for {0}: {1}")]
    Issue(String, rcgen::Error),
    #[error("a certificate can name one organization, not {0}")]
    Organizations(usize),
    #[error("cannot use the certificates for TLS: {0}")]
    Tls(String),
    #[error("cannot use the key that signs tokens: {0}")]
    TokenKey(String),
}

impl Error {
    pub(crate) fn of_tls(error: impl std::fmt::Display) -> Self {
        Self::Tls(error.to_string())
    }
}
