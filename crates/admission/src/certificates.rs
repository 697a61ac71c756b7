//! Guards signing requests: who asks is written in, only who may approves and signs, and nobody asks for the power over all.

mod of_pods;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_access::{Attributes as Question, MASTERS, ResourceOrPath};
use corten_api::resources::{CERTIFICATE_SIGNING_REQUESTS, CLUSTER_TRUST_BUNDLES};
use corten_cacher::body::BoxFuture;
use corten_kinds::Subresource;
use corten_meta::Status;
use serde_json::{Value, json};
use x509_parser::{certification_request::X509CertificationRequest, pem::Pem, prelude::FromDer};

use super::{Admission, Attributes, Operation, refusal::forbidden};

/// Fills in who asks, and when something was said of a request.
pub(crate) struct CertificateRequester;

pub(crate) use of_pods::PodCertificateSigning;

/// Upstream's plugin of this name: `approve` on the signer.
pub(crate) struct CertificateApproval;

/// Upstream's plugin of this name: `sign` on the signer.
pub(crate) struct CertificateSigning;

/// Upstream's plugin of this name.
pub(crate) struct CertificateSubjectRestriction;

/// Upstream's plugin of this name: `attest` on the signer whose roots a bundle holds.
pub(crate) struct ClusterTrustBundleAttest;

fn is_about(request: &Attributes<'_>, subresource: Option<Subresource>, operation: Operation) -> bool {
    request.kind.resource == CERTIFICATE_SIGNING_REQUESTS
        && request.subresource == subresource
        && request.operation == operation
}

impl Admission for CertificateRequester {
    fn name(&self) -> &'static str {
        "CertificateRequester"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if is_about(request, None, Operation::Create) {
                sign_with_asker(request, object);
            }
            let said = [Subresource::Approval, Subresource::Status];
            if said.iter().any(|it| is_about(request, Some(*it), Operation::Update)) {
                let now = request.cluster.now().to_string();
                date(&mut object["status"]["conditions"], request.old, &now);
            }
            Ok(())
        })
    }
}

fn sign_with_asker(request: &Attributes<'_>, object: &mut Value) {
    let who = request.who;
    let Some(spec) = object["spec"].as_object_mut() else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.shift_remove(field);
    }
    spec.insert("username".into(), json!(who.user));
    if !who.uid.is_empty() {
        spec.insert("uid".into(), json!(who.uid));
    }
    if !who.groups.is_empty() {
        spec.insert("groups".into(), json!(who.groups));
    }
    if !who.extra.is_empty() {
        spec.insert("extra".into(), json!(who.extra));
    }
}

/// A condition without times was said now.
fn date(conditions: &mut Value, old: Option<&Value>, now: &str) {
    for condition in conditions.as_array_mut().into_iter().flatten() {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if condition["lastTransitionTime"].is_null() {
            let before = old.and_then(|it| it["status"]["conditions"].as_array()).into_iter().flatten();
            let same = |it: &&Value| it["type"] == condition["type"] && it["status"] == condition["status"];
            let since = before.into_iter().find(same).map(|it| it["lastTransitionTime"].clone());
            condition["lastTransitionTime"] = since.filter(|it| !it.is_null()).unwrap_or_else(|| json!(now));
        }
    }
}

impl Admission for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !is_about(request, Some(Subresource::Approval), Operation::Update) {
                return Ok(());
            }
            allowed(request, object, "approve", "approve requests with").await
        })
    }
}

impl Admission for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !is_about(request, Some(Subresource::Status), Operation::Update) {
                return Ok(());
            }
            let same = |field: &str| request.old.is_some_and(|it| it["status"][field] == object["status"][field]);
            if same("certificate") && same("conditions") {
                return Ok(());
            }
            allowed(request, object, "sign", "sign requests with").await
        })
    }
}

/// May the writer do this with the signer? The stored object says which signer: what is written could name another.
async fn allowed(request: &Attributes<'_>, object: &Value, verb: &str, what: &str) -> Result<(), Status> {
    let signer = request.old.unwrap_or(object)["spec"]["signerName"].as_str().unwrap_or_default();
    if may(request, verb, signer).await {
        return Ok(());
    }
    Err(forbidden(request, object, &format!("user not permitted to {what} signerName {signer:?}")))
}

/// A signer by its name, or all of its domain.
async fn may(request: &Attributes<'_>, verb: &str, signer: &str) -> bool {
    let who = request.who;
    let all = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &*all] {
        let target = ResourceOrPath::Resource {
            group: "certificates.k8s.io",
            resource: "signers",
            subresource: "",
            namespace: "",
            name,
        };
        let question = Question { verb, target, ..Question::of(who) };
        if request.cluster.access.decide(&question).await.is_allowed() {
            return true;
        }
    }
    false
}

impl Admission for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
        Box::pin(async move {
            let is_new = is_about(request, None, Operation::Create);
            if !is_new || object["spec"]["signerName"] != SIGNER || !names_masters(&object["spec"]["request"]) {
                return Ok(());
            }
            let reason = format!("use of {SIGNER} signer with {MASTERS} group is not allowed");
            Err(forbidden(request, object, &reason))
        })
    }
}

fn names_masters(request: &Value) -> bool {
    let text = STANDARD.decode(request.as_str().unwrap_or_default()).unwrap_or_default();
    let Some(Ok(block)) = Pem::iter_from_buffer(&text).next() else { return false };
    let Ok((_, parsed)) = X509CertificationRequest::from_der(&block.contents) else { return false };
    let mut organizations = parsed.certification_request_info.subject.iter_organization();
    // As text of two or four bytes each letter it is the same text to who reads those.
    organizations.any(|it| it.as_slice().iter().copied().filter(|it| *it != 0).eq(MASTERS.bytes()))
}

impl Admission for ClusterTrustBundleAttest {
    fn name(&self) -> &'static str {
        "ClusterTrustBundleAttest"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            if request.kind.resource != CLUSTER_TRUST_BUNDLES || !writes || request.old == Some(object) {
                return Ok(());
            }
            let signer = object["spec"]["signerName"].as_str().unwrap_or_default();
            if signer.is_empty() || may(request, "attest", signer).await {
                return Ok(());
            }
            Err(forbidden(request, object, &format!("user not permitted to attest for signerName {signer:?}")))
        })
    }
}
