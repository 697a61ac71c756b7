//! Secrets whose tokens were used on a day that they do not name yet (`LegacyServiceAccountTokenTracking`), for who writes it there.

use std::collections::BTreeSet;

use corten_meta::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Those beyond are noted with their next use.
const NOTED_MAX: usize = 1024;

#[derive(Default)]
pub struct TokenUses {
    secrets: Mutex<BTreeSet<Key>>,
    noted: Notify,
}

impl TokenUses {
    pub(super) fn note(&self, secret: &Key) {
        let mut secrets = self.secrets.lock();
        if secrets.len() < NOTED_MAX && secrets.insert(secret.clone()) {
            self.noted.notify_one();
        }
    }

    /// Waits until there are some, and gives each once.
    pub async fn next(&self) -> BTreeSet<Key> {
        loop {
            let noted = std::mem::take(&mut *self.secrets.lock());
            if !noted.is_empty() {
                return noted;
            }
            self.noted.notified().await;
        }
    }
}
