//! Certificates that everybody in the cluster may trust.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::{CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_V1BETA1};
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    read::text,
    rules::{self, signer::signer_name},
};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{
    BuiltIn, Policy, Verb, ViewOf,
    columns::{column, or_none},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CLUSTER_TRUST_BUNDLES,
    singular: "clustertrustbundle",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.certificates.v1.ClusterTrustBundle",
    view_of: None,
    selectable_fields: &["spec.signerName"],
    columns: &[column("SignerName", "Whose certificates they are.", |object, _| {
        json!(or_none(text(object, "/spec/signerName")))
    })],
    policy: &ClusterTrustBundle,
};

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    CLUSTER_TRUST_BUNDLES_V1BETA1,
    "io.k8s.api.certificates.v1beta1.ClusterTrustBundle",
    ViewOf::same(CLUSTER_TRUST_BUNDLES),
    KIND,
);

struct ClusterTrustBundle;

const BUNDLE_BYTES_MAX: usize = 1024 * 1024;

impl Policy for ClusterTrustBundle {
    /// Names depend on the signer: `validate` looks at them.
    fn name_violations(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |bundle| {
            let signer = bundle.at("spec").at("signerName");
            name(bundle.at("metadata").at("name"), signer.str());
            if !signer.is_empty() {
                signer_name(signer);
            }
            anchors(bundle.at("spec").at("trustBundle"));
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |bundle| rules::immutable(bundle.at("spec").at("signerName"), &old["spec"]["signerName"]))
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn name(name: Cursor<'_>, signer: &str) {
    let reasons = if signer.is_empty() {
        if name.str().contains(':') {
            vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()]
        } else {
            field::dns1123_subdomain(name.str())
        }
    } else {
        let prefix = format!("{}:", signer.replace('/', ":"));
        match name.str().strip_prefix(&*prefix) {
            Some(rest) => field::dns1123_subdomain(rest),
            None => vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")],
        }
    };
    reasons.iter().for_each(|it| name.invalid(it));
}

/// Every block is the certificate of an authority, each once.
fn anchors(bundle: Cursor<'_>) {
    let omitted = |detail: &str| bundle.invalid_as("<value omitted>", detail);
    if bundle.str().len() > BUNDLE_BYTES_MAX {
        return bundle.report(Violation::too_long(bundle.path(), BUNDLE_BYTES_MAX));
    }
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut wrong = false;
    for (at, block) in bundle.str().split("-----BEGIN ").skip(1).enumerate() {
        let (kind, rest) = block.split_once("-----").unwrap_or_default();
        let body = rest.split("-----END ").next().unwrap_or_default();
        let detail = if kind != "CERTIFICATE" {
            format!("entry {at} has bad block type: {kind}")
        } else if body.contains(':') {
            format!("entry {at} has PEM block headers")
        } else {
            let text: String = body.split_whitespace().collect();
            match authority(&STANDARD.decode(text).unwrap_or_default()) {
                Ok(der) => {
                    blocks.push(der);
                    continue;
                }
                Err(what) => format!("entry {at} {what}"),
            }
        };
        omitted(&detail);
        wrong = true;
    }
    if wrong {
        return;
    }
    if blocks.is_empty() {
        omitted("at least one trust anchor must be provided");
    }
    let mut places: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (at, block) in blocks.iter().enumerate() {
        places.entry(block).or_default().push(at);
    }
    let mut twice: Vec<&Vec<usize>> = places.values().filter(|it| it.len() > 1).collect();
    twice.sort();
    for same in twice {
        let same: Vec<String> = same.iter().map(usize::to_string).collect();
        omitted(&format!("duplicate trust anchor (indices [{}])", same.join(" ")));
    }
}

fn authority(der: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| "does not parse as X.509")?;
    let constraints = certificate.basic_constraints().ok().flatten();
    if constraints.is_some_and(|it| it.value.ca) { Ok(der.to_vec()) } else { Err("does not have the CA bit set") }
}
