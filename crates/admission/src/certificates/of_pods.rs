//! Guards PodCertificateRequests: who asks holds the key, only who may sign answers, and a certificate begins about now.
//! Upstream has these rules in the kind's storage.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::POD_CERTIFICATE_REQUESTS_V1BETA1;
use corten_cacher::body::BoxFuture;
use corten_kinds::Subresource;
use corten_meta::{Status, Time, Violation};
use serde_json::{Value, json};

use super::may;
use crate::{Admission, Attributes, Operation};

pub(crate) struct PodCertificateSigning;

/// How far the beginning of a certificate may be from now.
const BEGIN_MARGIN: Duration = Duration::from_secs(300);

impl Admission for PodCertificateSigning {
    fn name(&self) -> &'static str {
        "PodCertificateSigning"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if is_answer(request) {
                let now = request.cluster.now().to_string();
                date(&mut object["status"]["conditions"], request.old, &now);
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_new = request.kind.resource == POD_CERTIFICATE_REQUESTS_V1BETA1
                && request.subresource.is_none()
                && request.operation == Operation::Create;
            let violation = if is_new {
                unproven(&object["spec"])
            } else if is_answer(request) && request.old.is_some_and(|it| it["status"] != object["status"]) {
                unfit(request, object).await
            } else {
                None
            };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            match violation {
                Some(it) => Err(Status::invalid(&request.kind.resource, name, &[it])),
                None => Ok(()),
            }
        })
    }
}

fn is_answer(request: &Attributes<'_>) -> bool {
    request.kind.resource == POD_CERTIFICATE_REQUESTS_V1BETA1
        && request.subresource == Some(Subresource::Status)
        && request.operation == Operation::Update
}

/// A condition without a time was said now.
fn date(conditions: &mut Value, old: Option<&Value>, now: &str) {
    for condition in conditions.as_array_mut().into_iter().flatten().filter(|it| it.is_object()) {
        if condition["lastTransitionTime"].is_null() {
            let before = old.and_then(|it| it["status"]["conditions"].as_array()).into_iter().flatten();
            let same = |it: &&Value| it["type"] == condition["type"] && it["status"] == condition["status"];
            let since = before.into_iter().find(same).map(|it| it["lastTransitionTime"].clone());
            condition["lastTransitionTime"] = since.filter(|it| !it.is_null()).unwrap_or_else(|| json!(now));
        }
    }
}

/// What cannot be read is the kind's to refuse.
fn unproven(spec: &Value) -> Option<Violation> {
    let bytes = |field: &str| STANDARD.decode(spec[field].as_str().unwrap_or_default()).unwrap_or_default();
    let stub = bytes("stubPKCS10Request");
    let (path, is_proven, detail) = if stub.is_empty() {
        let message = spec["podUID"].as_str().unwrap_or_default().as_bytes();
        let is_proven = corten_pki::is_proven(&bytes("pkixPublicKey"), message, &bytes("proofOfPossession"));
        let detail = "could not verify proof-of-possession signature (of RSA keys it cannot be: use stubPKCS10Request)";
        ("spec.proofOfPossession", is_proven, detail)
    } else {
        let detail = "could not verify the signature of the PKCS#10 CSR";
        ("spec.stubPKCS10Request", corten_pki::is_signed_by_its_key(&stub), detail)
    };
    let message = format!("Invalid value: {detail}");
    (is_proven == Some(false)).then(|| Violation { path: path.into(), rule: corten_meta::Rule::Invalid, message })
}

async fn unfit(request: &Attributes<'_>, object: &Value) -> Option<Violation> {
    let signer = request.old.unwrap_or(object)["spec"]["signerName"].as_str().unwrap_or_default();
    if !may(request, "sign", signer).await {
        let user = &request.who.user;
        let detail = format!("User {user:?} is not permitted to \"sign\" for signer {signer:?}");
        return Some(Violation::forbidden("spec.signerName", &detail));
    }
    let begin: Time = object["status"]["notBefore"].as_str()?.parse().ok()?;
    let now = request.cluster.now();
    let is_near = now.before(BEGIN_MARGIN) <= begin && begin <= now.after(BEGIN_MARGIN);
    let detail = "must be set to within 5 minutes of kube-apiserver's current time";
    (!is_near).then(|| Violation::invalid("status.notBefore", format!("{:?}", begin.to_string()), detail))
}
