//! TLS settings: of the server, whose clients may come without a certificate, and of the server as a kubelet's client.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use arc_swap::ArcSwap;
use corten_stream::{AnyServer, IdentifiedServer, ServerIdentity};
use parking_lot::Mutex;
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};

use super::{Authority, DynamicCertificate};
use crate::{Credential, Error, Proven, certificate, trust::Trust};

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// A credential as TLS shows it.
pub(super) fn certified_key(credential: &Credential) -> Result<CertifiedKey, Error> {
    let (chain, key) = parsed(credential)?;
    let key = provider().key_provider.load_private_key(key).map_err(Error::of_tls)?;
    Ok(CertifiedKey::new(chain, key))
}

pub(super) fn parsed(credential: &Credential) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let chain = CertificateDer::pem_slice_iter(credential.certificate.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(credential.key.as_bytes()).map_err(Error::of_tls)?;
    Ok((chain.map_err(Error::of_tls)?, key))
}

impl Authority {
    /// TLS 1.2 and 1.3, HTTP/2 and 1.1, client certificates asked for and checked later by [`Authority::verify_client`].
    /// Clients are told who is trusted now: another is to be made after [`Authority::changes`].
    ///
    /// # Errors
    /// The authority's own certificate is none.
    pub fn server_config(&self, kept: &Arc<DynamicCertificate>) -> Result<Arc<ServerConfig>, Error> {
        let provider = provider();
        let asking = AskForCertificate { provider: provider.clone(), hints: self.hints()? };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(Error::of_tls)?
            .with_client_cert_verifier(Arc::new(asking))
            .with_cert_resolver(kept.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn hints(&self) -> Result<Vec<DistinguishedName>, Error> {
        // Who comes with a certificate of the front proxy's authority must be told that it is looked at, too.
        let front_proxy = self.front_proxy.as_ref().map(|it| it.hints()).transpose()?.unwrap_or_default();
        Ok(self.trust().roots()?.subjects().into_iter().chain(front_proxy).collect())
    }

    /// TLS to servers of this authority, as it is at each handshake, showing what is kept. HTTP/1.1 only: upgrades need it.
    ///
    /// # Errors
    /// The authority's own certificate is none.
    pub fn client_config(&self, kept: &Arc<DynamicCertificate>) -> Result<Arc<ClientConfig>, Error> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(Error::of_tls)?
            .dangerous()
            .with_custom_certificate_verifier(self.servers.clone())
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
        let (leaf, intermediates) = chain.split_first().ok_or_else(|| Error::of_tls("no certificate"))?;
        if let Some((proven, is_old)) = self.known.get(leaf, self.now()) {
            if is_old {
                self.note_old_certificate(&proven.user);
            }
            return Ok(proven);
        }
        let trust = self.trust();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trust.roots()?), provider());
        let verifier = verifier.build().map_err(Error::of_tls)?;
        verifier.verify_client_cert(leaf, intermediates, self.unix_time()).map_err(Error::of_tls)?;
        let proven = certificate::user_of(leaf).ok_or_else(|| Error::of_tls("the certificate has no common name"))?;
        let is_old = trust.old.is_some() && !certificate::is_signed_by(leaf, &trust.certificate);
        if is_old {
            self.note_old_certificate(&proven.user);
        }
        self.known.add(leaf, &proven, is_old, certificate::end_of(leaf));
        // Where the authority was replaced meanwhile, `reload` may have forgotten what is known before this was added.
        if !Arc::ptr_eq(&trust, &self.trust()) {
            self.known.clear();
        }
        Ok(proven)
    }
}

/// Checks servers by what is trusted at each handshake.
pub(super) type Servers = IdentifiedServer<Trusted>;

#[derive(Debug)]
pub(super) struct Trusted(ArcSwap<WebPkiServerVerifier>);

impl Trusted {
    pub(super) fn servers(trust: &Trust) -> Result<Arc<Servers>, Error> {
        let identity = Self(ArcSwap::new(verifier(trust)?));
        Ok(Arc::new(Servers { identity, provider: provider() }))
    }

    pub(super) fn trust(&self, trust: &Trust) -> Result<(), Error> {
        self.0.store(verifier(trust)?);
        Ok(())
    }
}

fn verifier(trust: &Trust) -> Result<Arc<WebPkiServerVerifier>, Error> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(trust.roots()?), provider()).build().map_err(Error::of_tls)
}

impl ServerIdentity for Trusted {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.0.load().verify_server_cert(end_entity, intermediates, server_name, &[], now)
    }
}

/// Certificates that were verified, so that the requests of a connection cost one verification, not one each.
#[derive(Default)]
pub(super) struct VerifiedCertificates(Mutex<HashMap<Vec<u8>, Entry>>);

struct Entry {
    proven: Proven,
    /// The authority of before signed it.
    is_old: bool,
    since: Instant,
    /// The certificate's own.
    end: SystemTime,
}

/// How many, and for how long.
const KNOWN_MAX: usize = 256;
const KNOWN_FOR: Duration = Duration::from_secs(60);

impl VerifiedCertificates {
    fn get(&self, leaf: &[u8], now: SystemTime) -> Option<(Proven, bool)> {
        let known = self.0.lock();
        let found = known.get(leaf).filter(|it| it.since.elapsed() < KNOWN_FOR && now < it.end);
        found.map(|it| (it.proven.clone(), it.is_old))
    }

    /// What was believed of another authority is asked again.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    fn add(&self, leaf: &[u8], proven: &Proven, is_old: bool, end: Option<SystemTime>) {
        let Some(end) = end else { return };
        let mut known = self.0.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(leaf.to_owned(), Entry { proven: proven.clone(), is_old, since: Instant::now(), end });
    }
}

/// TLS to servers that anybody may claim to be: what is read there proves nothing, and what is shown is shown to anyone.
///
/// # Errors
/// The library knows no such protocol.
pub fn unverified_client_config(own: Option<&Arc<DynamicCertificate>>) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13, &TLS12]);
    let builder =
        builder.map_err(Error::of_tls)?.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
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
