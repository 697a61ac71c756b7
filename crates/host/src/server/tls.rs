//! Who is calling: the server's TLS, with client certificates of the cluster's own authority.

use std::sync::Arc;

use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::ServerError;

/// As upstream's installers name the API server to kubelets.
const API_SERVER: &str = "kube-apiserver-kubelet-client";
const MASTERS: &str = "system:masters";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Without a certificate.
    Nobody,
    ApiServer,
    /// With a valid certificate that says somebody else.
    Other(String),
}

/// TLS that asks for a client certificate, so that who has none can be told so in HTTP.
pub(super) fn config(certificate: &str, key: &str, client_ca: &str) -> Result<ServerConfig, ServerError> {
    let pem = |error: rustls_pki_types::pem::Error| ServerError::Pem(error.to_string());
    let read = |text: &str| CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>().map_err(pem);
    let mut roots = RootCertStore::empty();
    for root in read(client_ca)? {
        roots.add(root)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let clients = clients.allow_unauthenticated().build().map_err(|it| ServerError::Pem(it.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(pem)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(read(certificate)?, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the name out of a certificate that has been verified.
pub(super) fn caller(certificates: Option<&[CertificateDer<'_>]>) -> Caller {
    let Some(certificate) = certificates.and_then(<[_]>::first) else { return Caller::Nobody };
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(certificate) else { return Caller::Nobody };
    let subject = certificate.subject();
    let name = subject.iter_common_name().next().and_then(|it| it.as_str().ok()).unwrap_or_default();
    let is_master = subject.iter_organization().any(|it| it.as_str() == Ok(MASTERS));
    if name == API_SERVER || is_master { Caller::ApiServer } else { Caller::Other(name.to_owned()) }
}
