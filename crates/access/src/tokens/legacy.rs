//! Secrets of type `kubernetes.io/service-account-token`: whoever makes one for an account finds a token without an end in it.
//!
//! The server fills them in while they are written, since only it holds the key; upstream a controller writes them again.

use aws_lc_rs::constant_time;
use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::SERVICE_ACCOUNTS;
use corten_cacher::watch_cache::Caches;
use corten_meta::Time;
use corten_pki::Authority;
use serde_json::{Value, json};

use super::{
    claims::{LEGACY_ISSUER, Legacy, user_name},
    jwt,
};

pub const TYPE: &str = "kubernetes.io/service-account-token";
/// The day from which on the token is not to be taken, as whoever looks for tokens that nobody uses writes it.
pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// The day on which the token was last used.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Writes token, authority and namespace into the Secret, if its account is there. A token that is good already stays.
pub fn fill(caches: &Caches, pki: &Authority, namespace: &str, secret: &mut Value) {
    if secret["type"] != TYPE {
        return;
    }
    let annotations = &secret["metadata"]["annotations"];
    let Some(account) = annotations[ACCOUNT_NAME].as_str().map(str::to_owned) else { return };
    let accounts = caches.get(&SERVICE_ACCOUNTS).expect("service accounts are a row of the table");
    let Some(found) = accounts.get(namespace, &account) else { return };
    // A Secret that names another uid was for an account that is gone.
    if annotations[ACCOUNT_UID].as_str().is_some_and(|it| !it.is_empty() && it != found.uid()) {
        return;
    }
    let name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let claims = Legacy {
        iss: LEGACY_ISSUER.into(),
        namespace: namespace.into(),
        secret: name,
        uid: found.uid().into(),
        sub: user_name(namespace, &account),
        account,
    };
    secret["metadata"]["annotations"][ACCOUNT_UID] = json!(found.uid());
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    let keys = pki.token_keys();
    // One that the key of before signed stays while that is trusted: copies of it are in use.
    let is_good = token_of(secret).is_some_and(|it| {
        jwt::signer(&keys, &it).is_some() && jwt::unverified::<Legacy>(&it).as_ref() == Some(&claims)
    });
    if !is_good && let Some(token) = jwt::signed(&keys.signing, &claims) {
        secret["data"]["token"] = json!(STANDARD.encode(token));
    }
    secret["data"]["ca.crt"] = json!(STANDARD.encode(pki.ca_pem()));
    secret["data"]["namespace"] = json!(STANDARD.encode(namespace));
}

/// As labels name it, in UTC: `2026-01-02`.
pub fn day(now: Time) -> String {
    now.to_string().chars().take("2026-01-02".len()).collect()
}

/// Is this the token the Secret holds? Told in the same time wherever they differ.
pub(super) fn holds(secret: &Value, token: &str) -> bool {
    token_of(secret).is_some_and(|it| constant_time::verify_slices_are_equal(it.as_bytes(), token.as_bytes()).is_ok())
}

/// Has somebody taken the token back without deleting it?
pub(super) fn is_marked_invalid(secret: &Value) -> bool {
    secret["metadata"]["labels"][INVALID_SINCE].as_str().is_some_and(|it| !it.is_empty())
}

fn token_of(secret: &Value) -> Option<String> {
    String::from_utf8(STANDARD.decode(secret["data"]["token"].as_str()?).ok()?).ok()
}
