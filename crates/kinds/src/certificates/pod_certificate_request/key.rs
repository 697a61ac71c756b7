//! The key a request is about. Whether who asks holds it is seen at admission: signatures are not read here.

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::Violation;
use corten_schema::Cursor;
use serde_json::Value;
use x509_parser::{
    certification_request::X509CertificationRequest, prelude::FromDer, public_key::PublicKey,
    x509::SubjectPublicKeyInfo,
};

/// Upstream's `MaxStubPKCS10RequestSize`, and the same for the key and the proof that came before it.
const BYTES_MAX: usize = 10 * 1024;
const ED25519: &str = "1.3.101.112";
/// P256, P384, P521.
const CURVES: [&str; 3] = ["1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35"];

pub(super) fn validate(spec: Cursor<'_>) {
    let (key, proof, stub) = (spec.at("pkixPublicKey"), spec.at("proofOfPossession"), spec.at("stubPKCS10Request"));
    if stub.is_empty() && key.is_empty() {
        return stub.missing("");
    }
    if let Some(old) = [key, proof].into_iter().find(|it| !stub.is_empty() && !it.is_empty()) {
        return old.forbidden("may not be set together with stubPKCS10Request");
    }
    let told = if stub.is_empty() { key } else { stub };
    if stub.is_empty() && !proof.required() {
        return;
    }
    if let Some(long) = [told, proof].into_iter().find(|it| bytes(it.value()).len() > BYTES_MAX) {
        return long.report(Violation::too_long(long.path(), BYTES_MAX));
    }
    if let Err(reason) = read(told) {
        told.invalid_unshown(&reason);
    }
}

fn read(told: Cursor<'_>) -> Result<(), String> {
    let der = bytes(told.value());
    if told.path().ends_with("stubPKCS10Request") {
        let request = X509CertificationRequest::from_der(&der).ok().filter(|it| it.0.is_empty());
        let (_, request) = request.ok_or("must be a valid PKCS#10 CSR")?;
        return is_known(&request.certification_request_info.subject_pki);
    }
    let key = SubjectPublicKeyInfo::from_der(&der).ok().filter(|it| it.0.is_empty());
    is_known(&key.ok_or("must be a valid PKIX-serialized public key")?.1)
}

fn is_known(key: &SubjectPublicKeyInfo<'_>) -> Result<(), String> {
    match key.parsed() {
        Ok(PublicKey::RSA(key)) if matches!(key.key_size(), 3072 | 4096) => Ok(()),
        Ok(PublicKey::RSA(_)) => Err("RSA keys must have modulus size 3072 or 4096".into()),
        Ok(PublicKey::EC(_)) => {
            let curve = key.algorithm.parameters.as_ref().and_then(|it| it.as_oid().ok()).map(|it| it.to_id_string());
            let is_known = curve.is_some_and(|it| CURVES.contains(&&*it));
            if is_known { Ok(()) } else { Err("elliptic public keys must use curve P256, P384, or P521".into()) }
        }
        _ if key.algorithm.algorithm.to_id_string() == ED25519 => Ok(()),
        _ => Err("unknown public key type; supported types are Ed25519, ECDSA, and RSA".into()),
    }
}

/// The key of a request (PKIX, DER); `None` where it cannot be read.
pub(super) fn of_spec(spec: &Value) -> Option<Vec<u8>> {
    let stub = bytes(&spec["stubPKCS10Request"]);
    if stub.is_empty() {
        return Some(bytes(&spec["pkixPublicKey"]));
    }
    let (_, request) = X509CertificationRequest::from_der(&stub).ok()?;
    Some(request.certification_request_info.subject_pki.raw.to_vec())
}

fn bytes(base64: &Value) -> Vec<u8> {
    STANDARD.decode(base64.as_str().unwrap_or_default()).unwrap_or_default()
}
