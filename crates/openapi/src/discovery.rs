//! What the server serves: `/api`, `/apis` and below, read off the table of kinds and kept as bytes.
//!
//! `/api` and `/apis` come in two forms: the small list of groups, and everything at once (aggregated discovery, v2 and v2beta1); each as
//! JSON and as protobuf.

mod document;
pub mod priorities;

use std::{collections::BTreeMap, sync::OnceLock};

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use corten_cacher::{
    answer,
    body::Response,
    codec::{self, accept::SUPPORTED, protobuf::PROTOBUF},
};
use corten_kinds::Kinds;
use corten_meta::Status;
use corten_routes::RequestInfo;
use corten_schema::proto;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::aggregated::Aggregated;
pub(crate) use document::Version;
pub use document::{facts, groups};

const JSON: &str = "application/json";
const AGGREGATED: [(&str, &str); 2] = [
    ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
];
/// What a client may ask for, and of which document it is another form.
const PROTOBUF_FORMS: [(&str, &str); 3] = [
    ("application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", AGGREGATED[0].1),
    ("application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", AGGREGATED[1].1),
    (PROTOBUF, JSON),
];

/// One document and its entity tag.
struct Document {
    bytes: Bytes,
    tag: HeaderValue,
    /// Made when it is first asked for. The document of all paths has no such form.
    protobuf: OnceLock<Option<Bytes>>,
}

impl Document {
    fn new(value: &serde_json::Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        let hash: String = digest(&SHA512, &bytes).as_ref().iter().map(|it| format!("{it:02X}")).collect();
        let tag = HeaderValue::from_str(&format!("\"{hash}\"")).expect("hexadecimal digits in quotes");
        Self { bytes, tag, protobuf: OnceLock::new() }
    }

    fn protobuf(&self) -> Option<Bytes> {
        let make = || Some(proto::whole(&serde_json::from_slice(&self.bytes).ok()?)?.into());
        self.protobuf.get_or_init(make).clone()
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
        let forms = [AGGREGATED[0].1, AGGREGATED[1].1, JSON].map(|it| (it, it)).into_iter().chain(PROTOBUF_FORMS);
        let offers: Vec<_> = forms.filter(|it| self.0.contains_key(&(path.to_owned(), it.1))).collect();
        let unacceptable = || Status::not_acceptable(SUPPORTED);
        let (chosen, json) = choose(accept, &offers).ok_or_else(unacceptable)?;
        let found = &self.0[&(path.to_owned(), json)];
        let bytes = if chosen == json { Some(found.bytes.clone()) } else { found.protobuf() };
        let bytes = bytes.ok_or_else(|| Status::not_acceptable(JSON))?;

        let mut response = if if_none_match == found.tag {
            answer::with_type(StatusCode::NOT_MODIFIED, chosen, Bytes::new())
        } else {
            answer::with_type(StatusCode::OK, chosen, bytes)
        };
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        if json != JSON {
            response.headers_mut().insert(header::ETAG, found.tag.clone());
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        }
        Ok(response)
    }
}

/// The first of the client's wishes that is on offer, by their weights; with no wish, plain JSON.
fn choose(accept: &str, offers: &[(&'static str, &'static str)]) -> Option<(&'static str, &'static str)> {
    if accept.trim().is_empty() {
        return Some((JSON, JSON));
    }
    codec::accept::ranges(accept).find_map(|wish| {
        let mut parts = wish.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        // Quality and character set do not name another document.
        let mut wanted: Vec<&str> = parts
            .filter(|it| !it.starts_with("q=") && !it.starts_with("charset=") && !it.starts_with("profile="))
            .collect();
        wanted.sort_unstable();
        offers.iter().copied().find(|(offer, _)| {
            let mut params: Vec<&str> = offer.split(';').collect();
            let is_meant = matches!(media_type, "application/*" | "*/*") || params[0] == media_type;
            params.remove(0);
            params.sort_unstable();
            is_meant && params == wanted
        })
    })
}

#[cfg(test)]
mod tests;
