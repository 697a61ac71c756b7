//! Asks an issuer for its keys: first for its own description, which says where they are.

use bytes::Bytes;
use corten_webhook::{ClientConfig, Clients, Location};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;

use super::{keys::Keys, words::Issuer};

const WELL_KNOWN: &str = "/.well-known/openid-configuration";
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Provider {
    issuer: String,
    jwks_uri: String,
}

/// # Errors
/// The issuer cannot be reached, or says of itself that it is another, or has no keys. Put a deadline around it.
pub(super) async fn keys(clients: &Clients, issuer: &Issuer) -> Result<Keys, String> {
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
    Keys::read(&document(clients, issuer, &provider.jwks_uri).await?).map_err(|it| format!("oidc: {it}"))
}

async fn document(clients: &Clients, issuer: &Issuer, url: &str) -> Result<Bytes, String> {
    let target: Uri = url.parse().map_err(|it| format!("{url:?} is no URL: {it}"))?;
    let mut config = ClientConfig::new(Location::Url(url.to_owned()));
    issuer.certificate_authority.as_bytes().clone_into(&mut config.ca_bundle);
    let client = clients.client(&config).map_err(|it| it.0)?;
    let path = target.path_and_query().map_or("/", |it| it.as_str());
    let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
    let answered = client.get(path, headers, DOCUMENT_BYTES_MAX).await.map_err(|it| format!("Get {url:?}: {it}"))?;
    // Nor is a redirect followed: whoever could send one could choose the keys.
    if answered.code != StatusCode::OK {
        return Err(format!("Get {url:?}: unexpected status {}", answered.code));
    }
    Ok(answered.body)
}
