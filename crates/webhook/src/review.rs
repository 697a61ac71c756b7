//! The review that a webhook answers with: an AdmissionReview, a ConversionReview.

use corten_meta::depth;
use serde::{Deserialize, de::DeserializeOwned};

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
        // What is flat is read into its type at once. Whatever is wrong with it is said in the words of the way below.
        if depth::of_text(body) <= depth::LEVELS_MAX
            && let Ok(review) = corten_meta::from_json(body)
        {
            return Ok(review);
        }
        let broken = |reason: &str| format!("couldn't get version/kind; json parse error: {reason}");
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
            self.api_version, self.kind
        ))
    }
}

/// Checks that the answer is to the question with this uid.
///
/// # Errors
/// It is to another, in upstream's words.
pub fn check_uid(found: &str, expected: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("expected response.uid={expected:?}, got {found:?}")) }
}
