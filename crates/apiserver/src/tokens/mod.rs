//! Bearer tokens: those of service accounts, of the static file, and of nodes that join.
//!
//! A token proves who its holder is only while what it is bound to lives: that is looked up in the watch caches for every
//! request, while a signature is checked once.

mod bootstrap;
mod claims;
pub(crate) mod discovery;
pub(crate) mod issue;
mod jwt;
pub(crate) mod legacy;
pub(crate) mod review;
mod static_file;
#[cfg(test)]
mod tests;
mod verify;

use corten_meta::Time;

pub use static_file::{StaticTokens, TokenFileError};
pub(crate) use verify::Verified;

use crate::{Server, request::Identity};

/// Who issues the tokens, and the audience they are for unless another is asked for. As upstream's default.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A token that proved something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Without `system:authenticated`.
    pub(crate) who: Identity,
    /// Which of the wanted audiences the token is for.
    pub(crate) audiences: Vec<String>,
    /// The token is used beyond the hour it was asked for; says by whom.
    pub(crate) stale: Option<String>,
}

/// Whose token is this, for one of `audiences`?
///
/// # Errors
/// Why it proves nothing, one sentence for each kind of token that looked at it.
pub(crate) fn authenticate(server: &Server, token: &str, audiences: &[&str]) -> Result<Accepted, Vec<String>> {
    let mut refusals = vec!["invalid bearer token".to_owned()];
    // The static file's and bootstrap tokens are for the API server only.
    let own: Vec<String> = audiences.iter().filter(|it| **it == ISSUER).map(|it| (*it).to_owned()).collect();
    if !own.is_empty() {
        let known = server.config().guard.static_tokens.get(token).cloned();
        if let Some(who) = known.or_else(|| bootstrap::identify(server, token)) {
            return Ok(Accepted { who, audiences: own, stale: None });
        }
    }
    match verify::service_account(server, token, audiences) {
        Some(Ok(accepted)) => return Ok(accepted),
        Some(Err(reason)) => refusals.push(reason),
        None => {}
    }
    Err(refusals)
}

fn unix_seconds(time: Time) -> i64 {
    time.unix_millis().div_euclid(1000)
}
