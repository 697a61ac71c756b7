//! What the server serves: `/api`, `/apis` and below, read off the table of kinds and kept as bytes.
//!
//! `/api` and `/apis` come in two forms: the small list of groups, and everything at once (aggregated discovery).

mod document;
pub mod priorities;

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use corten_cacher::{answer, body::Response, codec};
use corten_kinds::Kinds;
use corten_meta::Status;
use corten_routes::RequestInfo;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::aggregated::Aggregated;
pub(crate) use document::Version;
pub use document::{facts, groups};

const JSON: &str = "application/json";
const AGGREGATED: [(&str, &str); 2] = [
    ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
];

/// One document and its entity tag.
struct Document {
    bytes: Bytes,
    tag: HeaderValue,
}

impl Document {
    fn new(value: &serde_json::Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        let hash: String = digest(&SHA512, &bytes).as_ref().iter().map(|it| format!("{it:02X}")).collect();
        let tag = HeaderValue::from_str(&format!("\"{hash}\"")).expect("hexadecimal digits in quotes");
        Self { bytes, tag }
    }
}

/// Every document by its path, and by the media type where a path has several.
#[derive(Default)]
pub struct Discovery(BTreeMap<(String, &'static str), Document>);

impl Discovery {
    pub fn of(kinds: &Kinds, aggregated: &Aggregated) -> Self {
        let groups = groups(kinds.iter());
        let groups = document::listed(&groups, aggregated);
        let mut documents = BTreeMap::new();
        for (path, value) in document::plain(&groups) {
            documents.insert((path, JSON), Document::new(&value));
        }
        let elsewhere: Vec<String> = aggregated.iter().map(|it| format!("/{}", it.path())).collect();
        let paths = documents.keys().map(|it| &*it.0).chain(elsewhere.iter().map(String::as_str));
        let root = document::root(paths);
        documents.insert(("/".to_owned(), JSON), Document::new(&root));
        for (path, core) in [("/api", true), ("/apis", false)] {
            for (version, media_type) in AGGREGATED {
                let value = document::aggregated(&groups, version, |group| group.is_empty() == core);
                documents.insert((path.to_owned(), media_type), Document::new(&value));
            }
        }
        Self(documents)
    }

    /// Is the path one of discovery?
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(&(path.to_owned(), JSON))
    }

    /// `None` where the path is not one of discovery.
    pub fn answer(&self, info: &RequestInfo, method: &Method, headers: &HeaderMap) -> Option<Result<Response, Status>> {
        let path = &*info.path;
        if !self.has(path) {
            return None;
        }
        if ![Method::GET, Method::HEAD].contains(method) {
            return Some(Err(Status::failure(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            )));
        }
        let (accept, known) = (codec::header(headers, &header::ACCEPT), codec::header(headers, &header::IF_NONE_MATCH));
        Some(self.document(path, accept, known))
    }

    fn document(&self, path: &str, accept: &str, if_none_match: &str) -> Result<Response, Status> {
        let offers = [AGGREGATED[0].1, AGGREGATED[1].1, JSON];
        let offers: Vec<&'static str> =
            offers.into_iter().filter(|it| self.0.contains_key(&(path.to_owned(), *it))).collect();
        let chosen = choose(accept, &offers).ok_or_else(|| Status::not_acceptable(JSON))?;
        let found = &self.0[&(path.to_owned(), chosen)];

        let mut response = if if_none_match == found.tag {
            answer::with_type(StatusCode::NOT_MODIFIED, chosen, Bytes::new())
        } else {
            answer::with_type(StatusCode::OK, chosen, found.bytes.clone())
        };
        if offers.len() > 1 {
            response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        }
        if chosen != JSON {
            response.headers_mut().insert(header::ETAG, found.tag.clone());
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        }
        Ok(response)
    }
}

/// The first of the client's wishes that is on offer; with no wish, plain JSON.
fn choose(accept: &str, offers: &[&'static str]) -> Option<&'static str> {
    if accept.trim().is_empty() {
        return Some(JSON);
    }
    accept.split(',').find_map(|wish| {
        let mut parts = wish.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        if !matches!(media_type, JSON | "application/*" | "*/*") {
            return None;
        }
        // Quality and character set do not name another document.
        let mut wanted: Vec<&str> = parts
            .filter(|it| !it.starts_with("q=") && !it.starts_with("charset=") && !it.starts_with("profile="))
            .collect();
        wanted.sort_unstable();
        offers.iter().copied().find(|offer| {
            let mut params: Vec<&str> = offer.split(';').skip(1).collect();
            params.sort_unstable();
            params == wanted
        })
    })
}

#[cfg(test)]
mod tests;
