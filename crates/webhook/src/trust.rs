//! Whom to trust, and what to show.
//!
//! As Go does, a certificate that stands in the `caBundle` itself is trusted, even where it is one of an authority: webhook servers that make
//! their own certificate often make such a one.

use std::{fs, sync::Arc};

use corten_stream::{AnyServer, IdentifiedServer, ServerIdentity};
use rustls::{
    CertificateError, ClientConfig, OtherError, RootCertStore,
    client::{
        WebPkiServerVerifier,
        danger::{ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, aws_lc_rs},
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::client_config::{self, ConfigError, Proof};

/// Where Linux distributions keep what they trust, as in Go's `root_linux.go`.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(crate) fn config(of: &client_config::ClientConfig) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError(format!("no TLS version to offer: {error}")))?;
    let verifier: Arc<dyn ServerCertVerifier> = if of.skip_verify {
        Arc::new(AnyServer(provider))
    } else {
        Arc::new(IdentifiedServer { identity: Trusted::of(&of.ca_bundle, provider.clone())?, provider })
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match &of.proof {
        Some(Proof::Certificate { chain, key }) => {
            let chain = certificates(chain)?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|it| ConfigError(format!("client key: {it}")))?;
            builder.with_client_auth_cert(chain, key).map_err(|it| ConfigError(format!("client certificate: {it}")))?
        }
        Some(Proof::BearerToken(_)) | None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|it| ConfigError(format!("unable to load root certificates: {it}")))?;
    if chain.is_empty() {
        return Err(ConfigError("unable to load root certificates: unable to parse bytes as PEM block".into()));
    }
    Ok(chain)
}

/// Nothing is trusted where the machine keeps no such file.
fn of_the_system() -> Vec<CertificateDer<'static>> {
    let Some(pem) = SYSTEM_BUNDLES.iter().find_map(|it| fs::read(it).ok()) else { return Vec::new() };
    CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect()
}

#[derive(Debug)]
struct Trusted {
    /// `None` where no certificate can be an authority's.
    roots: Option<Arc<WebPkiServerVerifier>>,
    itself: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn of(bundle: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, ConfigError> {
        let (authorities, itself) = if bundle.is_empty() {
            (of_the_system(), Vec::new())
        } else {
            let all = certificates(bundle)?;
            (all.clone(), all)
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        let roots = if roots.is_empty() {
            None
        } else {
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            Some(built.map_err(|it| ConfigError(format!("unable to load root certificates: {it}")))?)
        };
        Ok(Self { roots, itself })
    }
}

impl ServerIdentity for Trusted {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.itself.iter().any(|it| it == end_entity) {
            check_lifetime(end_entity, now)?;
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let Some(roots) = &self.roots else { return Err(CertificateError::UnknownIssuer.into()) };
        roots.verify_server_cert(end_entity, intermediates, name, &[], now).map_err(|error| match error {
            // As `openssl x509 -req` makes them without extensions: no authority could make it valid.
            rustls::Error::InvalidCertificate(CertificateError::Other(_)) if !may_have_names(end_entity) => {
                CertificateError::NotValidForNameContext { expected: name.to_owned(), presented: Vec::new() }.into()
            }
            // An authority that shows its own certificate, and is none that is trusted.
            rustls::Error::InvalidCertificate(CertificateError::Other(_)) => CertificateError::UnknownIssuer.into(),
            error => error,
        })
    }
}

/// Certificates before version 3 have no `subjectAltName`.
fn may_have_names(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).map_or(true, |(_, it)| it.version() == X509Version::V3)
}

fn check_lifetime(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|it| CertificateError::Other(OtherError(Arc::new(std::io::Error::other(it.to_string())))))?;
    let validity = parsed.validity();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() || now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::handshake;

    /// What `openssl x509 -req` makes where it is given no extensions, and the authority that signed it.
    const VERSION_1: &[u8] = include_bytes!("../testdata/version-1.pem");
    const AUTHORITY: &[u8] = include_bytes!("../testdata/authority.pem");

    #[test]
    fn a_certificate_that_can_have_no_names_is_told_as_such() {
        let pem = certificates(VERSION_1).expect("two certificates");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let trusted = Trusted::of(AUTHORITY, provider);
        let name = ServerName::try_from("guard.policies.svc").expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        let error = trusted.expect("an authority").verify(&pem[0], &[], &name, now).expect_err("it has no names");
        let told = handshake(&std::io::Error::other(error), "guard.policies.svc");
        let expected = "certificate relies on legacy Common Name field, use SANs instead";
        assert_eq!(told, format!("tls: failed to verify certificate: x509: {expected}"));
    }
}
