//! The tokens by which a pod's containers speak as its service account: asked for before its volumes are made, and again
//! when four fifths of their time are over. A running pod keeps an old one for as long as no new one comes.

use std::collections::BTreeMap;

use corten_api::core::v1::Pod;
use corten_meta::Time;

use crate::{Token, TokenWish, spec::pod::spec_of};

pub(crate) const SECONDS: i64 = 3600;

#[derive(Debug, Default)]
pub(crate) struct Tokens(pub(crate) BTreeMap<TokenWish, Slot>);

#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) token: Option<Token>,
    pub(crate) renew_at: Option<Time>,
    pub(crate) in_flight: bool,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Time>,
    pub(crate) problem: Option<String>,
}

pub(crate) enum Issued<'a> {
    Token(&'a Token),
    Asked,
    Failed(&'a str),
}

impl Tokens {
    pub(crate) fn lookup(&self, wish: &TokenWish) -> Issued<'_> {
        let Some(slot) = self.0.get(wish) else { return Issued::Asked };
        match (&slot.token, &slot.problem) {
            (Some(token), _) => Issued::Token(token),
            (None, Some(problem)) => Issued::Failed(problem),
            (None, None) => Issued::Asked,
        }
    }
}

/// Every token that the pod's volumes name.
pub(crate) fn wishes(pod: &Pod) -> Vec<TokenWish> {
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
