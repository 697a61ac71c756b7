//! Answers certificate signing requests: checks what is asked for by the signer's rules, and signs it as it was asked.
//!
//! Subject, key and alternative names go into the certificate byte for byte: what an approver saw is what is signed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use parking_lot::Mutex;
use rcgen::{Issuer, KeyPair, SigningKey};
use rustls_pki_types::CertificateDer;
use x509_parser::{
    certification_request::X509CertificationRequest,
    cri_attributes::ParsedCriAttribute,
    extensions::{GeneralName, ParsedExtension},
    oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME,
    pem::Pem,
    prelude::{FromDer, X509Certificate},
};

use super::{Authority, profile};
use crate::{Credential, Error, certificate, der, files, possession};

/// Upstream's default for how long a certificate lasts, and the least that can be asked for.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
const LIFETIME_MIN: Duration = Duration::from_secs(600);
/// Clocks of others may be behind ours by this much.
const BACKDATE: Duration = Duration::from_secs(300);

/// What is asked for, as a CertificateSigningRequest's `spec` has it.
pub struct SigningRequest<'a> {
    /// PEM.
    pub request: &'a str,
    pub signer: &'a str,
    pub usages: &'a [String],
    pub expiration_seconds: Option<i64>,
}

/// The signers that are the cluster's own.
pub const SIGNERS: [&str; 4] = [
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/legacy-unknown",
];

impl Authority {
    /// A certificate for what is asked, as PEM; behind it, while the authority is replaced, its way from the one of before.
    ///
    /// # Errors
    /// Why the signer does not sign this.
    pub fn sign_request(&self, asked: &SigningRequest<'_>, now: SystemTime) -> Result<String, String> {
        let trust = self.trust();
        Ok(signed(&trust.certificate, &trust.issuer, asked, now)? + trust.bridge())
    }
}

/// An authority that somebody else keeps, in two files: `--cluster-signing-cert-file` and `--cluster-signing-key-file` of upstream.
pub struct SigningFiles {
    certificate: PathBuf,
    key: PathBuf,
    /// What they held last that belonged together.
    known: Mutex<Arc<SigningPair>>,
}

struct SigningPair {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl SigningFiles {
    /// # Errors
    /// They cannot be read, are no certificate and no key, or do not belong together.
    pub fn new(certificate: PathBuf, key: PathBuf) -> Result<Self, Error> {
        let known = Mutex::new(Arc::new(SigningPair::read(&certificate, &key)?));
        Ok(Self { certificate, key, known })
    }

    /// As [`Authority::sign_request`], with what the files hold now: they may have been replaced. While one of them is and the other is not
    /// yet, what they held before signs.
    ///
    /// # Errors
    /// Why this is not signed.
    pub fn sign_request(&self, asked: &SigningRequest<'_>, now: SystemTime) -> Result<String, String> {
        let read = SigningPair::read(&self.certificate, &self.key).ok().map(Arc::new);
        let pair = {
            let mut known = self.known.lock();
            if let Some(read) = read {
                *known = read;
            }
            known.clone()
        };
        signed(&pair.certificate, &pair.issuer, asked, now)
    }
}

impl SigningPair {
    fn read(certificate_path: &Path, key_path: &Path) -> Result<Self, Error> {
        let malformed = |path: &Path, why: String| Error::Malformed { path: path.to_owned(), why };
        let text = |path: &Path| files::read(path)?.ok_or_else(|| malformed(path, "it is not there".into()));
        let credential = Credential { certificate: text(certificate_path)?, key: text(key_path)? };
        let certificate = certificate::certificate_of(&credential).map_err(|it| malformed(certificate_path, it))?;
        let key = KeyPair::from_pem(&credential.key).map_err(|it| malformed(key_path, it.to_string()))?;
        if !certificate::belongs(&certificate, &key) {
            return Err(malformed(key_path, format!("it is not the key of {}", certificate_path.display())));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key);
        let issuer = issuer.map_err(|it| malformed(certificate_path, it.to_string()))?;
        Ok(Self { certificate, issuer })
    }
}

/// A certificate for what is asked, as PEM, by the authority of this certificate.
fn signed(
    authority: &CertificateDer<'_>,
    issuer: &Issuer<'_, KeyPair>,
    asked: &SigningRequest<'_>,
    now: SystemTime,
) -> Result<String, String> {
    let block = Pem::iter_from_buffer(asked.request.as_bytes()).next().and_then(Result::ok);
    let block = block.filter(|it| it.label == "CERTIFICATE REQUEST");
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents).map_err(|it| format!("asn1: {it}"))?;
    if !possession::is_signed(&request) {
        return Err("unable to verify certificate request signature".into());
    }
    let names = Names::of(&request)?;
    profile::check(asked, &request, &names)?;
    let lifetime = asked
        .expiration_seconds
        .map_or(LIFETIME, |it| Duration::from_secs(it.try_into().unwrap_or_default()).clamp(LIFETIME_MIN, LIFETIME));
    let (_, authority) = X509Certificate::from_der(authority).map_err(|it| it.to_string())?;
    let end = seconds(now + lifetime).min(authority.validity().not_after.timestamp());
    let usages = profile::extensions(asked.usages)?;
    let body = Body {
        serial: serial()?,
        issuer: authority.subject().as_raw(),
        start: seconds(now - BACKDATE),
        end,
        subject: request.certification_request_info.subject.as_raw(),
        key: request.certification_request_info.subject_pki.raw,
        alternative_names: names.raw,
        authority_key: certificate::own_key(&authority),
        usages,
    };
    let signed = body.signed(issuer)?;
    Ok(certificate::pem("CERTIFICATE", &signed))
}

