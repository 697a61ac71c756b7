//! The authority's key as the hand that the signing loop reaches for.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use corten_pki::{Authority, SIGNERS, SigningFiles};
use corten_runner::{Signer, SigningRequest};

use crate::process::Clock;

pub(crate) struct AuthoritySigner {
    pub(crate) key: SigningKey,
    pub(crate) clock: Clock,
}

/// Whose key it is.
pub(crate) enum SigningKey {
    /// The cluster's own.
    Cluster(Arc<Authority>),
    /// That of a cluster whose authority somebody else keeps.
    Files(SigningFiles),
}

impl Signer for AuthoritySigner {
    fn answers_to(&self, signer: &str) -> bool {
        SIGNERS.contains(&signer)
    }

    fn sign(&self, request: &SigningRequest<'_>) -> Result<String, String> {
        let SigningRequest { request, signer, usages, expiration_seconds } = *request;
        let since_epoch = Duration::from_millis(u64::try_from((self.clock)().unix_millis()).unwrap_or_default());
        let asked = corten_pki::SigningRequest { request, signer, usages, expiration_seconds };
        let now = SystemTime::UNIX_EPOCH + since_epoch;
        match &self.key {
            SigningKey::Cluster(authority) => authority.sign_request(&asked, now),
            SigningKey::Files(files) => files.sign_request(&asked, now),
        }
    }
}
