//! What a connection's TLS is made of: whom to trust, whom to be.

use std::sync::Arc;

use corten_stream::AnyServer;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};

use crate::kubeconfig::RestConfig;

pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let bare = name.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(bare).map_err(|_| format!("{name:?} is neither a host name nor an address"))
}

pub(super) fn config(target: &RestConfig, protocols: &[&[u8]]) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS version to offer: {error}"))?;
    let builder = if target.insecure_skip_tls_verify {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
    } else {
        builder.with_root_certificates(roots(&target.ca)?)
    };
    let mut config = match &target.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("its client key: {error}"))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| format!("its client certificate: {error}"))?
        }
    };
    config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    Ok(config)
}

fn roots(ca: &[u8]) -> Result<RootCertStore, String> {
    if ca.is_empty() {
        return Err("it comes without a certificate authority to know it by".into());
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots.add(certificate).map_err(|error| format!("its certificate authority: {error}"))?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("a certificate cannot be read: {error}"))?;
    if chain.is_empty() { Err("a certificate file holds no certificate".into()) } else { Ok(chain) }
}
