//! Says at the Secret of a token on which day the token was last used, once a day (`patchSecretWithLastUsedDate`): whoever looks for
//! tokens that nobody needs goes by that.

use std::time::Duration;

use corten_access::tokens::legacy::{LAST_USED, day};
use corten_api::resources::SECRETS;
use corten_meta::{Key, Resource};
use http::Method;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    own_requests::{MERGE_PATCH, send},
    state::State,
};

static AT: Resource = SECRETS;
/// What could not be written is not tried with each request.
const PAUSE: Duration = Duration::from_secs(10);

pub(crate) async fn run(state: State, mut ended: watch::Receiver<bool>) {
    let marking = async {
        loop {
            for secret in state.access().authenticator().token_uses().next().await {
                mark(&state, &secret).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        biased;
        _ = ended.wait_for(|it| *it) => {}
        () = marking => {}
    }
}

async fn mark(state: &State, secret: &Key) {
    let today = day(state.now());
    let stored = state.caches().get(&AT).and_then(|it| it.get(&secret.namespace, &secret.name));
    // Another server may have written it meanwhile.
    let Some(stored) = stored.filter(|it| it.parse()["metadata"]["labels"][LAST_USED] != *today) else { return };
    let patch = json!({ "metadata": { "uid": stored.uid(), "labels": { LAST_USED: today } } });
    let path = format!("{}?fieldManager=kube-apiserver", AT.path(secret));
    if let Err(error) = send(state, Method::PATCH, &path, MERGE_PATCH, patch.to_string().into()).await {
        tracing::warn!(%secret, %error, "when its token was last used cannot be written");
    }
}
