//! Asks an issuer for its keys: first for its own description, which says where they are.

use bytes::{Bytes, BytesMut};
use corten_webhook::{ClientConfig, Clients, Location};
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::task::JoinSet;

use super::{keys::Keys, words::Issuer};

const WELL_KNOWN: &str = "/.well-known/openid-configuration";
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
const HEADERS_BYTES_MAX: usize = 64 * 1024;

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
    let stream = client.connect().await.map_err(|it| it.to_string())?;
    let handshake = http1::Builder::new().max_buf_size(HEADERS_BYTES_MAX).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|it| format!("Get {url:?}: {it}"))?;
    // Dropped with what is asked, which ends it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let asking = async {
        let path = target.path_and_query().map_or("/", |it| it.as_str());
        let host = target.authority().map_or("", |it| it.as_str());
        let request = Request::get(path)
            .header(header::HOST, host)
            .header(header::ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())
            .map_err(|it| it.to_string())?;
        let response = sender.send_request(request).await.map_err(|it| it.to_string())?;
        // Nor is a redirect followed: whoever could send one could choose the keys.
        if response.status() != StatusCode::OK {
            return Err(format!("unexpected status {}", response.status()));
        }
        whole(response.into_body()).await
    };
    asking.await.map_err(|it| format!("Get {url:?}: {it}"))
}

async fn whole(mut body: hyper::body::Incoming) -> Result<Bytes, String> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|it| it.to_string())?.into_data() else { continue };
        if whole.len() + data.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("the answer is larger than {DOCUMENT_BYTES_MAX} bytes"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
