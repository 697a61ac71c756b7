//! What became of asking an issuer for its keys: for whoever looks for what is wrong, and for `/metrics`.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::remote::{Trouble, Unanswering};

/// Of one issuer.
#[derive(Default)]
pub(super) struct FetchRecord {
    trouble: Trouble,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    succeeded: Option<Instant>,
    failed: Option<Instant>,
    key_set: Option<String>,
}

/// The newest of the times that an issuer was asked for its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFetch {
    /// Its URL.
    pub issuer: String,
    /// How long ago its keys were read last.
    pub since_success: Option<Duration>,
    /// How long ago they could not be read.
    pub since_failure: Option<Duration>,
    /// A hash of what was read last: `sha256:…`.
    pub key_set: Option<String>,
}

impl FetchRecord {
    pub(super) fn succeeded(&self, key_set: String) {
        self.trouble.over();
        let mut last = self.last.lock();
        (last.succeeded, last.key_set) = (Some(Instant::now()), Some(key_set));
    }

    pub(super) fn failed(&self, reason: &str) {
        self.trouble.goes_on(reason);
        self.last.lock().failed = Some(Instant::now());
    }

    /// `has_keys`: those of before are still used.
    pub(super) fn trouble(&self, issuer: &str, has_keys: bool) -> Option<Unanswering> {
        let unanswering = self.trouble.of(|| format!("the issuer {issuer:?}"))?;
        let becomes = if has_keys { "the keys that it had are still used" } else { "its tokens are refused" };
        let reason = format!("{}; {becomes}", unanswering.reason);
        Some(Unanswering { reason, ..unanswering })
    }

    pub(super) fn last(&self, issuer: &str) -> KeyFetch {
        let last = self.last.lock();
        let ago = |it: Option<Instant>| it.map(|it| it.elapsed());
        KeyFetch {
            issuer: issuer.to_owned(),
            since_success: ago(last.succeeded),
            since_failure: ago(last.failed),
            key_set: last.key_set.clone(),
        }
    }
}
