//! Asks for a certificate: who asks is written in by the server, approvers say yes or no, a signer answers.
//!
//! After its creation only `approval` and `status` change it: the request itself stays what was approved.

mod conditions;
mod pem;
mod usages;

use corten_api::resources::CERTIFICATE_SIGNING_REQUESTS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    read::{items, text},
    rules::signer::signer_name,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    age::human_duration,
    columns::{AGE, column},
    policy::keep,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CERTIFICATE_SIGNING_REQUESTS,
    singular: "certificatesigningrequest",
    short_names: &["csr"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Approval, Subresource::Status],
    schema: "io.k8s.api.certificates.v1.CertificateSigningRequest",
    view_of: None,
    selectable_fields: &["spec.signerName"],
    columns: &[
        AGE,
        column("SignerName", "Who is to sign it.", |object, _| json!(text(object, "/spec/signerName"))),
        column("Requestor", "Who asked for it.", |object, _| json!(text(object, "/spec/username"))),
        column("RequestedDuration", "How long the certificate is to last.", |object, _| json!(duration(object))),
        column("Condition", "What became of it.", |object, _| json!(condition(object))),
    ],
    policy: &CertificateSigningRequest,
};

struct CertificateSigningRequest;

const SECONDS_MIN: i64 = 600;
/// What this signer's name stood for is said with every request since v1.
const LEGACY: &str = "kubernetes.io/legacy-unknown";

impl Policy for CertificateSigningRequest {
    /// Its validation looks at no name: whatever can stand in a path is one.
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "spec");
        keep(new, old, "status");
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |request| {
            spec(request.at("spec"));
            conditions::check(request);
        })
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |new| {
            conditions::check(new);
            conditions::changes(new, old, false);
            certificate(new, old);
        })
    }

    fn validate_approval(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |new| {
            conditions::check(new);
            conditions::changes(new, old, true);
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}

fn spec(spec: Cursor<'_>) {
    let request = spec.at("request");
    if let Err(reason) = pem::request(request.str()) {
        request.invalid(&reason);
    }
    usages::check(spec.at("usages"));
    signer(spec.at("signerName"));
    let seconds = spec.at("expirationSeconds");
    if seconds.exists() && seconds.int() < SECONDS_MIN {
        seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)");
    }
}

/// `example.com/signer`: a domain of two labels at least, and a path.
fn signer(name: Cursor<'_>) {
    if name.str() == LEGACY {
        return name.invalid("the legacy signerName is not allowed via this API version");
    }
    signer_name(name);
}

/// A certificate is written once.
fn certificate(new: Cursor<'_>, old: &Value) {
    let certificate = new.at("status").at("certificate");
    if let Err(reason) = pem::certificates(certificate.str()) {
        certificate.invalid_as("<certificate data>", &reason);
    }
    let before = old["status"]["certificate"].as_str().unwrap_or_default();
    if !before.is_empty() && before != certificate.str() {
        certificate.forbidden("updates may not modify existing certificate content");
    }
}

fn duration(object: &Value) -> String {
    object["spec"]["expirationSeconds"].as_i64().map_or_else(|| "<none>".into(), human_duration)
}

/// `Approved,Issued`, as `kubectl get csr` shows it.
fn condition(object: &Value) -> String {
    let is = |wanted: &str| items(object, "/status/conditions").iter().any(|it| it["type"] == wanted);
    let mut words = Vec::new();
    match (is("Approved"), is("Denied")) {
        (_, true) => words.push("Denied"),
        (true, false) => words.push("Approved"),
        (false, false) => words.push("Pending"),
    }
    if is("Failed") {
        words.push("Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}

#[cfg(test)]
mod tests;
