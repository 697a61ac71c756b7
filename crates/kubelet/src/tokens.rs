//! The tokens by which a pod's containers speak as its service account: asked for before its volumes are made, and again
//! when four fifths of their time are over. A running pod keeps an old one for as long as no new one comes.

use std::{collections::BTreeMap, fmt, time::Duration};

use corten_api::core::v1::Pod;
use corten_meta::Time;

use crate::{
    ApiEffect, ApiFailure,
    context::{Context, pause},
    pod::{PodMachine, spec_of},
};

/// A manifest may wish for a token that ends at once.
const PAUSE_MIN: Duration = Duration::from_secs(10);
/// A day: the longest a token is used, whatever it was asked for.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);
const SECONDS: i64 = 3600;
const RETRY_SECONDS_MAX: u64 = 120;

/// What a token is asked for. Volumes that ask for the same get the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenWish {
    /// Empty: the API server's own.
    pub audience: String,
    pub seconds: i64,
}

/// A token the API server gave.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub token: String,
    pub expires: Time,
}

/// Without the token: what is printed is kept.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tokens(BTreeMap<TokenWish, Slot>);

#[derive(Debug, Default)]
struct Slot {
    token: Option<Token>,
    renew_at: Option<Time>,
    in_flight: bool,
    failures: u32,
    retry_at: Option<Time>,
    problem: Option<String>,
}

pub(crate) enum Issued<'a> {
    Token(&'a str),
    Asked,
    Failed(&'a str),
}

impl Tokens {
    pub(crate) fn lookup(&self, wish: &TokenWish) -> Issued<'_> {
        let Some(slot) = self.0.get(wish) else { return Issued::Asked };
        match (&slot.token, &slot.problem) {
            (Some(token), _) => Issued::Token(&token.token),
            (None, Some(problem)) => Issued::Failed(problem),
            (None, None) => Issued::Asked,
        }
    }
}

impl PodMachine {
    /// Asks for the tokens that are missing or grow old.
    pub(crate) fn fetch_tokens(&mut self, cx: &mut Context<'_>) {
        let account = spec_of(&self.pod).service_account_name.clone();
        for wish in wishes(&self.pod) {
            let slot = self.tokens.0.entry(wish.clone()).or_default();
            if slot.in_flight || !cx.is_due(slot.renew_at) || !cx.is_due(slot.retry_at) {
                continue;
            }
            slot.in_flight = true;
            let account = account.as_deref().filter(|it| !it.is_empty()).unwrap_or("default").to_owned();
            cx.api(ApiEffect::RequestToken { pod: self.who.clone(), account, wish });
        }
    }

    pub(crate) fn token_done(&mut self, wish: &TokenWish, result: Result<Token, ApiFailure>, cx: &Context<'_>) {
        let slot = self.tokens.0.entry(wish.clone()).or_default();
        slot.in_flight = false;
        match result {
            Ok(token) => {
                slot.renew_at = Some(renewal(&token, wish, cx.now));
                slot.token = Some(token);
                (slot.failures, slot.retry_at, slot.problem) = (0, None, None);
            }
            Err(failure) => {
                slot.failures += 1;
                slot.retry_at = Some(cx.now.after(pause(slot.failures, RETRY_SECONDS_MAX)));
                slot.problem = Some(match failure {
                    ApiFailure::Gone => "not found".into(),
                    ApiFailure::Conflict => "conflict".into(),
                    ApiFailure::Other(message) => message,
                });
            }
        }
    }
}

/// A fifth of its time before it ends; not in the past, or the next would be asked for at once and for ever.
fn renewal(token: &Token, wish: &TokenWish, now: Time) -> Time {
    let lifetime = Duration::from_secs(u64::try_from(wish.seconds).unwrap_or(0));
    let end = token.expires;
    let at = end.before(lifetime / 5).min(end.before(lifetime).after(AGE_MAX));
    at.max(now.after((lifetime / 10).max(PAUSE_MIN)))
}

/// Every token that the pod's volumes name.
fn wishes(pod: &Pod) -> Vec<TokenWish> {
    let volumes = spec_of(pod).volumes.iter().flatten().filter_map(|it| it.projected.as_ref());
    let parts = volumes.flat_map(|it| it.sources.iter().flatten());
    let mut wishes: Vec<TokenWish> = parts.filter_map(|it| it.service_account_token.as_ref()).map(wish).collect();
    wishes.sort();
    wishes.dedup();
    wishes
}

pub(crate) fn wish(source: &corten_api::core::v1::ServiceAccountTokenProjection) -> TokenWish {
    TokenWish {
        audience: source.audience.clone().unwrap_or_default(),
        seconds: source.expiration_seconds.unwrap_or(SECONDS),
    }
}
