//! Reads one document of a server, within a time and a size. No redirect is followed.

use std::time::Duration;

use corten_access::{Identity, request_header};
use corten_webhook::Document;
use http::{HeaderMap, HeaderValue, header};

use crate::backend::{Backend, PASSED_ON};

/// What to read.
pub(crate) struct DocumentRequest<'a> {
    pub(crate) path: &'a str,
    pub(crate) accept: &'static str,
    /// The tag of what is known already; may be empty.
    pub(crate) tag: &'a str,
    /// From now to the last byte.
    pub(crate) deadline: Duration,
    pub(crate) bytes_max: usize,
}

/// Who asks (`discoveryManager.fetchFreshDiscoveryForService`): whatever the server's own roles say, it lets that user read.
fn aggregator() -> Identity {
    Identity::new("system:kube-aggregator", &[corten_access::MASTERS])
}

/// Takes no place of the requests that are passed on: a server that has as many as it may have is asked how it is all the same.
///
/// # Errors
/// There is no answer, or none of that size in that time.
pub(crate) async fn fetch(backend: &Backend, wanted: &DocumentRequest<'_>) -> Result<Document, String> {
    let fetching = async {
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(&backend.authority()).map_err(|it| it.to_string())?;
        headers.insert(header::HOST, host);
        headers.insert(PASSED_ON, HeaderValue::from_static("true"));
        headers.insert(header::ACCEPT, HeaderValue::from_static(wanted.accept));
        if let Ok(tag) = HeaderValue::from_str(wanted.tag)
            && !tag.is_empty()
        {
            headers.insert(header::IF_NONE_MATCH, tag);
        }
        request_header::say(&mut headers, &aggregator())?;
        backend.client()?.get(wanted.path, headers, wanted.bytes_max).await
    };
    let fetched = tokio::time::timeout(wanted.deadline, fetching).await;
    fetched.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
}
