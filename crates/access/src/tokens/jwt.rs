//! JSON web tokens, as far as service accounts need them: three parts, signed by the cluster's key.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use corten_pki::{TokenKey, TokenKeys};

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    alg: &'a str,
    kid: &'a str,
}

/// `None` where the system gives no randomness.
pub(super) fn signed(key: &TokenKey, claims: &impl Serialize) -> Option<String> {
    let part = |json: Vec<u8>| URL_SAFE_NO_PAD.encode(json);
    let header = serde_json::to_vec(&Header { alg: key.algorithm(), kid: key.id() }).expect("two strings");
    let claims = serde_json::to_vec(claims).expect("claims are plain strings and numbers");
    let message = format!("{}.{}", part(header), part(claims));
    let signature = key.sign(message.as_bytes())?;
    Some(format!("{message}.{}", part(signature)))
}

/// The claims before anything is known of the signature. `None` for what is no web token.
pub(super) fn unverified<T: DeserializeOwned>(token: &str) -> Option<T> {
    let [_, claims, _] = parts(token)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// Which of the keys signed this token?
pub(super) fn signer<'k>(keys: &'k TokenKeys, token: &str) -> Option<&'k TokenKey> {
    keys.all().find(|it| is_signed_by(it, token))
}

fn is_signed_by(key: &TokenKey, token: &str) -> bool {
    let check = || {
        let [header, claims, signature] = parts(token)?;
        let header = URL_SAFE_NO_PAD.decode(header).ok()?;
        // Which algorithm is used is the key's to say, not the token's.
        let header: Header<'_> = serde_json::from_slice(&header).ok()?;
        let message = &token[..header_and_claims_bytes(claims, token)?];
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(header.alg == key.algorithm() && header.kid == key.id() && key.verifies(message.as_bytes(), &signature))
    };
    check().unwrap_or_default()
}

fn header_and_claims_bytes(claims: &str, token: &str) -> Option<usize> {
    Some(token.find('.')? + 1 + claims.len())
}

fn parts(token: &str) -> Option<[&str; 3]> {
    let mut parts = token.split('.');
    let found = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(found)
}
