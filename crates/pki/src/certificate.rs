//! What a certificate says: whom it names, how long it lasts, who signed it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, PublicKeyData};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_parser::{
    extensions::ParsedExtension,
    prelude::{FromDer, X509Certificate},
};

use crate::Credential;

/// Who a client certificate says its holder is; proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    pub user: String,
    /// Empty where the certificate names none.
    pub uid: String,
    pub groups: Vec<String>,
    /// The certificate's SHA-256 in hexadecimal digits: names the credential in audit records.
    pub fingerprint: String,
    /// When the certificate ends.
    pub end: SystemTime,
}

pub(super) fn certificate_of(credential: &Credential) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(credential.certificate.as_bytes()).map_err(|it| it.to_string())
}

/// PEM, in lines of 64 characters.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        pem.push('\n');
    }
    pem + &format!("-----END {label}-----\n")
}

pub(super) fn belongs(certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, it)| it.public_key().raw == key.subject_public_key_info())
}

pub(super) fn valid_at(certificate: &CertificateDer<'_>, time: SystemTime) -> bool {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    X509Certificate::from_der(certificate).is_ok_and(|(_, it)| it.validity().not_after.timestamp() > seconds)
}

/// When a certificate begins and ends. `None` for what is none.
pub(super) fn lifetime_of(credential: &Credential) -> Option<(SystemTime, SystemTime)> {
    lifetime(&certificate_of(credential).ok()?)
}

/// When a certificate ends. `None` for what is none.
pub(super) fn end_of(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    lifetime(certificate).map(|it| it.1)
}

/// When a certificate begins and ends. `None` for what is none.
pub(super) fn lifetime(certificate: &CertificateDer<'_>) -> Option<(SystemTime, SystemTime)> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let validity = certificate.validity();
    Some((time(validity.not_before.timestamp()), time(validity.not_after.timestamp())))
}

fn time(unix_seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(unix_seconds.try_into().unwrap_or_default())
}

/// By the name of the authority's key.
pub(super) fn is_signed_by(certificate: &CertificateDer<'_>, authority: &CertificateDer<'_>) -> bool {
    let (Ok((_, certificate)), Ok((_, authority))) =
        (X509Certificate::from_der(certificate), X509Certificate::from_der(authority))
    else {
        return false;
    };
    issuer_key(&certificate).is_some_and(|it| Some(it) == own_key(&authority))
}

pub(super) fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    digest(&SHA256, certificate).as_ref().iter().map(|it| format!("{it:02x}")).collect()
}

fn issuer_key<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|it| it.0),
        _ => None,
    })
}

pub(super) fn own_key<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
        _ => None,
    })
}

/// Upstream's place for a user's uid in a certificate's subject.
const UID: &str = "1.3.6.1.4.1.57683.2";

/// The user a client certificate names with its common name, and the groups with its organizations. One that names several
/// uids names nobody.
pub(super) fn user_of(certificate: &CertificateDer<'_>) -> Option<Proven> {
    let fingerprint = fingerprint(certificate);
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|it| it.as_str().ok()).map(str::to_owned).collect();
    let uids = subject.iter_attributes().filter(|it| it.attr_type().to_id_string() == UID);
    let uids: Vec<&str> = uids.map(x509_parser::x509::AttributeTypeAndValue::as_str).collect::<Result<_, _>>().ok()?;
    let uid = match *uids {
        [] => String::new(),
        [uid] if !uid.is_empty() => uid.to_owned(),
        _ => return None,
    };
    let end = time(certificate.validity().not_after.timestamp());
    Some(Proven { user, uid, groups, fingerprint, end })
}
