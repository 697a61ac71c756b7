//! Bearer tokens: those of service accounts, of the static file, of nodes that join, and of issuers that others run.
//!
//! A token proves who its holder is only while what it is bound to lives: that is looked up in the watch caches for every
//! request, while a signature is checked once.

mod bootstrap;
mod claims;
pub mod discovery;
pub mod issue;
mod jwt;
pub mod legacy;
pub mod request;
pub(crate) mod review;
mod shares;
mod static_file;
pub(crate) mod uses;
mod verify;
mod webhook;

use std::{net::IpAddr, sync::Arc};

use corten_cacher::watch_cache::Caches;
use corten_meta::{Key, Time};
use corten_metrics::Registry;
use corten_pki::Authority;
use corten_webhook::Clients;

pub use static_file::{StaticTokens, TokenFileError};
pub use uses::{Patch, TokenUses};
use verify::Verified;
use webhook::TokenWebhook;
pub use webhook::TokenWebhookSettings;

pub use crate::identity::{CREDENTIAL_ID, ISSUER};
use crate::{identity::Identity, issuers::Issuers};

/// A token that proved something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Without `system:authenticated`.
    pub who: Identity,
    /// Which of the wanted audiences the token is for.
    pub audiences: Vec<String>,
    /// The token is used beyond the hour it was asked for; says by whom.
    pub stale: Option<String>,
    /// The Secret whose token it is, where that does not say yet that it was used today.
    pub unmarked: Option<Key>,
}

/// What the caches hold now.
#[derive(Clone, Copy)]
pub struct CachesNow<'a> {
    pub caches: &'a Caches,
    pub now: Time,
}

/// Knows all tokens that the server takes.
pub struct Authenticator {
    pki: Arc<Authority>,
    static_tokens: StaticTokens,
    verified: Verified,
    issuers: Arc<Issuers>,
    webhook: Option<TokenWebhook>,
    uses: TokenUses,
}

/// Why a token proves nothing.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// One sentence for each kind of token that looked at it.
    pub(crate) reasons: Vec<String>,
    /// All who could know were asked.
    pub(crate) is_certain: bool,
}

impl Unproven {
    /// Somebody else has looked at it as well.
    fn and(&mut self, reason: String, is_certain: bool) {
        self.reasons.push(reason);
        self.is_certain &= is_certain;
    }
}

impl Authenticator {
    pub fn new(pki: Arc<Authority>, static_tokens: StaticTokens, issuers: Arc<Issuers>) -> Self {
        Self { pki, static_tokens, verified: Verified::default(), issuers, webhook: None, uses: TokenUses::default() }
    }

    /// With a webhook that is asked about tokens nobody else knows.
    #[must_use]
    pub fn with_webhook(self, webhook: Option<TokenWebhookSettings>, clients: &Clients, registry: &Registry) -> Self {
        Self { webhook: webhook.map(|it| TokenWebhook::new(it, clients, registry)), ..self }
    }

    /// As [`Self::authenticate`], by whoever has to be asked beside what is here.
    /// `from`: the address that shows the token, where one does.
    pub(crate) async fn holder(
        &self,
        at: &CachesNow<'_>,
        token: &str,
        audiences: &[&str],
        from: Option<IpAddr>,
    ) -> Result<Accepted, Unproven> {
        let mut unproven = match self.authenticate(at, token, audiences) {
            Ok(accepted) => {
                accepted.unmarked.iter().for_each(|it| self.uses.note(it));
                return Ok(accepted);
            }
            Err(reasons) => Unproven { reasons, is_certain: true },
        };
        // What others issue is for the API server only, whatever audience they call it by. Boxed, as the webhook's answer: nothing of
        // this is on the way of tokens that are known here.
        let own = own(audiences);
        if !own.is_empty() && !self.issuers.is_empty() {
            match Box::pin(self.issuers.holder(at.now, token)).await {
                Some(Ok(who)) => return Ok(Accepted { who, audiences: own, stale: None, unmarked: None }),
                Some(Err(refused)) => unproven.and(refused.reason, refused.is_certain),
                None => {}
            }
        }
        let Some(webhook) = &self.webhook else { return Err(unproven) };
        match Box::pin(webhook.holder(token, audiences, from)).await {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err(refused) => unproven.and(refused.reason, refused.is_certain),
        }
        Err(unproven)
    }

    pub(crate) fn unanswering(&self) -> Option<crate::Unanswering> {
        self.webhook.as_ref()?.trouble()
    }

    /// The Secrets that are to say that their tokens were used.
    pub(crate) fn token_uses(&self) -> &TokenUses {
        &self.uses
    }

    pub fn issuers(&self) -> &Arc<Issuers> {
        &self.issuers
    }

    pub fn pki(&self) -> &Authority {
        &self.pki
    }

    /// Whose token is this, for one of `audiences`? Of those that the server issues or was told of itself.
    ///
    /// # Errors
    /// Why it proves nothing, one sentence for each kind of token that looked at it.
    pub fn authenticate(&self, at: &CachesNow<'_>, token: &str, audiences: &[&str]) -> Result<Accepted, Vec<String>> {
        let mut refusals = vec!["invalid bearer token".to_owned()];
        // The static file's and bootstrap tokens are for the API server only.
        let own = own(audiences);
        if !own.is_empty() {
            let known = self.static_tokens.get(token).cloned();
            if let Some(who) = known.or_else(|| bootstrap::identify(at, token)) {
                return Ok(Accepted { who, audiences: own, stale: None, unmarked: None });
            }
        }
        match self.verified.service_account(&self.pki, at, token, audiences) {
            Some(Ok(accepted)) => return Ok(accepted),
            Some(Err(reason)) => refusals.push(reason),
            None => {}
        }
        Err(refusals)
    }
}

/// The API server itself, where it is wanted.
fn own(audiences: &[&str]) -> Vec<String> {
    audiences.iter().filter(|it| **it == ISSUER).map(|it| (*it).to_owned()).collect()
}

fn unix_seconds(time: Time) -> i64 {
    time.unix_millis().div_euclid(1000)
}
