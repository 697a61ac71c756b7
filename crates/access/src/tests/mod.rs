//! Servers of others that decide who somebody is and what they may do: real ones, over TLS, that hang, lie and flood.

mod authorization;
mod hook;
mod recheck;
mod token_webhook;

use std::{path::Path, sync::Arc, time::Duration};

use corten_cacher::watch_cache::feed;
use corten_meta::Time;
use corten_metrics::Registry;
use corten_pki::Authority;
use corten_store::memory::Memory;
use corten_webhook::Clients;

use crate::{
    Access, AuthorizationSettings, Issuers,
    tokens::{Authenticator, StaticTokens, TokenWebhookSettings},
};

const PATIENCE: Duration = Duration::from_secs(20);

async fn access(authorization: AuthorizationSettings, tokens: Option<TokenWebhookSettings>) -> Arc<Access> {
    let (caches, _) = feed::fill(&Memory::new()).await.expect("an empty store");
    let caches = Arc::new(caches);
    let clients = Arc::new(Clients::new(caches.clone()));
    let registry = Registry::new();
    let pki = Arc::new(Authority::in_memory().expect("keys can be made"));
    let known = StaticTokens::parse("s3cret,jane,u1").expect("a good file");
    let authenticator =
        Authenticator::new(pki, known, Arc::new(Issuers::default())).with_webhook(tokens, &clients, &registry);
    let clock = Arc::new(|| Time::from_unix_seconds(1_800_000_000));
    Arc::new(Access::new(caches, clock, authenticator, authorization, clients, &registry))
}

async fn until(holds: impl Fn() -> bool) {
    let looking = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while !holds() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("in time");
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
}
