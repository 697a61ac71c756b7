//! What is told of CertificateSigningRequests.

use corten_api::resources::CERTIFICATE_SIGNING_REQUESTS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    conditions::Condition,
    exposition::Samples,
    family::{Family, KindMetrics},
};

static CERTIFICATE_SIGNING_REQUESTS_AT: Resource = RESOURCE;

pub(crate) static CERTIFICATE_SIGNING_REQUESTS: KindMetrics<CertificateSigningRequest> = KindMetrics {
    resource: &CERTIFICATE_SIGNING_REQUESTS_AT,
    labels: &["certificatesigningrequest", "signer_name"],
    identity: |it| vec![&it.metadata.name, &it.spec.signer_name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct CertificateSigningRequest {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    signer_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    /// In base64.
    certificate: String,
    conditions: Vec<Condition>,
}

impl Status {
    fn certificate_bytes(&self) -> Option<i64> {
        let digits = self.certificate.trim_end_matches('=').len();
        i64::try_from(digits * 3 / 4).ok()
    }
}

const FAMILIES: &[Family<CertificateSigningRequest>] = &[
    Family::gauge("kube_certificatesigningrequest_cert_length", "Length of the issued cert", &[], |it, out| {
        out.one(it.status.certificate_bytes())
    }),
    Family::gauge(
        "kube_certificatesigningrequest_condition",
        "The number of each certificatesigningrequest condition",
        &["condition"],
        conditions,
    ),
    Family::gauge("kube_certificatesigningrequest_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
];

/// The conditions that answer a request, and what they are called here.
const ANSWERS: [(&str, &str); 3] = [("Approved", "approved"), ("Denied", "denied"), ("Failed", "failed")];

fn conditions(request: &CertificateSigningRequest, out: &mut Samples<'_>) {
    for (of, name) in ANSWERS {
        let held = request.status.conditions.iter().filter(|it| it.of == of);
        out.add(&[name], held.fold(0.0, |sum, _| sum + 1.0));
    }
}
