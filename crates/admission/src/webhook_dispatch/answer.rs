//! What a webhook answered: read, and believed as far as Kubernetes believes it.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use corten_meta::Status;
use corten_webhook::{Review, check_uid};
use serde::Deserialize;

const V1: &str = "admission.k8s.io/v1";
const V1BETA1: &str = "admission.k8s.io/v1beta1";
/// Of all annotations of one answer, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Answer {
    /// The reason where it is a refusal.
    pub(super) refused: Option<Status>,
    /// A JSON patch; empty where there is none.
    pub(super) patch: Vec<u8>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    allowed: bool,
    status: Option<Status>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// What an answer must be to: the question's own words.
pub(super) struct Expected<'a> {
    pub(super) uid: &'a str,
    pub(super) version: &'a str,
    pub(super) webhook: &'a str,
    pub(super) may_patch: bool,
}

/// # Errors
/// What is wrong with it.
pub(super) fn read(body: &[u8], asked: &Expected<'_>) -> Result<Answer, String> {
    let broken = |reason: String| format!("failed to call webhook: {reason}");
    let invalid = |reason: String| format!("received invalid webhook response: {reason}");
    let review = Review::<Response>::decode(body).map_err(broken)?;
    review.check_kind(asked.version, "AdmissionReview").map_err(invalid)?;
    let response = review.response.ok_or_else(|| invalid("webhook response was absent".into()))?;
    if asked.version == V1 {
        check_uid(&response.uid, asked.uid).map_err(invalid)?;
    }
    let patch = response.patch.as_deref().unwrap_or_default();
    let patch = BASE64_STANDARD
        .decode(patch)
        .map_err(|it| broken(format!("couldn't get version/kind; json parse error: illegal base64 data: {it}")))?;
    check_patch(asked, &patch, response.patch_type.as_deref()).map_err(invalid)?;
    Ok(Answer {
        refused: (!response.allowed).then(|| denied(asked.webhook, response.status)),
        patch: if asked.may_patch { patch } else { Vec::new() },
        warnings: response.warnings.unwrap_or_default(),
        annotations: bounded(response.audit_annotations.unwrap_or_default()),
    })
}

/// As in `VerifyAdmissionResponse`: v1beta1 never looked at the type.
fn check_patch(asked: &Expected<'_>, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    if asked.version == V1BETA1 {
        return Ok(());
    }
    match (asked.may_patch, patch.is_empty(), patch_type) {
        (true, false, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (true, true, Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
        (true, false, Some("")) => Err("webhook returned invalid response.patchType of \"\"".into()),
        (true, false, Some(other)) if other != "JSONPatch" => Err(format!("unsupported patch type {other:?}")),
        (false, false, _) => Err("validating webhook may not return response.patch".into()),
        (false, true, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

/// As `ToStatusErr`: a refusal is one, whatever its code says.
fn denied(webhook: &str, status: Option<Status>) -> Status {
    let status = status.unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (&*status.message, &*status.reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = if (400..=599).contains(&status.code) { status.code } else { 400 };
    Status { details: status.details, ..Status::failure(code, &status.reason, message) }
}

/// What is beyond the bound is dropped, as an audit record drops what it has no room for.
fn bounded(annotations: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut left = ANNOTATIONS_BYTES_MAX;
    let mut fits = |key: &String, value: &String| {
        let size = key.len() + value.len();
        let fits = size <= left;
        // One that is too large costs the others nothing.
        left -= if fits { size } else { 0 };
        fits
    };
    annotations.into_iter().filter(|(key, value)| fits(key, value)).collect()
}
