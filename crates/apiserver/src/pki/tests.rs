use std::{os::unix::fs::PermissionsExt, sync::Arc};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).expect("the file is there")
}

#[test]
fn an_authority_outlives_a_restart() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dir = dir.path().join("pki");
    let first = Authority::load_or_create(&dir).expect("a new authority");
    let kubeconfig = first.admin_kubeconfig("https://127.0.0.1:6443").expect("a kubeconfig");
    let again = Authority::load_or_create(&dir).expect("the same authority");
    assert_eq!(again.ca_pem(), first.ca_pem());
    assert_eq!(again.admin_kubeconfig("https://127.0.0.1:6443").expect("a kubeconfig"), kubeconfig);

    let mode = |name: &str| std::fs::metadata(dir.join(name)).expect("the file is there").permissions().mode() & 0o777;
    assert_eq!((mode("ca.key"), mode("admin.key"), mode("admin.crt")), (0o600, 0o600, 0o644));
}

#[test]
fn a_credential_is_kept_while_it_serves() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path()).expect("a new authority");
    let address = |it: &str| it.parse().expect("an address");
    let first = authority.serving("host", &[address("10.0.0.1")]).expect("a credential").certificate;
    assert_eq!(authority.serving("host", &[address("10.0.0.1")]).expect("the same").certificate, first);
    assert_eq!(read(dir.path(), "apiserver.crt"), first);

    let moved = authority.serving("host", &[address("10.0.0.2")]).expect("a new one").certificate;
    assert_ne!(moved, first, "another address asks for another certificate");

    std::fs::write(dir.path().join("apiserver.key"), authority.issue_server("x", &[]).expect("a key").key)
        .expect("the file can be written");
    let matching = authority.serving("host", &[address("10.0.0.2")]).expect("a new one");
    assert_ne!(matching.certificate, moved, "a key that does not belong to the certificate is replaced with it");

    std::fs::remove_file(dir.path().join("ca.crt")).expect("the file was there");
    let other = Authority::load_or_create(dir.path()).expect("another authority");
    let reissued = other.serving("host", &[address("10.0.0.2")]).expect("a new one").certificate;
    assert_ne!(reissued, matching.certificate, "a certificate of another authority is worth nothing");
}

#[test]
fn a_certificate_near_its_end_no_longer_serves() {
    let authority = Authority::in_memory().expect("a new authority");
    let subject = Subject::client("jane", &["dev"]).expect("one organization");
    let issued = authority.issue(&subject).expect("a credential");
    let serves = |subject: &Subject, days: u64| {
        let until = SystemTime::now() + Duration::from_secs(days * 24 * 3600);
        issue::still_serves(&issued, subject, &authority.certificate, until)
    };
    assert!(serves(&subject, 300));
    assert!(!serves(&subject, 366));
    assert!(!serves(&Subject::client("jane", &["ops"]).expect("one organization"), 300));
    assert!(!serves(&Subject::client("john", &["dev"]).expect("one organization"), 300));
}

#[test]
fn a_ca_without_its_key_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    Authority::load_or_create(dir.path()).expect("a new authority");
    let other = Authority::in_memory().expect("a new authority").issue_client("x", &[]).expect("a key");
    std::fs::write(dir.path().join("ca.key"), other.key).expect("the file can be written");
    let error = Authority::load_or_create(dir.path()).err().expect("the key is another's").to_string();
    assert!(error.ends_with("the key does not belong to the certificate"), "{error}");
}

#[test]
fn client_certificates_prove_who_they_name() {
    let authority = Authority::in_memory().expect("a new authority");
    let chain = |it: &Credential| vec![issue::certificate_of(it).expect("a certificate")];
    let jane = authority.issue_client("jane", &["dev"]).expect("a credential");
    for _ in 0..2 {
        let proven = authority.verify_client(&chain(&jane)).expect("it is ours");
        assert_eq!(proven, Proven { user: "jane".into(), groups: vec!["dev".into()] });
    }
    let server = authority.issue_server("jane", &["localhost".into()]).expect("a credential");
    let foreign =
        Authority::in_memory().expect("another authority").issue_client("jane", &["dev"]).expect("a credential");
    for bad in [chain(&server), chain(&foreign), Vec::new()] {
        assert!(authority.verify_client(&bad).is_err());
    }
}

/// What the server sees of a client that shakes hands with `credential`: its chain, or the error of the handshake.
async fn handshake(
    authority: &Authority,
    credential: Option<&Credential>,
    name: &str,
) -> Result<(Vec<CertificateDer<'static>>, Vec<u8>), String> {
    let serving = authority.serving("host", &["10.0.0.1".parse().expect("an address")]).expect("a credential");
    let acceptor = TlsAcceptor::from(authority.server_config(&serving).expect("a configuration"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.ca_pem().as_bytes()).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_root_certificates(roots);
    let mut config = match credential {
        None => config.with_no_client_auth(),
        Some(it) => {
            let chain = vec![issue::certificate_of(it).expect("a certificate")];
            let key = PrivateKeyDer::from_pem_slice(it.key.as_bytes()).expect("a key");
            config.with_client_auth_cert(chain, key).expect("a key for its certificate")
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (near, far) = tokio::io::duplex(16 * 1024);
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let client = async move {
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, near).await.map_err(|it| it.to_string())?;
        stream.write_all(b"x").await.map_err(|it| it.to_string())?;
        // Kept open until the server has read.
        Ok::<_, String>(stream)
    };
    let server = async {
        let mut stream = acceptor.accept(far).await.map_err(|it| it.to_string())?;
        stream.read_u8().await.map_err(|it| it.to_string())?;
        let (_, connection) = stream.get_ref();
        let chain = connection.peer_certificates().unwrap_or_default().to_vec();
        Ok((chain, connection.alpn_protocol().unwrap_or_default().to_vec()))
    };
    let (client, server) = tokio::join!(client, server);
    client?;
    server
}

#[tokio::test]
async fn tls_asks_for_a_certificate_and_lets_the_chain_judge_it() {
    let authority = Authority::in_memory().expect("a new authority");
    for name in ["localhost", "kubernetes.default.svc.cluster.local", "host", "127.0.0.1", "10.0.0.1"] {
        let (chain, protocol) = handshake(&authority, None, name).await.expect("no certificate is needed");
        assert!(chain.is_empty());
        assert_eq!(protocol, b"h2");
    }
    assert!(handshake(&authority, None, "example.com").await.is_err(), "the name is not ours");

    let ours = authority.issue_client("jane", &["dev"]).expect("a credential");
    let (chain, _) = handshake(&authority, Some(&ours), "localhost").await.expect("ours is welcome");
    assert_eq!(authority.verify_client(&chain).expect("it is ours").user, "jane");

    let foreign = Authority::in_memory().expect("another authority").issue_client("jane", &[]).expect("a credential");
    let (chain, _) = handshake(&authority, Some(&foreign), "localhost").await.expect("the handshake does not judge");
    assert!(authority.verify_client(&chain).is_err());
}
