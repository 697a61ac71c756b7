//! What the kubelet serves with: the key and certificate in use, kept on disk, and the key that a certificate is asked for.
//!
//! As with client-go's `certificate.FileStore`, they lie in one file, `kubelet-server-current.pem`. One that another
//! authority signed is not taken up.

use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwapOption;
use corten_machine::write_whole;
use corten_meta::Time;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_parser::{
    extensions::{GeneralName, ParsedExtension},
    prelude::{FromDer, X509Certificate},
};

const FILE: &str = "kubelet-server-current.pem";

/// See the module's documentation.
#[derive(Debug)]
pub struct ServingKey {
    node: String,
    dir: PathBuf,
    current: ArcSwapOption<Current>,
    /// Of the last request.
    asked: Mutex<Option<KeyPair>>,
}

#[derive(Debug)]
struct Current {
    certified: Arc<CertifiedKey>,
    lasts: Lasting,
}

/// How long a certificate lasts, and for which names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasting {
    pub from: Time,
    pub until: Time,
    /// Sorted.
    pub dns: Vec<String>,
    /// Sorted.
    pub addresses: Vec<String>,
}

impl ServingKey {
    /// Takes up what is kept in `dir`, where one of `authorities` (PEM) has signed it.
    pub fn load(node: &str, dir: &Path, authorities: &str) -> Self {
        let kept = fs::read_to_string(dir.join(FILE)).ok();
        let current = kept.and_then(|it| {
            let current = Current::of(&it, &it).ok()?;
            is_signed_by(&current.certified.cert[0], authorities).then(|| Arc::new(current))
        });
        let current = ArcSwapOption::from(current);
        Self { node: node.to_owned(), dir: dir.to_owned(), current, asked: Mutex::default() }
    }

    /// Has one of `authorities` (PEM) signed what is shown now?
    pub fn is_signed_by(&self, authorities: &str) -> bool {
        self.current.load().as_ref().is_some_and(|it| is_signed_by(&it.certified.cert[0], authorities))
    }

    /// What is shown now.
    pub fn lasting(&self) -> Option<Lasting> {
        self.current.load().as_ref().map(|it| it.lasts.clone())
    }

    /// A signing request for a new key, as PEM.
    ///
    /// # Errors
    /// A name that no certificate can hold, or no randomness.
    pub fn request(&self, dns: &[String], addresses: &[String]) -> Result<String, String> {
        let names: Vec<String> = dns.iter().chain(addresses).cloned().collect();
        let mut params = CertificateParams::new(names).map_err(|it| it.to_string())?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.distinguished_name.push(DnType::CommonName, format!("system:node:{}", self.node));
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|it| it.to_string())?;
        let request = params.serialize_request(&key).and_then(|it| it.pem()).map_err(|it| it.to_string())?;
        *self.asked.lock().expect("nobody panics with the lock held") = Some(key);
        Ok(request)
    }

    /// Shows the certificate (PEM) of the last request's key from now on, and after the next start.
    ///
    /// # Errors
    /// It belongs to another key, or cannot be kept.
    pub fn install(&self, certificate: &str) -> Result<(), String> {
        let key = self.asked.lock().expect("nobody panics with the lock held").take();
        let key = key.ok_or("no certificate was asked for")?;
        let pem = key.serialize_pem();
        let current = Current::of(certificate, &pem)?;
        if !belongs(&current.certified.cert[0], &key) {
            return Err("the certificate belongs to another key".into());
        }
        self.keep(&format!("{certificate}{pem}")).map_err(|it| format!("keep the kubelet's certificate: {it}"))?;
        self.current.store(Some(Arc::new(current)));
        Ok(())
    }

    fn keep(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        write_whole(&self.dir.join(FILE), 0o600, text.as_bytes())
    }
}

