//! What a webhook answered: read, and believed as far as Kubernetes believes it.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use corten_meta::{Cause, Details, Status, Violation};
use corten_schema::patch::n_operations;
use corten_webhook::{Review, check_uid, excerpt};
use serde::Deserialize;

use super::first::First;

const V1: &str = "admission.k8s.io/v1";
const V1BETA1: &str = "admission.k8s.io/v1beta1";
/// Of all annotations of one answer, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 64 * 1024;
/// More of them have no room in headers, even if each is one character.
const WARNINGS_MAX: usize = 4096;
/// As many as the server finds by itself.
const CAUSES_MAX: usize = Violation::MOST;

/// As much of it as counts.
pub struct Answer {
    /// The reason where it is a refusal.
    pub refused: Option<Status>,
    /// A JSON patch; empty where there is none, or none that does anything.
    pub patch: Vec<u8>,
    pub warnings: Vec<String>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    allowed: bool,
    status: Option<Refusal>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<First<String, WARNINGS_MAX>>,
}

/// What counts of a Status.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Refusal {
    message: String,
    reason: String,
    code: u16,
    details: Option<RefusalDetails>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RefusalDetails {
    name: String,
    group: String,
    kind: String,
    uid: String,
    causes: Option<First<Cause, CAUSES_MAX>>,
    retry_after_seconds: Option<u32>,
}

impl From<RefusalDetails> for Details {
    fn from(it: RefusalDetails) -> Self {
        let RefusalDetails { name, group, kind, uid, causes, retry_after_seconds } = it;
        Self { name, group, kind, uid, causes: causes.unwrap_or_default().0, retry_after_seconds }
    }
}

/// What an answer must be to: the question's own words.
pub struct Expected<'a> {
    pub uid: &'a str,
    pub version: &'a str,
    pub webhook: &'a str,
    pub may_patch: bool,
}

/// Reads an AdmissionReview (admission.k8s.io/v1 and v1beta1).
///
/// # Errors
/// What is wrong with it.
pub fn read(body: &[u8], asked: &Expected<'_>) -> Result<Answer, String> {
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
        patch: if asked.may_patch && n_operations(&patch) != Ok(0) { patch } else { Vec::new() },
        warnings: response.warnings.unwrap_or_default().0,
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
        (true, false, Some(other)) if other != "JSONPatch" => {
            Err(format!("unsupported patch type {:?}", excerpt(other)))
        }
        (false, false, _) => Err("validating webhook may not return response.patch".into()),
        (false, true, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

/// As `ToStatusErr`: a refusal is one, whatever its code says.
fn denied(webhook: &str, status: Option<Refusal>) -> Status {
    let status = status.unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (&*status.message, &*status.reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = if (400..=599).contains(&status.code) { status.code } else { 400 };
    Status { details: status.details.map(Details::from), ..Status::failure(code, &status.reason, message) }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_of(version: &str, may_patch: bool, response: Value) -> Result<Answer, String> {
        let review = json!({ "kind": "AdmissionReview", "apiVersion": version, "response": response });
        let asked = Expected { uid: "u", version, webhook: "w.example.com", may_patch };
        read(review.to_string().as_bytes(), &asked)
    }

    #[test]
    fn a_patch_is_one_of_a_mutating_webhook_and_says_its_type() {
        let patch = BASE64_STANDARD.encode("[{}]");
        let nothing = BASE64_STANDARD.encode(" [ ] ");
        for (version, may_patch, response, expected) in [
            (V1, true, json!({ "patch": patch, "patchType": "JSONPatch" }), Ok(4)),
            (V1, true, json!({ "patch": nothing, "patchType": "JSONPatch" }), Ok(0)),
            (V1, true, json!({}), Ok(0)),
            (V1, true, json!({ "patch": patch }), Err("response.patch but not response.patchType")),
            (V1, true, json!({ "patchType": "JSONPatch" }), Err("response.patchType but not response.patch")),
            (V1, true, json!({ "patch": patch, "patchType": "" }), Err("invalid response.patchType of \"\"")),
            (V1, true, json!({ "patch": patch, "patchType": "Merge" }), Err("unsupported patch type \"Merge\"")),
            (V1, true, json!({ "patch": "no base64!", "patchType": "JSONPatch" }), Err("illegal base64 data")),
            (V1, false, json!({ "patch": patch }), Err("validating webhook may not return response.patch")),
            (
                V1,
                false,
                json!({ "patchType": "JSONPatch" }),
                Err("validating webhook may not return response.patchType"),
            ),
            (V1BETA1, true, json!({ "patch": patch }), Ok(4)),
            (V1BETA1, false, json!({ "patch": patch }), Ok(0)),
        ] {
            let mut response = response;
            response["uid"] = "u".into();
            response["allowed"] = true.into();
            let found = read_of(version, may_patch, response.clone()).map(|it| it.patch.len());
            match (&found, expected) {
                (Ok(n), Ok(wanted)) => assert_eq!(*n, wanted, "{response}"),
                (Err(reason), Err(wanted)) => assert!(reason.contains(wanted), "{response}: {reason}"),
                _ => panic!("{version} {response}: {found:?}"),
            }
        }
        for (version, is_read) in [(V1, false), (V1BETA1, true)] {
            let found = read_of(version, true, json!({ "uid": "other", "allowed": true }));
            assert_eq!(found.is_ok(), is_read, "{version}");
        }
    }

    #[test]
    fn a_refusal_is_one_whatever_its_code_says() {
        let denied = "admission webhook \"w.example.com\" denied the request";
        for (status, code, message) in [
            (Value::Null, 400, format!("{denied} without explanation")),
            (json!({ "reason": "Forbidden" }), 400, format!("{denied}: Forbidden")),
            (json!({ "message": "no", "reason": "Forbidden", "code": 403 }), 403, format!("{denied}: no")),
            (json!({ "message": "no", "code": 200 }), 400, format!("{denied}: no")),
            (json!({ "message": "no", "code": 600 }), 400, format!("{denied}: no")),
        ] {
            let found = read_of(V1, true, json!({ "uid": "u", "status": status }));
            let refused = found.ok().and_then(|it| it.refused).expect("it refuses");
            assert_eq!((refused.code, &*refused.message), (code, &*message), "{status}");
        }
    }

    #[test]
    fn of_long_lists_the_first_are_read() {
        let many = json!({ "uid": "u", "warnings": vec!["w"; 1_000_000], "status": {
            "metadata": { "not": vec![0; 1_000_000] }, "details": { "kind": "k", "causes": vec![json!({}); 1_000_000] } } });
        let found = read_of(V1, true, many).expect("an answer");
        let details = found.refused.and_then(|it| it.details).expect("details");
        assert_eq!((found.warnings.len(), details.causes.len(), &*details.kind), (WARNINGS_MAX, CAUSES_MAX, "k"));
        for causes in [json!(null), json!([]), json!([{ "message": "m" }])] {
            let n = causes.as_array().map_or(0, Vec::len);
            let few = json!({ "uid": "u", "status": { "details": { "causes": causes } } });
            let details = read_of(V1, true, few).ok().and_then(|it| it.refused?.details).expect("details");
            assert_eq!(details.causes.len(), n);
        }
    }

    #[test]
    fn annotations_have_a_bound_and_a_large_one_costs_the_others_nothing() {
        let all = [("a", 10), ("b", ANNOTATIONS_BYTES_MAX), ("c", 20), ("d", ANNOTATIONS_BYTES_MAX - 40)];
        let kept = bounded(all.map(|(key, n)| (key.to_owned(), "x".repeat(n))).into());
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a", "c", "d"]);
    }
}
