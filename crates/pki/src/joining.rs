//! What a machine joins a cluster with: a bootstrap token, the hash that its authority is known by, and a node's own credential.

use std::time::SystemTime;

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{
    Credential, Error,
    certificate::{belongs, certificate_of, lifetime_of},
    files,
};

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_CHARACTERS: usize = 6;
const SECRET_CHARACTERS: usize = 16;
/// Before the hexadecimal digits of a hash, as kubeadm's `--discovery-token-ca-cert-hash` has it.
const HASH: &str = "sha256:";
const NODES: &str = "system:nodes";

/// A bootstrap token: `id.secret`.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    pub id: String,
    pub secret: String,
}

/// Without the secret.
impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BootstrapToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BootstrapToken {
    /// # Errors
    /// The system gives no randomness.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self { id: random_text(ID_CHARACTERS)?, secret: random_text(SECRET_CHARACTERS)? })
    }

    /// `[a-z0-9]{6}.[a-z0-9]{16}`.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        let is = |part: &str, n: usize| part.len() == n && part.bytes().all(|it| ALPHABET.contains(&it));
        (is(id, ID_CHARACTERS) && is(secret, SECRET_CHARACTERS))
            .then(|| Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    pub fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

fn random_text(n: usize) -> Result<String, Error> {
    // A byte at or above the greatest multiple of the alphabet's size would make some characters likelier than others.
    let fair = 256 - 256 % ALPHABET.len();
    let mut text = String::new();
    while text.len() < n {
        let mut byte = [0];
        rand::fill(&mut byte).map_err(|_| Error::Tls("the system gives no random numbers".to_owned()))?;
        if usize::from(byte[0]) < fair {
            text.push(char::from(ALPHABET[usize::from(byte[0]) % ALPHABET.len()]));
        }
    }
    Ok(text)
}

/// The hash of each certificate's public key (SubjectPublicKeyInfo) in `pem`, with the certificate as PEM.
pub fn public_key_hashes(pem: &str) -> Vec<(String, String)> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok);
    let hashed = certificates.filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        let digits: String =
            digest(&SHA256, certificate.public_key().raw).as_ref().iter().map(|it| format!("{it:02x}")).collect();
        Some((format!("{HASH}{digits}"), crate::certificate::pem("CERTIFICATE", &der)))
    });
    hashed.collect()
}

/// Is it a hash as [`public_key_hashes`] writes it?
pub fn is_public_key_hash(text: &str) -> bool {
    text.strip_prefix(HASH).is_some_and(|it| it.len() == 64 && it.bytes().all(|it| it.is_ascii_hexdigit()))
}

/// A request (PEM) for the client certificate of a node, and its new key.
///
/// # Errors
/// A name that no certificate can hold, or no randomness.
pub fn node_request(node: &str) -> Result<(String, String), Error> {
    let name = format!("system:node:{node}");
    let failed = |it| Error::Issue(name.clone(), it);
    // No alternative names: the signer `kube-apiserver-client-kubelet` allows none.
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, NODES);
    params.distinguished_name.push(DnType::CommonName, name.as_str());
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let request = params.serialize_request(&key).and_then(|it| it.pem()).map_err(failed)?;
    Ok((request, key.serialize_pem()))
}

impl Credential {
    /// When the certificate begins and ends. `None` for what is none.
    pub fn lifetime(&self) -> Option<(SystemTime, SystemTime)> {
        lifetime_of(self)
    }

    /// Do certificate and key belong together?
    pub fn is_whole(&self) -> bool {
        let key = KeyPair::from_pem(&self.key);
        certificate_of(self).is_ok_and(|certificate| key.is_ok_and(|it| belongs(&certificate, &it)))
    }

    /// Has one of `authorities` (PEM) signed it?
    pub fn is_signed_by(&self, authorities: &str) -> bool {
        let Ok(own) = certificate_of(self) else { return false };
        let mut authorities = CertificateDer::pem_slice_iter(authorities.as_bytes()).filter_map(Result::ok);
        authorities.any(|it| crate::certificate::is_signed_by(&own, &it))
    }

    /// Reads both from one file, as the kubelet keeps them (`kubelet-client-current.pem`).
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(path: &std::path::Path) -> Result<Option<Self>, Error> {
        let Some(text) = files::read(path)? else { return Ok(None) };
        // The key comes last, under whatever name its kind has.
        let key = text.rfind("-----BEGIN ").unwrap_or_default();
        let (certificate, key) = text.split_at(key);
        Ok(Some(Self { certificate: certificate.to_owned(), key: key.to_owned() }))
    }

    /// Writes both into one file, for its owner alone. Durable when it returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &std::path::Path) -> Result<(), Error> {
        files::write(path, format!("{}{}", self.certificate, self.key).as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Authority;

    #[test]
    fn tokens_are_as_the_authenticator_reads_them() {
        let token = BootstrapToken::generate().expect("randomness");
        assert_eq!(BootstrapToken::parse(&token.text()), Some(token));
        for wrong in ["", "abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcde.0123456789abcdef"] {
            assert_eq!(BootstrapToken::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_authority_is_known_by_its_public_key() {
        let (one, other) = (Authority::in_memory().expect("one"), Authority::in_memory().expect("another"));
        let bundle = one.ca_pem() + &other.ca_pem();
        let hashes: Vec<String> = public_key_hashes(&bundle).into_iter().map(|it| it.0).collect();
        assert_eq!(hashes.len(), 2);
        assert!(hashes.iter().all(|it| is_public_key_hash(it)) && hashes[0] != hashes[1], "{hashes:?}");
        assert_eq!(public_key_hashes(&one.ca_pem())[0].0, hashes[0]);
        assert!(!is_public_key_hash("sha256:00") && !is_public_key_hash(&hashes[0][7..]));
    }

    #[test]
    fn a_nodes_request_becomes_its_certificate() {
        let authority = Authority::in_memory().expect("an authority");
        let (request, key) = node_request("two").expect("a request");
        let usages = ["digital signature".to_owned(), "client auth".to_owned()];
        let asked = crate::SigningRequest {
            request: &request,
            signer: "kubernetes.io/kube-apiserver-client-kubelet",
            usages: &usages,
            expiration_seconds: None,
        };
        let certificate = authority.sign_request(&asked, SystemTime::now()).expect("it is signed");
        let credential = Credential { certificate, key };
        assert!(credential.is_whole() && credential.is_signed_by(&authority.ca_pem()));
        assert!(!credential.is_signed_by(&Authority::in_memory().expect("another").ca_pem()));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubelet-client-current.pem");
        credential.save(&path).expect("it is written");
        assert!(Credential::load(&path).expect("it is read").is_some_and(|it| it.is_whole()));
    }
}