impl Current {
    fn of(certificate: &str, key: &str) -> Result<Self, String> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|it| it.to_string())?;
        let first = chain.first().ok_or("there is no certificate")?;
        let lasts = lasting(first).ok_or("it is no certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|it| it.to_string())?;
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|it| it.to_string())?;
        Ok(Self { certified: Arc::new(CertifiedKey::new(chain, key)), lasts })
    }
}

impl ResolvesServerCert for ServingKey {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load().as_ref().map(|it| it.certified.clone())
    }
}

fn lasting(certificate: &CertificateDer<'_>) -> Option<Lasting> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let validity = certificate.validity();
    let mut lasting = Lasting {
        from: Time::from_unix_seconds(validity.not_before.timestamp()),
        until: Time::from_unix_seconds(validity.not_after.timestamp()),
        dns: Vec::new(),
        addresses: Vec::new(),
    };
    let names = certificate.subject_alternative_name().ok().flatten();
    for name in names.iter().flat_map(|it| &it.value.general_names) {
        match name {
            GeneralName::DNSName(name) => lasting.dns.push((*name).to_owned()),
            GeneralName::IPAddress(octets) => lasting.addresses.extend(address(octets).map(|it| it.to_string())),
            _ => {}
        }
    }
    lasting.dns.sort_unstable();
    lasting.addresses.sort_unstable();
    Some(lasting)
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets).map(IpAddr::from).ok().or_else(|| <[u8; 16]>::try_from(octets).map(IpAddr::from).ok())
}

fn belongs(certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, it)| it.public_key().raw == key.subject_public_key_info())
}

/// By the name of its key: who reads the folder can forge it, and has the key anyway.
fn is_signed_by(certificate: &CertificateDer<'_>, authorities: &str) -> bool {
    let authorities = CertificateDer::pem_slice_iter(authorities.as_bytes());
    authorities.filter_map(Result::ok).any(|it| has_signed(&it, certificate))
}

fn has_signed(authority: &CertificateDer<'_>, certificate: &CertificateDer<'_>) -> bool {
    let (Ok((_, certificate)), Ok((_, authority))) =
        (X509Certificate::from_der(certificate), X509Certificate::from_der(authority))
    else {
        return false;
    };
    let signer = certificate.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|it| it.0.to_vec()),
        _ => None,
    });
    let own = authority.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    });
    signer.is_some() && signer == own
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateSigningRequestParams, CertifiedIssuer, IsCa};

    use super::*;

    fn authority() -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
    }

    fn signed(authority: &CertifiedIssuer<'static, KeyPair>, request: &str) -> String {
        let mut request = CertificateSigningRequestParams::from_pem(request).expect("a request");
        request.params.use_authority_key_identifier_extension = true;
        request.signed_by(authority).expect("a certificate").pem()
    }

    #[test]
    fn a_certificate_outlasts_the_process() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (ours, others) = (authority(), authority());
        let load = || ServingKey::load("n1", dir.path(), &ours.pem());
        let key = load();
        assert_eq!(key.lasting(), None);
        let names = (["n1".to_owned()], ["10.0.0.5".to_owned(), "fd00::5".to_owned()]);
        let first = key.request(&names.0, &names.1).expect("a request");
        let second = key.request(&names.0, &names.1).expect("a request");
        assert!(key.install(&signed(&ours, &first)).is_err(), "the key of the first request is forgotten");
        assert!(key.install(&signed(&ours, &second)).is_err(), "a request is answered once");
        let third = key.request(&names.0, &names.1).expect("a request");
        key.install(&signed(&ours, &third)).expect("taken up");
        let lasting = key.lasting().expect("a certificate");
        assert_eq!((&lasting.dns[..], &lasting.addresses[..]), (&names.0[..], &names.1[..]));
        assert_eq!(load().lasting(), Some(lasting));
        assert_eq!(ServingKey::load("n1", dir.path(), &others.pem()).lasting(), None);
        fs::write(dir.path().join(FILE), "half of").expect("written");
        assert_eq!(load().lasting(), None);
    }
}
