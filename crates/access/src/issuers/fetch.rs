//! Asks an issuer for its keys: first for its own description, which says where they are. And asks the sources that tokens name.

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use corten_webhook::{ClientConfig, Clients, Document, Location};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;

use super::{
    Refusal,
    distributed::ClaimSource,
    keys::{Keys, TOKEN_BYTES_MAX},
    words::Issuer,
};

const WELL_KNOWN: &str = "/.well-known/openid-configuration";
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Provider {
    issuer: String,
    jwks_uri: String,
}

/// The keys of an issuer, and a hash of what they were read from.
pub(super) struct FetchedKeys {
    pub(super) keys: Keys,
    pub(super) hash: String,
}

/// # Errors
/// The issuer cannot be reached, or says of itself that it is another, or has no keys. Put a deadline around it.
pub(super) async fn keys(clients: &Clients, issuer: &Issuer) -> Result<FetchedKeys, String> {
    let url = if issuer.discovery_url.is_empty() {
        format!("{}{WELL_KNOWN}", issuer.url.trim_end_matches('/'))
    } else {
        issuer.discovery_url.clone()
    };
    let provider = document(clients, issuer, &url).await?;
    let provider: Provider = serde_json::from_slice(&provider)
        .map_err(|it| format!("oidc: failed to decode provider discovery object: {it}"))?;
    if provider.issuer != issuer.url {
        return Err(format!(
            "oidc: issuer URL provided to client ({:?}) did not match the issuer URL returned by provider ({:?})",
            issuer.url, provider.issuer
        ));
    }
    let document = document(clients, issuer, &provider.jwks_uri).await?;
    let digits: String = digest(&SHA256, &document).as_ref().iter().map(|it| format!("{it:02x}")).collect();
    let keys = Keys::read(&document).map_err(|it| format!("oidc: {it}"))?;
    Ok(FetchedKeys { keys, hash: format!("sha256:{digits}") })
}

/// The signed token that a source answers with. No redirect is followed, here either. Put a deadline around it.
///
/// # Errors
/// It cannot be reached, or refuses.
pub(super) async fn claim_token(clients: &Clients, issuer: &Issuer, source: &ClaimSource) -> Result<String, Refusal> {
    let mut headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/jwt, */*;q=0.5"))]);
    if !source.access_token.is_empty() {
        let value = HeaderValue::from_str(&format!("Bearer {}", source.access_token));
        let mut value = value.map_err(|_| "its access token holds what no header may hold".to_owned())?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    let answered =
        get(clients, issuer, &source.endpoint, headers, TOKEN_BYTES_MAX).await.map_err(Refusal::uncertain)?;
    let code = answered.code;
    // As `getClaimJWT`.
    if (200..=226).contains(&code.as_u16()) {
        return String::from_utf8(answered.body.into()).map_err(|_| "its answer is no text".to_owned().into());
    }
    let asks_for_patience = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&code);
    let reason = format!("error while getting distributed claim JWT: {code}");
    Err(Refusal { reason, is_certain: code.is_client_error() && !asks_for_patience })
}

async fn document(clients: &Clients, issuer: &Issuer, url: &str) -> Result<Bytes, String> {
    let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
    let answered = get(clients, issuer, url, headers, DOCUMENT_BYTES_MAX).await?;
    // Nor is a redirect followed: whoever could send one could choose the keys.
    if answered.code != StatusCode::OK {
        return Err(format!("Get {url:?}: unexpected status {}", answered.code));
    }
    Ok(answered.body)
}

/// Over TLS, with a server that the issuer's certificate authority has signed.
async fn get(
    clients: &Clients,
    issuer: &Issuer,
    url: &str,
    headers: HeaderMap,
    bytes_max: usize,
) -> Result<Document, String> {
    let target: Uri = url.parse().map_err(|it| format!("{url:?} is no URL: {it}"))?;
    let mut config = ClientConfig::new(Location::Url(url.to_owned()));
    issuer.certificate_authority.as_bytes().clone_into(&mut config.ca_bundle);
    let client = clients.client(&config).map_err(|it| it.0)?;
    let path = target.path_and_query().map_or("/", |it| it.as_str());
    client.get(path, headers, bytes_max).await.map_err(|it| format!("Get {url:?}: {it}"))
}
