//! A certificate that a node asks for on behalf of a Pod.

mod key;
mod status;

use corten_api::resources::{POD_CERTIFICATE_REQUESTS, POD_CERTIFICATE_REQUESTS_V1BETA1};
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, inner},
    labels,
    read::{entries, items, text},
    rules::{self, signer::signer_name},
};
use serde_json::{Value, json};

use crate::{BuiltIn, Policy, Subresource, Verb, ViewOf, columns::column};

/// Stored in this version, which has a field more than the newer one.
pub(crate) const V1BETA1: BuiltIn = BuiltIn {
    resource: POD_CERTIFICATE_REQUESTS_V1BETA1,
    singular: "podcertificaterequest",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.certificates.v1beta1.PodCertificateRequest",
    view_of: None,
    selectable_fields: &["spec.signerName", "spec.podName", "spec.nodeName"],
    columns: &[
        column("PodName", "The Pod it is for.", |object, _| json!(text(object, "/spec/podName"))),
        column("ServiceAccountName", "The Pod's service account.", |object, _| {
            json!(text(object, "/spec/serviceAccountName"))
        }),
        column("NodeName", "The Pod's node.", |object, _| json!(text(object, "/spec/nodeName"))),
        column("SignerName", "Who is to sign.", |object, _| json!(text(object, "/spec/signerName"))),
        column("State", "Whether it is signed.", |object, _| json!(state(object))),
        column("UnverifiedUserAnnotations", "How many annotations the Pod's author gave.", |object, _| {
            json!(entries(object, "/spec/unverifiedUserAnnotations").to_string())
        }),
    ],
    policy: &PodCertificateRequest,
};

pub(crate) const KIND: BuiltIn = BuiltIn::view(
    POD_CERTIFICATE_REQUESTS,
    "io.k8s.api.certificates.v1.PodCertificateRequest",
    ViewOf::converted(POD_CERTIFICATE_REQUESTS_V1BETA1, |_| {}, without_bare_key),
    V1BETA1,
);

/// How requests proved to own their key before they carried a PKCS #10 request.
fn without_bare_key(request: &mut Value) {
    if let Some(spec) = request["spec"].as_object_mut() {
        spec.shift_remove("pkixPublicKey");
        spec.shift_remove("proofOfPossession");
    }
}

fn state(request: &Value) -> &'static str {
    let holds = |kind: &&'static str| {
        items(request, "/status/conditions").iter().any(|it| it["type"] == **kind && it["status"] == "True")
    };
    ["Issued", "Denied", "Failed"].into_iter().find(holds).unwrap_or("Pending")
}

struct PodCertificateRequest;

const UID_BYTES_MAX: usize = 128;
const SHORTEST_SECONDS: i64 = 3600;
const LONGEST_SECONDS: i64 = 91 * 86400;
const LONGEST_OWN_SECONDS: i64 = 86400;

impl Policy for PodCertificateRequest {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.as_object_mut().and_then(|it| inner(it, "spec")) {
            fill(spec, "maxExpirationSeconds", LONGEST_OWN_SECONDS);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |request| {
            let spec = request.at("spec");
            signer_name(spec.at("signerName"));
            for name in ["podName", "serviceAccountName", "nodeName"] {
                spec.at(name).follows(field::dns1123_subdomain);
            }
            for uid in ["podUID", "serviceAccountUID", "nodeUID"].map(|it| spec.at(it)) {
                if uid.required() && uid.str().len() > UID_BYTES_MAX {
                    uid.report(Violation::too_long(uid.path(), UID_BYTES_MAX));
                }
            }
            expiration(spec);
            key::validate(spec);
            labels::user_annotations(spec.at("unverifiedUserAnnotations"));
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |request| rules::immutable(request.at("spec"), &old["spec"]))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |request| status::validate(request, old))
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn expiration(spec: Cursor<'_>) {
    let seconds = spec.at("maxExpirationSeconds");
    if !seconds.exists() {
        return seconds.missing("must be set");
    }
    let own = spec.at("signerName").str().starts_with("kubernetes.io/");
    let longest = if own { LONGEST_OWN_SECONDS } else { LONGEST_SECONDS };
    if !(SHORTEST_SECONDS..=longest).contains(&seconds.int()) {
        seconds.invalid(&format!("must be in the range [{SHORTEST_SECONDS}, {longest}]"));
    }
}
