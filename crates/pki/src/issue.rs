//! Makes certificates, and tells whether one on disk still is what is wanted.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls_pki_types::CertificateDer;
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use crate::{
    Credential, Error,
    certificate::{belongs, certificate_of, is_signed_by},
};

pub(crate) const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
pub(crate) const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks of clients may be behind ours by this much.
const SKEW: Duration = Duration::from_secs(3600);

/// Whom a certificate is for, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    common_name: String,
    organization: Option<String>,
    /// Names and addresses of a server; empty for clients.
    names: Vec<String>,
    /// A server that shows the same certificate to others like it.
    is_peer: bool,
}

impl Subject {
    /// # Errors
    /// More than one organization.
    pub fn client(common_name: &str, organizations: &[&str]) -> Result<Self, Error> {
        if organizations.len() > 1 {
            return Err(Error::Organizations(organizations.len()));
        }
        let organization = organizations.first().map(|it| (*it).to_owned());
        Ok(Self { common_name: common_name.into(), organization, names: Vec::new(), is_peer: false })
    }

    pub fn server(common_name: &str, names: &[String]) -> Self {
        Self { common_name: common_name.into(), organization: None, names: names.to_vec(), is_peer: false }
    }

    /// A server that asks others like it.
    pub fn peer(common_name: &str, names: &[String]) -> Self {
        Self { is_peer: true, ..Self::server(common_name, names) }
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
        params.extended_key_usages = match (self.is_peer, self.names.is_empty()) {
            (true, _) => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
            (false, true) => vec![ExtendedKeyUsagePurpose::ClientAuth],
            (false, false) => vec![ExtendedKeyUsagePurpose::ServerAuth],
        };
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

/// Is what is on disk a working credential of this authority for exactly this subject? Whether it still lasts is another
/// question.
pub(super) fn still_serves(stored: &Credential, subject: &Subject, authority: &CertificateDer<'_>) -> bool {
    let (Ok(der), Ok(key)) = (certificate_of(stored), KeyPair::from_pem(&stored.key)) else { return false };
    belongs(&der, &key) && is_signed_by(&der, authority) && parsed_subject(&der).as_ref() == Some(subject)
}

/// Whom a certificate is for. `None` for what is none.
pub(super) fn parsed_subject(certificate: &CertificateDer<'_>) -> Option<Subject> {
    X509Certificate::from_der(certificate).ok().map(|(_, it)| subject_of(&it))
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
    let usages = certificate.extended_key_usage().ok().flatten();
    let is_peer = usages.is_some_and(|it| it.value.server_auth && it.value.client_auth);
    Subject { common_name: common_name.into(), organization, names: names.collect(), is_peer }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets).map(IpAddr::from).ok().or_else(|| <[u8; 16]>::try_from(octets).map(IpAddr::from).ok())
}

/// A certificate that `issuer` signs; `bridge` is shown after it, as PEM.
pub(super) fn leaf(
    (issuer, bridge): (&Issuer<'_, KeyPair>, &str),
    subject: &Subject,
    now: SystemTime,
    lifetime: Duration,
) -> Result<Credential, Error> {
    let failed = |it| Error::Issue(subject.common_name.clone(), it);
    let mut params = subject.params().map_err(failed)?;
    set_lifetime(&mut params, now, lifetime);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let certificate = params.signed_by(&key, issuer).map_err(failed)?;
    Ok(Credential { certificate: certificate.pem() + bridge, key: key.serialize_pem() })
}
