//! Secrets whose tokens were used on a day that they do not name yet (`LegacyServiceAccountTokenTracking`): it is written there once a day.
//! Whoever looks for tokens that nobody needs goes by that.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use corten_api::resources::SECRETS;
use corten_cacher::body::BoxFuture;
use corten_meta::{Key, Status};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use super::{
    CachesNow,
    legacy::{LAST_USED, day},
};

/// Sends a merge patch to a path.
pub type Patch = dyn Fn(String, Bytes) -> BoxFuture<'static, Result<(), Status>> + Send + Sync;

/// What could not be written is not tried with each request.
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

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
    pub(crate) async fn next(&self) -> BTreeSet<Key> {
        loop {
            let noted = std::mem::take(&mut *self.secrets.lock());
            if !noted.is_empty() {
                return noted;
            }
            self.noted.notified().await;
        }
    }
}

/// Says at a Secret that its token was used today (`patchSecretWithLastUsedDate`).
pub(crate) async fn mark(at: &CachesNow<'_>, secret: &Key, patch: &Patch) {
    let today = day(at.now);
    let stored = at.caches.get(&SECRETS).and_then(|it| it.get(&secret.namespace, &secret.name));
    // Another server may have written it meanwhile.
    let Some(stored) = stored.filter(|it| it.parse()["metadata"]["labels"][LAST_USED] != *today) else { return };
    let body = json!({ "metadata": { "uid": stored.uid(), "labels": { LAST_USED: today } } });
    let path = format!("{}?fieldManager=kube-apiserver", SECRETS.path(secret));
    if let Err(error) = patch(path, body.to_string().into()).await {
        tracing::warn!(%secret, %error, "when its token was last used cannot be written");
    }
}
