//! Makes certificates, and tells whether one on disk still is what is wanted.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKeyData,
};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_parser::{
    extensions::{GeneralName, ParsedExtension},
    prelude::{FromDer, X509Certificate},
};

use super::{CA_LIFETIME, Credential, Error, Proven, SKEW, trust::Trust};

/// Whom a certificate is for, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    common_name: String,
    organization: Option<String>,
    /// Names and addresses of a server; empty for clients.
    names: Vec<String>,
}

impl Subject {
    /// # Errors
    /// More than one organization.
    pub fn client(common_name: &str, organizations: &[&str]) -> Result<Self, Error> {
        if organizations.len() > 1 {
            return Err(Error::Organizations(organizations.len()));
        }
        let organization = organizations.first().map(|it| (*it).to_owned());
        Ok(Self { common_name: common_name.into(), organization, names: Vec::new() })
    }

    pub fn server(common_name: &str, names: &[String]) -> Self {
        Self { common_name: common_name.into(), organization: None, names: names.to_vec() }
    }

    fn params(&self) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::new(self.names.clone())?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(organization) = &self.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
        }
        params.distinguished_name.push(DnType::CommonName, self.common_name.as_str());
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if self.names.is_empty() {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

fn set_lifetime(params: &mut CertificateParams, now: SystemTime, lifetime: Duration) {
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch.saturating_sub(SKEW);
    params.not_after = epoch + since_epoch + lifetime;
}

pub(super) fn authority(common_name: &str, now: SystemTime) -> Result<Credential, Error> {
    let failed = |it| Error::Issue(common_name.into(), it);
    let params = authority_params(common_name, now);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(Credential { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// An authority that follows the one of before; and its certificate as that one signs it, as PEM.
pub(super) fn next_authority(
    common_name: &str,
    before: &Issuer<'_, KeyPair>,
    now: SystemTime,
) -> Result<(Credential, String), Error> {
    let failed = |it| Error::Issue(common_name.into(), it);
    let mut params = authority_params(common_name, now);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    params.use_authority_key_identifier_extension = true;
    let bridge = params.signed_by(&key, before).map_err(failed)?;
    Ok((Credential { certificate: certificate.pem(), key: key.serialize_pem() }, bridge.pem()))
}

fn authority_params(common_name: &str, now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_lifetime(&mut params, now, CA_LIFETIME);
    params
}

/// With all that must be shown beside it.
pub(super) fn leaf(trust: &Trust, subject: &Subject, now: SystemTime, lifetime: Duration) -> Result<Credential, Error> {
    let failed = |it| Error::Issue(subject.common_name.clone(), it);
    let mut params = subject.params().map_err(failed)?;
    set_lifetime(&mut params, now, lifetime);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let certificate = params.signed_by(&key, &trust.issuer).map_err(failed)?;
    Ok(Credential { certificate: certificate.pem() + trust.bridge(), key: key.serialize_pem() })
}

/// The same certificate with what must be shown beside it now.
pub(super) fn with_bridge(stored: &Credential, trust: &Trust) -> Option<Credential> {
    let certificate = certificate_of(stored).ok()?;
    Some(Credential { certificate: pem("CERTIFICATE", &certificate) + trust.bridge(), key: stored.key.clone() })
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
    let time = |it: i64| UNIX_EPOCH + Duration::from_secs(it.try_into().unwrap_or_default());
    let validity = certificate.validity();
    Some((time(validity.not_before.timestamp()), time(validity.not_after.timestamp())))
}

/// Is what is on disk a working credential of this authority for exactly this subject? Whether it still lasts is another
/// question.
pub(super) fn still_serves(stored: &Credential, subject: &Subject, authority: &CertificateDer<'_>) -> bool {
    let (Ok(der), Ok(key)) = (certificate_of(stored), KeyPair::from_pem(&stored.key)) else { return false };
    belongs(&der, &key) && is_signed_by(&der, authority) && parsed_subject(&der).as_ref() == Some(subject)
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

/// Whom a certificate is for. `None` for what is none.
pub(super) fn parsed_subject(certificate: &CertificateDer<'_>) -> Option<Subject> {
    X509Certificate::from_der(certificate).ok().map(|(_, it)| subject_of(&it))
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

fn subject_of(certificate: &X509Certificate<'_>) -> Subject {
    let subject = certificate.subject();
    let common_name = subject.iter_common_name().find_map(|it| it.as_str().ok()).unwrap_or_default();
    let organization = subject.iter_organization().find_map(|it| it.as_str().ok()).map(str::to_owned);
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let names = alternatives.iter().flat_map(|it| &it.value.general_names).filter_map(|it| match it {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(octets) => address(octets).map(|it| it.to_string()),
        _ => None,
    });
    Subject { common_name: common_name.into(), organization, names: names.collect() }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets).map(IpAddr::from).ok().or_else(|| <[u8; 16]>::try_from(octets).map(IpAddr::from).ok())
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
    Some(Proven { user, uid, groups, fingerprint })
}
