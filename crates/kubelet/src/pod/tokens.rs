//! Asks for the tokens of a pod, and anew when four fifths of their time are over.

use std::{collections::BTreeSet, time::Duration};

use corten_meta::Time;

use crate::{
    ApiEffect, ApiFailure, Token, TokenWish,
    backoff::pause,
    pod::{context::Context, machine::PodMachine},
    spec::{pod::spec_of, tokens::wishes},
};

/// A manifest may wish for a token that ends at once.
const PAUSE_MIN: Duration = Duration::from_secs(10);

/// A day: the longest a token is used, whatever it was asked for.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);

const RETRY_SECONDS_MAX: u64 = 120;

impl PodMachine {
    /// Asks for the tokens that are missing or grow old.
    pub(crate) fn fetch_tokens(&mut self, cx: &mut Context<'_>) {
        let account = spec_of(&self.pod).service_account_name.clone();
        let of_drivers = self.claims.token_wishes();
        for wish in wishes(&self.pod).into_iter().chain(of_drivers).collect::<BTreeSet<_>>() {
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
            // Of a server that does not answer now: the pod starts all the same, and the next is asked for as after a failure.
            Ok(token) if token.expires <= cx.now => {
                slot.token = Some(token);
                slot.failures += 1;
                slot.retry_at = Some(cx.now.after(pause(slot.failures, RETRY_SECONDS_MAX)));
            }
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
