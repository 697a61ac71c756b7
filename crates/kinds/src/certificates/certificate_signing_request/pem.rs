//! Requests and certificates as the API carries them: PEM, and that again in base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use x509_parser::{
    certification_request::X509CertificationRequest,
    pem::Pem,
    prelude::{FromDer, X509Certificate},
};

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

fn blocks(base64: &str) -> Vec<Pem> {
    let text = STANDARD.decode(base64).unwrap_or_default();
    Pem::iter_from_buffer(&text).map_while(Result::ok).collect()
}

/// The first block must be a request.
pub(super) fn request(base64: &str) -> Result<(), String> {
    let wrong = || format!("PEM block type must be {REQUEST}");
    let blocks = blocks(base64);
    let block = blocks.first().filter(|it| it.label == REQUEST).ok_or_else(wrong)?;
    X509CertificationRequest::from_der(&block.contents).map(|_| ()).map_err(|it| format!("asn1: {it}"))
}

/// Nothing, or certificates and nothing else.
pub(super) fn certificates(base64: &str) -> Result<(), String> {
    if base64.is_empty() {
        return Ok(());
    }
    let blocks = blocks(base64);
    if blocks.is_empty() {
        return Err("must contain at least one CERTIFICATE PEM block".into());
    }
    for block in &blocks {
        if block.label != CERTIFICATE {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        X509Certificate::from_der(&block.contents).map_err(|it| format!("x509: {it}"))?;
    }
    Ok(())
}
