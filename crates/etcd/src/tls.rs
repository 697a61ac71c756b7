//! The way to a member: TCP, and TLS on it where the member's address begins with `https`.
//!
//! The files are read anew for each connection, as etcd's own client reads the pair that it shows (`transport.TLSInfo`,
//! `GetClientCertificate`): a certificate that was renewed needs no start.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::options::TlsFiles;

/// What is sent to a member that is cut off is not heard of; TCP itself gives up after a quarter of an hour, and asks ever less often, also
/// once the member is back.
const UNHEARD_MS_MAX: u32 = 5_000;

/// What members are known by, and what they are shown.
pub(crate) struct Tls {
    files: TlsFiles,
    last: Mutex<Last>,
}

/// What the files said when they were last whole.
struct Last {
    config: Arc<ClientConfig>,
    /// Why they are not now.
    concern: Option<String>,
}

impl Tls {
    /// # Errors
    /// A file cannot be read, or holds something else.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, String> {
        let config = Arc::new(config(files)?);
        Ok(Self { files: files.clone(), last: Mutex::new(Last { config, concern: None }) })
    }

    /// As the files are now. Where one is being replaced, what they said before counts.
    fn current(&self) -> Arc<ClientConfig> {
        let read = config(&self.files);
        let mut last = self.last.lock();
        match read {
            Ok(config) => (last.config, last.concern) = (Arc::new(config), None),
            Err(concern) if last.concern.as_ref() != Some(&concern) => {
                tracing::warn!(concern, "the files for TLS with etcd are not taken; those of before are used");
                last.concern = Some(concern);
            }
            Err(_) => {}
        }
        last.config.clone()
    }
}

fn config(files: &TlsFiles) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let ca = files.ca.display();
    for certificate in CertificateDer::pem_file_iter(&files.ca).map_err(|it| format!("reading {ca}: {it}"))? {
        let certificate = certificate.map_err(|it| format!("reading {ca}: {it}"))?;
        roots.add(certificate).map_err(|it| format!("{ca}: {it}"))?;
    }
    if roots.is_empty() {
        return Err(format!("{ca}: there is no certificate in it"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|it| it.to_string())?
        .with_root_certificates(roots);
    let mut config = match &files.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let reading = |it: &dyn std::fmt::Display| format!("reading {}: {it}", certificate.display());
            let chain = CertificateDer::pem_file_iter(certificate).map_err(|it| reading(&it))?;
            let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|it| reading(&it))?;
            let key_der = PrivateKeyDer::from_pem_file(key).map_err(|it| format!("reading {}: {it}", key.display()))?;
            let both = format!("{} and {}", certificate.display(), key.display());
            builder.with_client_auth_cert(chain, key_der).map_err(|it| format!("{both}: {it}"))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Dials one member, again and again.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) tls: Option<Arc<Tls>>,
}

pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Connection>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// tonic puts a deadline around it.
    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.tls.clone();
        Box::pin(async move { Ok(TokioIo::new(dial(&uri, tls).await?)) })
    }
}

/// For HTTP/1.1, which a member speaks at the same address.
pub(crate) async fn dial_http(uri: &Uri, connector: &Connector) -> io::Result<Box<dyn Connection>> {
    let tls = connector.tls.clone().filter(|_| uri.scheme_str() == Some("https"));
    dial_for(uri, tls, Vec::new()).await
}

async fn dial(uri: &Uri, tls: Option<Arc<Tls>>) -> io::Result<Box<dyn Connection>> {
    dial_for(uri, tls, vec![b"h2".to_vec()]).await
}

async fn dial_for(uri: &Uri, tls: Option<Arc<Tls>>, protocols: Vec<Vec<u8>>) -> io::Result<Box<dyn Connection>> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let tcp = TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(2379))).await?;
    tcp.set_nodelay(true)?;
    set_tcp_user_timeout(&tcp, UNHEARD_MS_MAX)?;
    let Some(tls) = tls else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(host).map_err(|it| io::Error::new(io::ErrorKind::InvalidInput, it))?;
    let config = tokio::task::spawn_blocking(move || tls.current()).await.map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(config).with_alpn(protocols).connect(name, tcp).await?))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use corten_pki::{EtcdAuthority, EtcdFiles};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    fn begun(folder: &Path) -> (EtcdAuthority, EtcdFiles) {
        let names = ["127.0.0.1".to_owned()];
        (EtcdAuthority::load_or_create(folder, &names).expect("an authority"), EtcdFiles::of(folder))
    }

    /// The certificate that a member is shown by the next connection.
    async fn shown(tls: &Arc<Tls>, acceptor: &TlsAcceptor) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let uri = format!("http://{}", listener.local_addr().expect("it is bound")).parse().expect("an address");
        let accepted = async {
            let (tcp, _) = listener.accept().await.expect("a connection");
            let stream = acceptor.accept(tcp).await.expect("it is known");
            stream.get_ref().1.peer_certificates().expect("it shows one")[0].to_vec()
        };
        let (shown, dialed) = tokio::join!(accepted, dial(&uri, Some(tls.clone())));
        dialed.map(drop).expect("connected");
        shown
    }

    fn on_disk(files: &EtcdFiles) -> Vec<u8> {
        CertificateDer::from_pem_file(&files.client.0).expect("a certificate").to_vec()
    }

    #[tokio::test]
    async fn a_renewed_certificate_is_shown_by_the_next_connection() {
        let folder = tempfile::tempdir().expect("a folder");
        let (authority, files) = begun(folder.path());
        let tls = TlsFiles { ca: files.ca.clone(), client: Some(files.client.clone()) };
        let (tls, acceptor) = (Arc::new(Tls::read(&tls).expect("whole")), TlsAcceptor::from(authority.server_config()));
        let first = on_disk(&files);
        assert_eq!(shown(&tls, &acceptor).await, first);

        fs::remove_file(&files.client.0).expect("removed");
        assert_eq!(shown(&tls, &acceptor).await, first, "it is being replaced");
        fs::remove_file(&files.client.1).expect("removed");
        authority.renew().expect("made anew");
        let second = on_disk(&files);
        assert!(second != first, "it is another one");
        assert_eq!(shown(&tls, &acceptor).await, second);
    }
}
