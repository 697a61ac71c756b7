//! What a request can be asked for beside its object: selectors, pages, preconditions, patch formats.

use corten_meta::Status;
use serde_json::{Map, Value, json};

/// Which objects a list answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListParams {
    /// Empty: every namespace.
    pub namespace: String,
    pub label_selector: String,
    pub field_selector: String,
    /// Empty: the newest state.
    pub resource_version: String,
    /// Objects per page; 0: all at once.
    pub limit: u32,
    /// From the page before.
    pub continue_token: String,
}

/// Which changes a watch sends, and from when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchParams {
    /// Empty: every namespace.
    pub namespace: String,
    pub label_selector: String,
    pub field_selector: String,
    /// Changes after this one; empty: the present objects first, then changes.
    pub resource_version: String,
    pub bookmarks: bool,
    /// A bookmark soon after every change of anything, of other resources too: so streams can be compared. Corten's own servers
    /// send them, others ignore this.
    pub progress: bool,
    /// The server ends the watch after this long; 0: it decides.
    pub timeout_seconds: u32,
}

/// How a patch's body is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes's own: lists merge by keys.
    Strategic,
    /// Server-side apply by this field manager.
    Apply { manager: String, force: bool },
}

impl PatchType {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply { .. } => "application/apply-patch+yaml",
        }
    }
}

/// How an object goes, and which object it must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteParams {
    pub grace_seconds: Option<i64>,
    /// `Background`, `Foreground`, `Orphan`; empty: the kind's own.
    pub propagation: &'static str,
    /// Refuse with a conflict unless the object has this uid.
    pub uid: Option<String>,
    /// Refuse with a conflict unless the object is at this version.
    pub resource_version: Option<String>,
}

impl DeleteParams {
    pub(crate) fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("kind".into(), "DeleteOptions".into());
        body.insert("apiVersion".into(), "v1".into());
        if let Some(grace) = self.grace_seconds {
            body.insert("gracePeriodSeconds".into(), grace.into());
        }
        if !self.propagation.is_empty() {
            body.insert("propagationPolicy".into(), self.propagation.into());
        }
        let mut preconditions = Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid".into(), json!(uid));
        }
        if let Some(version) = &self.resource_version {
            preconditions.insert("resourceVersion".into(), json!(version));
        }
        if !preconditions.is_empty() {
            body.insert("preconditions".into(), preconditions.into());
        }
        Value::Object(body)
    }
}

/// A path with its query, percent-encoded as a form.
pub(crate) struct Url {
    text: String,
    separator: char,
}

impl Url {
    pub(crate) fn new(path: String) -> Self {
        Self { text: path, separator: '?' }
    }

    /// Adds `name=value` unless the value is empty.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.text.push(self.separator);
            self.text.push_str(name);
            self.text.push('=');
            self.text.extend(form_urlencoded::byte_serialize(value.as_bytes()));
            self.separator = '&';
        }
        self
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

impl ListParams {
    pub(crate) fn url(&self, path: String) -> String {
        let limit = if self.limit == 0 { String::new() } else { self.limit.to_string() };
        Url::new(path)
            .with("labelSelector", &self.label_selector)
            .with("fieldSelector", &self.field_selector)
            .with("resourceVersion", &self.resource_version)
            .with("limit", &limit)
            .with("continue", &self.continue_token)
            .finish()
    }
}

impl WatchParams {
    pub(crate) fn url(&self, path: String) -> String {
        let timeout = if self.timeout_seconds == 0 { String::new() } else { self.timeout_seconds.to_string() };
        Url::new(path)
            .with("watch", "true")
            .with("labelSelector", &self.label_selector)
            .with("fieldSelector", &self.field_selector)
            .with("resourceVersion", &self.resource_version)
            .with("allowWatchBookmarks", if self.bookmarks { "true" } else { "" })
            .with("progressBookmarks", if self.progress { "true" } else { "" })
            .with("timeoutSeconds", &timeout)
            .finish()
    }
}

/// The status in an answer that is not 2xx; made up from the code where a proxy answered in its own words.
pub(crate) fn status_of(code: u16, body: &[u8]) -> Status {
    if let Ok(status) = serde_json::from_slice::<Status>(body)
        && status.kind == "Status"
    {
        return Status { code: if status.code == 0 { code } else { status.code }, ..status };
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(1024)]);
    let text = text.trim();
    let message = if text.is_empty() {
        format!("the server answered {code} without saying why")
    } else {
        format!("the server answered {code}: {text}")
    };
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        500.. => "InternalError",
        _ => "Unknown",
    };
    Status::failure(code, reason, message)
}
