//! A certificate with its key.

/// A certificate and its private key, both as PEM.
#[derive(Clone)]
pub struct Credential {
    pub certificate: String,
    pub key: String,
}

/// Without the key.
impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}
