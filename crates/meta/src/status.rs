//! `metav1.Status`: the one error on the wire, built where its facts are known.

use serde::{Deserialize, Serialize};

use crate::{Resource, Violation, aggregate};

/// What an answer says about broken rules has so much room.
const VIOLATIONS_BYTES_MAX: usize = 256 << 10;

/// An API answer that is not an object: an error with its HTTP code, or a plain success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", default)]
#[error("{message}")]
pub struct Status {
    pub kind: String,
    pub api_version: String,
    pub metadata: serde_json::Map<String, serde_json::Value>,
    pub status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// Absent where it is 0: some answers of success say none.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: u16,
}

fn is_zero(code: &u16) -> bool {
    *code == 0
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// Does the same request stand a chance?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The request itself is wrong.
    Never,
    /// Read again and decide anew at once (a conflict).
    Now,
    /// The server is busy or starting: wait, then try the same again.
    After,
}

impl Status {
    /// A failure with any code and reason; prefer the named constructors below.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: "Status".into(),
            api_version: "v1".into(),
            status: "Failure".into(),
            message: message.into(),
            reason: reason.into(),
            code,
            ..Self::default()
        }
    }

    pub fn success() -> Self {
        Self { kind: "Status".into(), api_version: "v1".into(), status: "Success".into(), code: 200, ..Self::default() }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::failure(401, "Unauthorized", "Unauthorized")
    }

    /// `detail` says who may not do what: `User "x" cannot list resource "pods" in API group "" ...`.
    pub fn forbidden(resource: &Resource, name: &str, detail: &str) -> Self {
        let subject = quoted(&resource.qualified(), name);
        Self::failure(403, "Forbidden", format!("{subject} is forbidden: {detail}")).about(resource, name)
    }

    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let subject = quoted(&resource.qualified(), name);
        Self::failure(404, "NotFound", format!("{subject} not found")).about(resource, name)
    }

    /// No such path.
    pub fn no_such_path() -> Self {
        let mut status = Self::failure(404, "NotFound", "the server could not find the requested resource");
        status.details = Some(Details::default());
        status
    }

    pub fn method_not_allowed(resource: &Resource, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", resource.qualified());
        Self::failure(405, "MethodNotAllowed", message).about(resource, "")
    }

    pub fn not_acceptable(supported: &str) -> Self {
        let message = format!("only the following media types are accepted: {supported}");
        Self::failure(406, "NotAcceptable", message)
    }

    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let subject = quoted(&resource.qualified(), name);
        Self::failure(409, "AlreadyExists", format!("{subject} already exists")).about(resource, name)
    }

    pub fn conflict(resource: &Resource, name: &str, detail: &str) -> Self {
        let subject = quoted(&resource.qualified(), name);
        let message = format!("Operation cannot be fulfilled on {subject}: {detail}");
        Self::failure(409, "Conflict", message).about(resource, name)
    }

    /// The conflict of a stale `resourceVersion`.
    pub fn stale(resource: &Resource, name: &str) -> Self {
        let detail = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, detail)
    }

    /// A watch or list from a revision that is no longer (410, `Expired`).
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::failure(413, "RequestEntityTooLarge", message)
    }

    pub fn unsupported_media_type(supported: &str, got: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {supported} (got {got:?})"
        );
        Self::failure(415, "UnsupportedMediaType", message)
    }

    /// The object breaks rules: all of them, each as a cause with its field, as far as an answer of bounded size has room.
    pub fn invalid(resource: &Resource, name: &str, violations: &[Violation]) -> Self {
        let violations = told(violations);
        let list = aggregate(violations.iter().map(Violation::to_string)).unwrap_or_else(|| "[]".to_owned());
        let kind = if resource.group.is_empty() {
            resource.kind.to_string()
        } else {
            format!("{}.{}", resource.kind, resource.group)
        };
        let causes = violations
            .iter()
            .map(|it| Cause { reason: it.rule.reason().into(), message: it.message.clone(), field: it.path.clone() })
            .collect();
        let mut status = Self::failure(422, "Invalid", format!("{kind} {name:?} is invalid: {list}"));
        status.details = Some(Details {
            name: name.into(),
            group: resource.group.to_string(),
            kind: resource.kind.to_string(),
            causes,
            ..Details::default()
        });
        status
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Self::failure(429, "TooManyRequests", message);
        status.details = Some(Details { retry_after_seconds: Some(retry_after_seconds), ..Details::default() });
        status
    }

    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        let mut status = Self::failure(500, "InternalError", format!("Internal error occurred: {text}"));
        status.details =
            Some(Details { causes: vec![Cause { message: text, ..Cause::default() }], ..Details::default() });
        status
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, "ServiceUnavailable", message)
    }

    pub fn timeout(message: impl Into<String>) -> Self {
        Self::failure(504, "Timeout", message)
    }

    /// Names the object (and the resource's plural, which stands in `details.kind`) the status is about.
    #[must_use]
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.name = name.into();
        details.group = resource.group.to_string();
        details.kind = resource.plural.to_string();
        self
    }

    pub fn is_success(&self) -> bool {
        self.status == "Success"
    }

    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason == "Conflict"
    }

    pub fn is_already_exists(&self) -> bool {
        self.code == 409 && self.reason == "AlreadyExists"
    }

    pub fn retry(&self) -> Retry {
        match self.code {
            409 => Retry::Now,
            429 | 500 | 503 | 504 => Retry::After,
            _ => Retry::Never,
        }
    }
}

/// As many of the violations as an answer has room for, and one that says so where there are more.
fn told(violations: &[Violation]) -> Vec<Violation> {
    let mut room = VIOLATIONS_BYTES_MAX;
    let mut told = Vec::new();
    for violation in violations.iter().take(Violation::MOST + 1).map(|it| it.clone().bounded()) {
        let size = violation.path.len() + violation.message.len();
        if size > room {
            break;
        }
        room -= size;
        told.push(violation);
    }
    if told.len() < violations.len() {
        told.push(Violation::and_more(told.len()));
    }
    told
}

fn quoted(resource: &str, name: &str) -> String {
    if name.is_empty() { resource.to_owned() } else { format!("{resource} {name:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "Deployment", "deployments");

    #[test]
    fn says_what_kubernetes_says() {
        let violations = [Violation::invalid("spec.replicas", -1, "must be greater than or equal to 0")];
        for (status, code, message) in [
            (Status::not_found(&DEPLOYMENTS, "web"), 404, r#"deployments.apps "web" not found"#),
            (Status::already_exists(&DEPLOYMENTS, "web"), 409, r#"deployments.apps "web" already exists"#),
            (
                Status::stale(&DEPLOYMENTS, "web"),
                409,
                r#"Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again"#,
            ),
            (
                Status::invalid(&DEPLOYMENTS, "web", &violations),
                422,
                r#"Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
            ),
        ] {
            assert_eq!((status.code, &*status.message), (code, message));
        }
    }

    #[test]
    fn tells_a_bounded_part_of_many_violations() {
        let short = vec![Violation::required("spec.x", ""); 1_000_000];
        let long = vec![Violation::invalid("spec.x", "x".repeat(1 << 20), ""); 1000];
        for violations in [short, long] {
            let status = Status::invalid(&DEPLOYMENTS, "web", &violations);
            let causes = status.details.expect("an invalid object has details").causes;
            assert!(causes.len() <= Violation::MOST + 2, "{}", causes.len());
            assert!(status.message.len() <= 2 * VIOLATIONS_BYTES_MAX, "{}", status.message.len());
            assert!(status.message.ends_with("violations are listed]"));
        }
    }
}
