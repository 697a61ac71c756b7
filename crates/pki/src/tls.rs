//! TLS settings: of the server, whose clients may come without a certificate, and of the server as a kubelet's client.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use corten_stream::AnyServer;
use parking_lot::Mutex;
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject};

use super::{Authority, Credential, Error, Kept, issue};

/// Who a client certificate says its holder is; proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    pub user: String,
    /// Empty where the certificate names none.
    pub uid: String,
    pub groups: Vec<String>,
    /// The certificate's SHA-256 in hexadecimal digits: names the credential in audit records.
    pub fingerprint: String,
}

fn tls(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// A credential as TLS shows it.
pub(super) fn certified_key(credential: &Credential) -> Result<CertifiedKey, Error> {
    let (chain, key) = parsed(credential)?;
    let key = provider().key_provider.load_private_key(key).map_err(tls)?;
    Ok(CertifiedKey::new(chain, key))
}

fn parsed(credential: &Credential) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let chain = CertificateDer::pem_slice_iter(credential.certificate.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(credential.key.as_bytes()).map_err(tls)?;
    Ok((chain.map_err(tls)?, key))
}

impl Authority {
    fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).map_err(tls)?;
        Ok(roots)
    }

    /// TLS 1.2 and 1.3, HTTP/2 and 1.1, client certificates asked for and checked later by [`Authority::verify_client`].
    ///
    /// # Errors
    /// The authority's own certificate is none.
    pub fn server_config(&self, kept: &Arc<Kept>) -> Result<Arc<ServerConfig>, Error> {
        let provider = provider();
        let asking = AskForCertificate { provider: provider.clone(), hints: self.hints()? };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(tls)?
            .with_client_cert_verifier(Arc::new(asking))
            .with_cert_resolver(kept.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn hints(&self) -> Result<Vec<DistinguishedName>, Error> {
        Ok(self.roots()?.subjects())
    }

    /// TLS to servers of this authority, showing what is kept. HTTP/1.1 only: upgrades need it.
    ///
    /// # Errors
    /// The authority's own certificate is none.
    pub fn client_config(&self, kept: &Arc<Kept>) -> Result<Arc<ClientConfig>, Error> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(tls)?
            .with_root_certificates(self.roots()?)
            .with_client_cert_resolver(kept.clone());
        Ok(Arc::new(config))
    }

    fn unix_time(&self) -> UnixTime {
        UnixTime::since_unix_epoch(self.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }

    /// Whose certificate is this? `Err` where it is not this authority's, expired, or not for clients.
    ///
    /// # Errors
    /// Why the certificate proves nothing.
    pub fn verify_client(&self, chain: &[CertificateDer<'_>]) -> Result<Proven, Error> {
        let (leaf, intermediates) = chain.split_first().ok_or_else(|| tls("no certificate"))?;
        if let Some(proven) = self.known.get(leaf, self.now()) {
            return Ok(proven);
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), provider());
        let verifier = verifier.build().map_err(tls)?;
        verifier.verify_client_cert(leaf, intermediates, self.unix_time()).map_err(tls)?;
        let proven = issue::user_of(leaf).ok_or_else(|| tls("the certificate has no common name"))?;
        self.known.add(leaf, &proven, issue::end_of(leaf));
        Ok(proven)
    }
}

/// Certificates that were verified, so that the requests of a connection cost one verification, not one each.
#[derive(Default)]
pub(super) struct Known(Mutex<HashMap<Vec<u8>, Entry>>);

struct Entry {
    proven: Proven,
    since: Instant,
    /// The certificate's own.
    end: SystemTime,
}

/// How many, and for how long.
const KNOWN_MAX: usize = 256;
const KNOWN_FOR: Duration = Duration::from_secs(60);

impl Known {
    fn get(&self, leaf: &[u8], now: SystemTime) -> Option<Proven> {
        let known = self.0.lock();
        known.get(leaf).filter(|it| it.since.elapsed() < KNOWN_FOR && now < it.end).map(|it| it.proven.clone())
    }

    fn add(&self, leaf: &[u8], proven: &Proven, end: Option<SystemTime>) {
        let Some(end) = end else { return };
        let mut known = self.0.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(leaf.to_owned(), Entry { proven: proven.clone(), since: Instant::now(), end });
    }
}

/// TLS to servers that anybody may claim to be: what is read there proves nothing, and what is shown is shown to anyone.
///
/// # Errors
/// The library knows no such protocol.
pub fn unverified_client_config(own: Option<&Arc<Kept>>) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13, &TLS12]);
    let builder = builder.map_err(tls)?.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
    let mut config = match own {
        Some(own) => builder.with_client_cert_resolver(own.clone()),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Lets every certificate through whose key the client holds; what the certificate is worth is asked later.
#[derive(Debug)]
struct AskForCertificate {
    provider: Arc<CryptoProvider>,
    hints: Vec<DistinguishedName>,
}

impl ClientCertVerifier for AskForCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