/// What the signatures of this key are called. The cluster's own is of the first kind; others keep theirs as they like.
fn algorithm(issuer: &Issuer<'_, KeyPair>) -> Result<Vec<u8>, String> {
    const NULL: &[u8] = &[0x05, 0x00];
    let of_key = issuer.key().algorithm();
    if *of_key == rcgen::PKCS_ECDSA_P256_SHA256 {
        Ok(der::sequence(&[&der::oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])]))
    } else if *of_key == rcgen::PKCS_ECDSA_P384_SHA384 {
        Ok(der::sequence(&[&der::oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03])]))
    } else if *of_key == rcgen::PKCS_ED25519 {
        Ok(der::sequence(&[&der::oid(&[0x2b, 0x65, 0x70])]))
    } else if *of_key == rcgen::PKCS_RSA_SHA256 {
        Ok(der::sequence(&[&der::oid(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b]), NULL]))
    } else {
        Err("the authority's key is neither RSA, nor ECDSA over P-256 or P-384, nor Ed25519".to_owned())
    }
}

fn seconds(time: SystemTime) -> i64 {
    i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn serial() -> Result<[u8; 16], String> {
    let mut serial = [0; 16];
    SystemRandom::new().fill(&mut serial).map_err(|_| "the system gives no randomness".to_owned())?;
    // Positive, and not begun with zeros.
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// The alternative names a request asks for.
#[derive(Default)]
pub(super) struct Names<'a> {
    pub(super) dns: usize,
    pub(super) addresses: usize,
    pub(super) emails: usize,
    pub(super) uris: usize,
    raw: Option<(&'a [u8], bool)>,
}

impl<'a> Names<'a> {
    /// What is signed is the bytes as they were sent: so all that is in them must have been read.
    fn of(request: &'a X509CertificationRequest<'_>) -> Result<Self, String> {
        let mut names = Self::default();
        for attribute in request.certification_request_info.attributes() {
            let ParsedCriAttribute::ExtensionRequest(asked) = attribute.parsed_attribute() else { continue };
            for extension in asked.extensions.iter().filter(|it| it.oid == OID_X509_EXT_SUBJECT_ALT_NAME) {
                if names.raw.replace((extension.value, extension.critical)).is_some() {
                    return Err("certificate request contains duplicate requested extensions".into());
                }
                let ParsedExtension::SubjectAlternativeName(list) = extension.parsed_extension() else {
                    return Err("x509: invalid subject alternative names".into());
                };
                list.general_names.iter().try_for_each(|it| names.count(it))?;
            }
        }
        Ok(names)
    }

    fn count(&mut self, name: &GeneralName<'_>) -> Result<(), String> {
        match name {
            GeneralName::DNSName(_) => self.dns += 1,
            GeneralName::IPAddress(octets) if matches!(octets.len(), 4 | 16) => self.addresses += 1,
            GeneralName::IPAddress(octets) => {
                return Err(format!("x509: cannot parse IP address of length {}", octets.len()));
            }
            GeneralName::RFC822Name(_) => self.emails += 1,
            GeneralName::URI(_) => self.uris += 1,
            _ => return Err("only DNS, Email, IP and URI subjectAltNames are allowed".into()),
        }
        Ok(())
    }
}

/// What is signed.
struct Body<'a> {
    serial: [u8; 16],
    issuer: &'a [u8],
    start: i64,
    end: i64,
    subject: &'a [u8],
    key: &'a [u8],
    alternative_names: Option<(&'a [u8], bool)>,
    authority_key: Option<&'a [u8]>,
    usages: Vec<Vec<u8>>,
}

impl Body<'_> {
    fn signed(self, issuer: &Issuer<'_, KeyPair>) -> Result<Vec<u8>, String> {
        let algorithm = algorithm(issuer)?;
        let mut extensions = self.usages;
        extensions.push(der::extension(&[0x55, 0x1d, 0x13], true, &der::sequence(&[])));
        if let Some(id) = self.authority_key {
            extensions.push(der::extension(&[0x55, 0x1d, 0x23], false, &der::sequence(&[&der::tlv(0x80, id)])));
        }
        if let Some((names, critical)) = self.alternative_names {
            extensions.push(der::extension(&[0x55, 0x1d, 0x11], critical, names));
        }
        let extensions: Vec<&[u8]> = extensions.iter().map(Vec::as_slice).collect();
        let body = der::sequence(&[
            &der::tlv(0xa0, &der::tlv(0x02, &[2])),
            &der::tlv(0x02, &self.serial),
            &algorithm,
            self.issuer,
            &der::sequence(&[&der::time(self.start), &der::time(self.end)]),
            self.subject,
            self.key,
            &der::tlv(0xa3, &der::sequence(&extensions)),
        ]);
        let signature = issuer.key().sign(&body).map_err(|it| it.to_string())?;
        let signature = [&[0][..], &signature].concat();
        Ok(der::sequence(&[&body, &algorithm, &der::tlv(0x03, &signature)]))
    }
}

#[cfg(test)]
mod tests;
