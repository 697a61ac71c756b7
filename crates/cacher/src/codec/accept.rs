//! What form of answer the `Accept` header asks for.

use corten_meta::Status;
use corten_routes::Query;
use http::{HeaderMap, HeaderName, header::ACCEPT};

/// The forms an object or list can be sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Object,
    Table(Include),
    /// `PartialObjectMetadata` and its list.
    Partial,
}

/// What each row of a table carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    None,
    Metadata,
    Object,
}

/// What objects, and what is said of them, can be had as.
pub const SUPPORTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

impl Form {
    /// The first form in the header that is served, in order of its weights.
    ///
    /// # Errors
    /// 406 where none is.
    pub fn of(headers: &HeaderMap, query: &Query) -> Result<Self, Status> {
        let accept = header(headers, &ACCEPT);
        if accept.trim().is_empty() {
            return Ok(Self::Object);
        }
        let form = ranges(accept).find_map(|it| Self::of_range(it, query));
        form.unwrap_or_else(|| Err(Status::not_acceptable(SUPPORTED)))
    }

    /// Of what has no table.
    ///
    /// # Errors
    /// 406 where nothing else is wanted.
    pub fn without_table(headers: &HeaderMap, query: &Query) -> Result<(), Status> {
        match Self::of(headers, query)? {
            Self::Table(_) => Err(Status::not_acceptable(SUPPORTED)),
            Self::Object | Self::Partial => Ok(()),
        }
    }

    /// What a range asks for; `None` where that is not to be had as JSON.
    pub(super) fn of_range(range: &str, query: &Query) -> Option<Result<Self, Status>> {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next()?;
        if !matches!(media_type, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let parameter = |name: &str| {
            let mut parts = range.split(';').skip(1).filter_map(|it| it.trim().split_once('='));
            parts.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let Some(target) = parameter("as") else { return Some(Ok(Self::Object)) };
        if parameter("g") != Some("meta.k8s.io") || parameter("v") != Some("v1") {
            return None;
        }
        match target {
            "Table" => Some(Include::of(query).map(Self::Table)),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(Ok(Self::Partial)),
            _ => None,
        }
    }
}

impl Include {
    fn of(query: &Query) -> Result<Self, Status> {
        match query.get("includeObject") {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Status::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

/// A header's text; empty where it is not there, or is none.
pub fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
}

/// What a client takes, best first.
pub fn ranges(accept: &str) -> impl Iterator<Item = &str> {
    let mut ranges: Vec<&str> = accept.split(',').collect();
    ranges.sort_by_key(|it| (-weight(it), wildcards(it)));
    ranges.into_iter()
}

/// Of two ranges of one weight the one that says more goes first.
fn wildcards(range: &str) -> usize {
    media_type(range).split('/').filter(|it| *it == "*").count()
}

/// A range without its parameters.
pub fn media_type(range: &str) -> &str {
    range.split(';').next().unwrap_or_default().trim()
}

/// In thousandths; 1000 where none is given.
fn weight(range: &str) -> i64 {
    let text = range.split(';').skip(1).find_map(|it| it.trim().strip_prefix("q="));
    let Some(text) = text else { return 1000 };
    let digits: String = text.replacen('.', "", 1).chars().chain("000".chars()).take(4).collect();
    digits.parse().unwrap_or(1000)
}
