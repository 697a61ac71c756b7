//! The review that a webhook answers with: an AdmissionReview, a ConversionReview.

use corten_meta::depth;
use serde::{Deserialize, de::DeserializeOwned};

use crate::excerpt;

/// Of an answer that must be read in two steps, as JSON and as what it should be.
const TREE_BYTES_MAX: usize = 64 * 1024;

/// A review whose `response` is of type `R`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<R> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    pub response: Option<R>,
}

impl<R: DeserializeOwned> Review<R> {
    /// # Errors
    /// The body is no JSON, nested too deeply, or has a field of another type, in upstream's words.
    pub fn decode(body: &[u8]) -> Result<Self, String> {
        // An error may quote all of what was answered.
        let broken = |reason: &str| format!("couldn't get version/kind; json parse error: {}", excerpt(reason));
        let reason = match corten_meta::from_json(body) {
            Ok(review) => return Ok(review),
            Err(error) => depth::reason(&error),
        };
        // A tree of values is many times as large as its text. It is made of what says a field twice, where that is small, and of
        // objects that are as deep as they may be.
        if reason != depth::EXCEEDED && body.len() > TREE_BYTES_MAX {
            return Err(broken(&reason));
        }
        let read = depth::read_answer(body).map_err(|it| broken(&depth::reason(&it)))?;
        if !read.is_whole {
            return Err(broken("it is nested too deeply"));
        }
        Self::deserialize(read.value).map_err(|it| broken(&it.to_string()))
    }
}

impl<R> Review<R> {
    /// Checks that the answer is of the kind and version that was asked with.
    ///
    /// # Errors
    /// It is of another, in upstream's words.
    pub fn check_kind(&self, api_version: &str, kind: &str) -> Result<(), String> {
        if self.api_version == api_version && self.kind == kind {
            return Ok(());
        }
        Err(format!(
            "expected webhook response of {api_version}, Kind={kind}, got {}, Kind={}",
            excerpt(&self.api_version),
            excerpt(&self.kind)
        ))
    }
}

/// Checks that the answer is to the question with this uid.
///
/// # Errors
/// It is to another, in upstream's words.
pub fn check_uid(found: &str, expected: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("expected response.uid={expected:?}, got {:?}", excerpt(found)))
}
