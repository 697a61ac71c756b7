//! The server's TLS, with client certificates of the cluster's own authority.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{
    RootCertStore, ServerConfig,
    server::{ResolvesServerCert, WebPkiClientVerifier},
};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::{
    ServerError,
    access::{Caller, Certified},
};

/// TLS that asks for a client certificate, so that who has none can be told so in HTTP. Each handshake shows what `own`
/// has then.
pub(super) fn config(own: Arc<dyn ResolvesServerCert>, client_ca: &str) -> Result<ServerConfig, ServerError> {
    let pem = |error: rustls_pki_types::pem::Error| ServerError::Pem(error.to_string());
    let read = |text: &str| CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>().map_err(pem);
    let mut roots = RootCertStore::empty();
    for root in read(client_ca)? {
        roots.add(root).map_err(ServerError::Tls)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let clients = clients.allow_unauthenticated().build().map_err(|it| ServerError::Pem(it.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServerError::Tls)?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(own);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the user (common name) and groups (organizations) out of a certificate that has been verified.
pub(super) fn caller(certificates: Option<&[CertificateDer<'_>]>) -> Option<Certified> {
    let certificate = certificates.and_then(<[_]>::first)?;
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|it| it.as_str().ok()).map(str::to_owned);
    let groups = groups.chain(["system:authenticated".to_owned()]).collect();
    let until = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
    let until = SystemTime::UNIX_EPOCH + Duration::from_secs(until);
    Some(Certified { caller: Caller { user, uid: String::new(), groups }, until })
}
