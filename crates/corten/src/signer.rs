//! The authority's key as the hand that the signing loop reaches for.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use corten_pki::{Authority, SIGNERS};
use corten_runner::{Signer, SigningRequest};

use crate::process::Clock;

pub(crate) struct AuthoritySigner {
    pub(crate) authority: Arc<Authority>,
    pub(crate) clock: Clock,
}

impl Signer for AuthoritySigner {
    fn answers_to(&self, signer: &str) -> bool {
        SIGNERS.contains(&signer)
    }

    fn sign(&self, request: &SigningRequest<'_>) -> Result<String, String> {
        let SigningRequest { request, signer, usages, expiration_seconds } = *request;
        let since_epoch = Duration::from_millis(u64::try_from((self.clock)().unix_millis()).unwrap_or_default());
        let asked = corten_pki::SigningRequest { request, signer, usages, expiration_seconds };
        self.authority.sign_request(&asked, SystemTime::UNIX_EPOCH + since_epoch)
    }
}
