//! `/.well-known/openid-configuration` and `/openid/v1/jwks`: by these, others can check tokens without asking.

use std::collections::BTreeSet;

use bytes::Bytes;
use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use corten_pki::{TokenKey, TokenKeys};
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::json;

use super::ISSUER;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";
/// Readers may keep both for an hour (`cacheControl` of `serviceaccount`).
const CACHE_CONTROL: &str = "public, max-age=3600";

/// `None` where the path is neither.
pub fn answer(path: &str, method: &Method, keys: &TokenKeys) -> Option<Result<Response, Status>> {
    let (media_type, body) = match path {
        CONFIGURATION => ("application/json", configuration(keys)),
        KEYS => ("application/jwk-set+json", keys_of(keys)),
        _ => return None,
    };
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(Err(Status::no_such_path()));
    }
    let mut response = answer::with_type(StatusCode::OK, media_type, Bytes::from(body.to_string()));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE_CONTROL));
    Some(Ok(response))
}

/// While the key is replaced, that of before is among them.
fn keys_of(keys: &TokenKeys) -> serde_json::Value {
    json!({ "keys": keys.all().map(TokenKey::jwk).collect::<Vec<_>>() })
}

/// The keys are where the issuer is: what a caller says of our name is not passed on to others.
fn configuration(keys: &TokenKeys) -> serde_json::Value {
    let algorithms: BTreeSet<&str> = keys.all().map(TokenKey::algorithm).collect();
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{ISSUER}{KEYS}"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": algorithms,
    })
}
