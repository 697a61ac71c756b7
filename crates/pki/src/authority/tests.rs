use std::os::unix::fs::PermissionsExt;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::{files::TOKEN_KEY, issue::CA_LIFETIME, rotation};

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
    let first = authority
        .serving("host", "cluster.local", &[address("10.0.0.1")])
        .expect("a credential")
        .credential()
        .certificate;
    let again =
        authority.serving("host", "cluster.local", &[address("10.0.0.1")]).expect("the same").credential().certificate;
    assert_eq!(again, first);
    assert_eq!(read(dir.path(), "apiserver.crt"), first);

    let moved =
        authority.serving("host", "cluster.local", &[address("10.0.0.2")]).expect("a new one").credential().certificate;
    assert_ne!(moved, first, "another address asks for another certificate");

    std::fs::write(dir.path().join("apiserver.key"), authority.issue_server("x", &[]).expect("a key").key)
        .expect("the file can be written");
    let matching = authority.serving("host", "cluster.local", &[address("10.0.0.2")]).expect("a new one").credential();
    assert_ne!(matching.certificate, moved, "a key that does not belong to the certificate is replaced with it");

    std::fs::remove_file(dir.path().join("ca.crt")).expect("the file was there");
    let other = Authority::load_or_create(dir.path()).expect("another authority");
    let reissued =
        other.serving("host", "cluster.local", &[address("10.0.0.2")]).expect("a new one").credential().certificate;
    assert_ne!(reissued, matching.certificate, "a certificate of another authority is worth nothing");
}

#[test]
fn only_what_was_asked_for_serves() {
    let authority = Authority::in_memory().expect("a new authority");
    let subject = |name, group| Subject::client(name, &[group]).expect("one organization");
    let issued = authority.issue(&subject("jane", "dev")).expect("a credential");
    for (wanted, serves) in [
        (subject("jane", "dev"), true),
        (subject("jane", "ops"), false),
        (subject("john", "dev"), false),
        (Subject::server("jane", &["localhost".to_owned()]), false),
    ] {
        assert_eq!(issue::still_serves(&issued, &wanted, &authority.trust().certificate), serves, "{wanted:?}");
    }
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The authority, whose clock the test sets, and whose certificates last so long.
fn timed(mut authority: Authority, lifetime: Duration) -> (Authority, Arc<Mutex<SystemTime>>) {
    let clock = Arc::new(Mutex::new(SystemTime::now()));
    let now = clock.clone();
    authority.tell_time(move || *now.lock());
    authority.leaf_lifetime = lifetime;
    (authority, clock)
}

#[test]
fn credentials_are_renewed_before_they_end() {
    // A certificate begins an hour before it is issued.
    for (lifetime, stays, goes) in [(365 * DAY, 334 * DAY, 336 * DAY), (9 * HOUR, 6 * HOUR, 8 * HOUR)] {
        let (authority, clock) = timed(Authority::in_memory().expect("a new authority"), lifetime);
        let kept = [
            authority.serving("host", "cluster.local", &[]).expect("a credential"),
            authority.kubelet_client().expect("a credential"),
        ];
        let certificates = || kept.each_ref().map(|it| it.credential().certificate);
        let (start, first) = (*clock.lock(), certificates());
        *clock.lock() = start + stays;
        assert_eq!((authority.renew().expect("nothing is due"), certificates()), (0, first.clone()), "{lifetime:?}");
        *clock.lock() = start + goes;
        assert_eq!(authority.renew().expect("all are due"), 2, "{lifetime:?}");
        let second = certificates();
        assert!(first.iter().zip(&second).all(|(old, new)| old != new));
        assert_eq!((authority.renew().expect("nothing is due"), certificates()), (0, second));
        // What nobody uses any more is let go.
        drop(kept);
        *clock.lock() = start + 100 * lifetime;
        assert_eq!(authority.renew().expect("nothing is kept"), 0);
    }
}

#[test]
fn what_was_made_while_the_clock_was_ahead_is_replaced() {
    let (authority, clock) = timed(Authority::in_memory().expect("a new authority"), 9 * HOUR);
    let _kept = authority.serving("host", "cluster.local", &[]).expect("a credential");
    *clock.lock() -= 30 * DAY;
    assert_eq!(authority.renew().expect("it is not valid yet"), 1);
    assert_eq!(authority.renew().expect("nothing is due"), 0);
}

#[test]
fn what_is_renewed_is_on_disk() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let (authority, clock) = timed(Authority::load_or_create(dir.path()).expect("a new authority"), 9 * HOUR);
    let kept = authority.serving("host", "cluster.local", &[]).expect("a credential");
    *clock.lock() += 8 * HOUR;
    let kubeconfig = authority.admin_kubeconfig("https://127.0.0.1:6443").expect("a kubeconfig");
    *clock.lock() += 8 * HOUR;
    assert_eq!(authority.renew().expect("it is due"), 1);
    assert_eq!(read(dir.path(), "apiserver.crt"), kept.credential().certificate);
    assert_ne!(authority.admin_kubeconfig("https://127.0.0.1:6443").expect("a kubeconfig"), kubeconfig);
}

#[tokio::test]
async fn a_handshake_shows_the_newest_certificate() {
    let (authority, clock) = timed(Authority::in_memory().expect("a new authority"), 9 * HOUR);
    // The other end looks at the real time: both certificates hold then.
    *clock.lock() -= 8 * HOUR;
    let kept = authority.serving("host", "cluster.local", &[]).expect("a credential");
    let acceptor = TlsAcceptor::from(authority.server_config(&kept).expect("a configuration"));
    let client = authority.kubelet_client().expect("a credential");
    let connector = TlsConnector::from(authority.client_config(&client).expect("a configuration"));
    let mut shown = Vec::new();
    for _ in 0..2 {
        let (near, far) = tokio::io::duplex(16 * 1024);
        let name = ServerName::try_from("host").expect("a name");
        let (client, server) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
        server.expect("the server accepts");
        let client = client.expect("the client connects");
        shown.push(client.get_ref().1.peer_certificates().expect("a chain")[0].clone().into_owned());
        *clock.lock() += 8 * HOUR;
        authority.renew().expect("both are due");
    }
    assert_ne!(shown[0], shown[1]);
}

#[test]
fn a_ca_whose_key_is_gone_is_not_replaced() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    Authority::load_or_create(dir.path()).expect("a new authority");
    let certificate = read(dir.path(), "ca.crt");
    std::fs::remove_file(dir.path().join("ca.key")).expect("removed");
    let error = Authority::load_or_create(dir.path()).err().expect("nothing signs for it").to_string();
    assert!(error.contains("ca.key") && error.contains("put it back"), "{error}");
    assert_eq!(read(dir.path(), "ca.crt"), certificate);
    // What a crash leaves of the first start: nothing was signed yet.
    std::fs::remove_file(dir.path().join("ca.crt")).expect("removed");
    Authority::load_or_create(dir.path()).expect("a new authority");
}

#[test]
fn a_ca_without_its_key_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    Authority::load_or_create(dir.path()).expect("a new authority");
    let other = Authority::in_memory().expect("a new authority").issue_client("x", &[]).expect("a key");
    std::fs::write(dir.path().join("ca.key"), other.key).expect("the file can be written");
    let error = Authority::load_or_create(dir.path()).err().expect("the key is another's").to_string();
    assert!(error.contains("the key does not belong to the certificate; put ca.crt and ca.key back"), "{error}");
}

#[test]
fn a_damaged_file_is_named_or_made_anew() {
    let damages: [&[u8]; 4] =
        [b"garbage\n", b"", b"\xff\xfe\x00", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"];
    for (file, is_named) in [
        ("ca.crt", true),
        ("ca.key", true),
        ("sa.key", true),
        ("apiserver.crt", false),
        ("apiserver.key", false),
        ("admin.crt", false),
        ("admin.key", false),
    ] {
        for damage in damages {
            let dir = tempfile::tempdir().expect("a folder for the test");
            let begin = || {
                let authority = Authority::load_or_create(dir.path())?;
                authority.serving("host", "cluster.local", &[])?;
                authority.admin_kubeconfig("https://127.0.0.1:6443").map(drop)
            };
            begin().expect("a new authority");
            let path = dir.path().join(file);
            std::fs::write(&path, damage).expect("written");
            match begin() {
                Ok(()) => assert!(!is_named, "{file} is not replaced"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(is_named && said.contains(&path.display().to_string()), "{file}: {said}");
                    assert!(said.contains("put ") && said.contains(" back, or remove "), "{file}: {said}");
                }
            }
        }
    }
}

#[test]
fn client_certificates_prove_who_they_name() {
    let authority = Authority::in_memory().expect("a new authority");
    let chain = |it: &Credential| vec![certificate::certificate_of(it).expect("a certificate")];
    let jane = authority.issue_client("jane", &["dev"]).expect("a credential");
    for _ in 0..2 {
        let proven = authority.verify_client(&chain(&jane)).expect("it is ours");
        assert_eq!((&*proven.user, &*proven.uid, &*proven.groups), ("jane", "", &["dev".to_owned()][..]));
    }
    let server = authority.issue_server("jane", &["localhost".into()]).expect("a credential");
    let foreign =
        Authority::in_memory().expect("another authority").issue_client("jane", &["dev"]).expect("a credential");
    for bad in [chain(&server), chain(&foreign), Vec::new()] {
        assert!(authority.verify_client(&bad).is_err());
    }
}

#[test]
fn a_certificate_that_is_remembered_ends_when_it_ends() {
    let (authority, clock) = timed(Authority::in_memory().expect("a new authority"), 9 * HOUR);
    let jane = authority.issue_client("jane", &[]).expect("a credential");
    let chain = [certificate::certificate_of(&jane).expect("a certificate")];
    let start = *clock.lock();
    for (after, is_good) in [(Duration::ZERO, true), (8 * HOUR, true), (9 * HOUR + SECOND, false), (10 * HOUR, false)] {
        *clock.lock() = start + after;
        assert_eq!(authority.verify_client(&chain).is_ok(), is_good, "{after:?}");
    }
}

/// What the server sees of a client that shakes hands with `credential`: its chain, or the error of the handshake.
async fn handshake(
    authority: &Authority,
    credential: Option<&Credential>,
    name: &str,
) -> Result<(Vec<CertificateDer<'static>>, Vec<u8>), String> {
    let serving =
        authority.serving("host", "cluster.local", &["10.0.0.1".parse().expect("an address")]).expect("a credential");
    let acceptor = TlsAcceptor::from(authority.server_config(&serving).expect("a configuration"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.ca_pem().as_bytes()).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_root_certificates(roots);
    let mut config = match credential {
        None => config.with_no_client_auth(),
        Some(it) => {
            let chain = vec![certificate::certificate_of(it).expect("a certificate")];
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

/// One handshake between a server of `authority` and a client of it that trusts only `roots`; does it hold?
async fn believes(authority: &Authority, roots: &str, server: &Arc<DynamicCertificate>) -> bool {
    let mut trusted = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(roots.as_bytes()) {
        trusted.add(root.expect("PEM")).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let connector = TlsConnector::from(Arc::new(client.with_root_certificates(trusted).with_no_client_auth()));
    let acceptor = TlsAcceptor::from(authority.server_config(server).expect("a configuration"));
    let (near, far) = tokio::io::duplex(16 * 1024);
    let (client, _) =
        tokio::join!(connector.connect(ServerName::try_from("host").expect("a name"), near), acceptor.accept(far));
    client.is_ok()
}

fn chain(credential: &Credential) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(credential.certificate.as_bytes()).collect::<Result<_, _>>().expect("a chain")
}

#[tokio::test]
async fn an_authority_is_replaced_while_both_are_believed() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path()).expect("a new authority");
    let server = authority.serving("host", "cluster.local", &[]).expect("a credential");
    let (old_ca, old_server) = (authority.ca_pem(), server.credential().certificate);
    let old_client = authority.issue_client("jane", &["dev"]).expect("a credential");
    let mut changes = authority.changes();

    assert!(rotation::begin_authority(dir.path(), SystemTime::now()).expect("begun"));
    assert!(!rotation::begin_authority(dir.path(), SystemTime::now()).expect("read"), "one at a time");
    assert!(authority.reload().expect("taken up") && changes.has_changed().expect("it lives"));
    changes.mark_unchanged();
    assert!(!authority.reload().expect("read") && !changes.has_changed().expect("it lives"));
    let new_ca = authority.signer_pem();
    assert_eq!(authority.ca_pem(), format!("{new_ca}{old_ca}"));
    assert_ne!(server.credential().certificate, old_server);
    assert_eq!(read(dir.path(), "apiserver.crt"), server.credential().certificate);
    for (who, roots) in [("the new one", &new_ca), ("the old one", &old_ca), ("both", &authority.ca_pem())] {
        assert!(believes(&authority, roots, &server).await, "{who}");
    }
    let new_client = authority.issue_client("john", &["dev"]).expect("a credential");
    for credential in [&old_client, &new_client, &old_client] {
        authority.verify_client(&chain(credential)).expect("both are believed");
    }
    authority.write_in_use().expect("written");
    let said = InUse::said(dir.path()).expect("read").expect("written");
    assert!(said.is_same(&InUse::wanted(dir.path()).expect("read")));
    assert_eq!(said.old_certificates.keys().collect::<Vec<_>>(), ["jane"]);

    // A start amid it goes on where it was, and remembers who was seen.
    let again = Authority::load_or_create(dir.path()).expect("the same authority");
    assert_eq!((again.ca_pem(), again.in_use.lock().clone()), (authority.ca_pem(), said));
    assert_eq!(
        again.serving("host", "cluster.local", &[]).expect("kept").credential().certificate,
        server.credential().certificate
    );

    assert!(rotation::drop_authority(dir.path()).expect("dropped"));
    assert!(!rotation::drop_authority(dir.path()).expect("read"), "there is none");
    assert!(authority.reload().expect("taken up"));
    assert_eq!(authority.ca_pem(), new_ca);
    assert!(believes(&authority, &new_ca, &server).await);
    assert!(!believes(&authority, &old_ca, &server).await, "nothing leads from the old one any more");
    authority.verify_client(&chain(&new_client)).expect("the new one is believed");
    authority.verify_client(&chain(&old_client)).expect_err("though it was known a moment ago");
    assert!(rotation::begin_authority(dir.path(), SystemTime::now()).expect("the next one"));
}

#[test]
fn a_rotation_that_is_cut_off_leaves_one_authority_or_the_other() {
    const FILES: [&str; 6] = ["ca.crt", "ca.key", "ca-next.crt", "ca-next.key", "ca-old.crt", "ca-bridge.crt"];
    let dir = tempfile::tempdir().expect("a folder for the test");
    let before = Authority::load_or_create(dir.path()).expect("a new authority").ca_pem();
    let contents = |dir: &Path| FILES.map(|it| std::fs::read(dir.join(it)).ok());
    let first = contents(dir.path());
    rotation::begin_authority(dir.path(), SystemTime::now()).expect("begun");
    let after = Authority::load_or_create(dir.path()).expect("the new authority").ca_pem();
    let [new_crt, new_key, _, _, old_crt, bridge] = contents(dir.path());
    let [ca_crt, ca_key, ..] = first;
    // The folder as it is after each write, in their order.
    let states = [
        ([&ca_crt, &ca_key, &None, &new_key, &None, &None], false),
        ([&ca_crt, &ca_key, &None, &new_key, &None, &bridge], false),
        ([&ca_crt, &ca_key, &None, &new_key, &old_crt, &bridge], false),
        ([&ca_crt, &ca_key, &new_crt, &new_key, &old_crt, &bridge], true),
        ([&ca_crt, &new_key, &new_crt, &None, &old_crt, &bridge], true),
        ([&new_crt, &new_key, &None, &None, &old_crt, &bridge], true),
    ];
    for (number, (state, is_decided)) in states.into_iter().enumerate() {
        let cut = tempfile::tempdir().expect("a folder for the test");
        std::fs::copy(dir.path().join("sa.key"), cut.path().join("sa.key")).expect("copied");
        for (file, content) in FILES.iter().zip(state) {
            if let Some(content) = content {
                std::fs::write(cut.path().join(file), content).expect("written");
            }
        }
        let found = Authority::load_or_create(cut.path()).expect("an authority").ca_pem();
        assert_eq!(found, if is_decided { &*after } else { &*before }, "after write {number}");
        // The same command again goes on from there.
        assert_eq!(rotation::begin_authority(cut.path(), SystemTime::now()).expect("gone on"), !is_decided, "{number}");
        let authority = Authority::load_or_create(cut.path()).expect("an authority");
        assert!(authority.ca_pem().ends_with(&before) && authority.ca_pem() != before, "after write {number}");
    }
    // The old one goes first when it is dropped.
    std::fs::remove_file(dir.path().join("ca-old.crt")).expect("removed");
    let left = Authority::load_or_create(dir.path()).expect("the new authority").ca_pem();
    assert_eq!(format!("{left}{before}"), after);
}

#[test]
fn the_front_proxys_authority_is_another_and_both_are_replaced_together() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path()).expect("a new authority");
    let kept = authority.front_proxy_client().expect("a credential");
    let before = chain(&kept.credential());
    assert!(authority.verify_client(&before).is_err(), "it is nobody's identity");
    assert_eq!(authority.front_proxy().verify_client(&before).expect("it is its own").user, FRONT_PROXY_CLIENT);
    let admin = authority.issue_client("admin", &["system:masters"]).expect("a credential");
    assert!(authority.front_proxy().verify_client(&chain(&admin)).is_err());

    let first = authority.front_proxy().ca_pem();
    assert!(rotation::begin_authority(dir.path(), SystemTime::now()).expect("begun"));
    assert!(authority.reload().expect("taken up"));
    let both = authority.front_proxy().ca_pem();
    assert!(both.ends_with(&first) && both.len() > first.len(), "both are trusted");
    let after = chain(&kept.credential());
    assert_ne!(after, before);
    for shown in [&before, &after] {
        assert!(authority.front_proxy().verify_client(shown).is_ok());
        assert!(authority.verify_client(shown).is_err());
    }
    let listed = rotation::list(dir.path(), Path::new("")).expect("a list");
    let client = listed.iter().find(|it| it.name == FRONT_PROXY_CLIENT).expect("it is listed");
    assert_eq!((client.is_authority, &*client.signer), (false, "front-proxy-ca"));
    assert!(rotation::renew(dir.path(), FRONT_PROXY_CLIENT, SystemTime::now()).expect("renewed"));
    authority.reload().expect("taken up");
    assert!(authority.front_proxy().verify_client(&chain(&kept.credential())).is_ok());

    assert!(rotation::drop_authority(dir.path()).expect("dropped"));
    assert!(authority.reload().expect("taken up"));
    assert!(authority.front_proxy().verify_client(&before).is_err());
    assert!(!dir.path().join("front-proxy-ca-old.crt").exists());
}

#[test]
fn an_authority_that_is_not_valid_now_is_not_kept() {
    let long_ago: fn(SystemTime) -> SystemTime = |now| now - CA_LIFETIME - DAY;
    let later: fn(SystemTime) -> SystemTime = |now| now + 400 * DAY;
    for (made, name) in [(long_ago, "it has ended"), (later, "the clock was ahead")] {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let now = SystemTime::now();
        let credential = issue::authority("corten-ca", made(now)).expect("an authority");
        files::store(dir.path(), "ca", &credential).expect("written");
        files::store_key(dir.path(), TOKEN_KEY, &TokenKey::generate().expect("a key").1).expect("written");
        assert!(rotation::begin_authority(dir.path(), now).expect("replaced"), "{name}");
        let authority = Authority::load_or_create(dir.path()).expect("a new authority");
        assert_eq!(authority.ca_pem(), authority.signer_pem(), "{name}");
        assert!(!rotation::state(dir.path()).expect("read").authority, "{name}");
    }
}

#[test]
fn the_key_of_tokens_is_replaced_while_both_are_believed() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path()).expect("a new authority");
    let ids = || authority.token_keys().all().map(|it| it.id().to_owned()).collect::<Vec<_>>();
    let before = ids();
    let signature = authority.token_keys().signing.sign(b"text").expect("signed");
    assert!(rotation::begin_token_key(dir.path()).expect("begun"));
    assert!(!rotation::begin_token_key(dir.path()).expect("read"), "one at a time");
    assert!(authority.reload().expect("taken up"));
    assert_eq!((ids().len(), ids().last()), (2, before.last()));
    let keys = authority.token_keys();
    let old = keys.old.as_deref().expect("it is trusted");
    assert!(old.verifies(b"text", &signature) && !keys.signing.verifies(b"text", &signature));
    assert_eq!((old.sign(b"text"), old.jwk()["kid"].as_str()), (None, before.first().map(String::as_str)));
    assert!(rotation::drop_token_key(dir.path()).expect("dropped") && authority.reload().expect("taken up"));
    assert_eq!(ids(), [keys.signing.id()]);
}

#[test]
fn certificates_are_renewed_and_listed() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path()).expect("a new authority");
    let server = authority.serving("host", "cluster.local", &[]).expect("a credential");
    let first = server.credential().certificate;
    let absent = dir.path().join("absent.pem");
    let listed = || -> Vec<(String, String)> {
        let all = rotation::list(dir.path(), &absent).expect("listed");
        all.into_iter().map(|it| (it.name, it.signer)).collect()
    };
    let words = |name: &str, signer: &str| (name.to_owned(), signer.to_owned());
    assert_eq!(listed(), [words("apiserver", "ca"), words("ca", ""), words("front-proxy-ca", "")]);
    assert!(rotation::renew(dir.path(), "apiserver", SystemTime::now()).expect("renewed"));
    assert!(!rotation::renew(dir.path(), "absent", SystemTime::now()).expect("read"));
    authority.reload().expect("taken up");
    let second = server.credential().certificate;
    assert!(second != first && second == read(dir.path(), "apiserver.crt"), "what is on disk is shown");
    rotation::begin_authority(dir.path(), SystemTime::now()).expect("begun");
    assert_eq!(listed()[0], words("apiserver", "ca-old"));
    authority.reload().expect("taken up");
    assert_eq!(listed()[0], words("apiserver", "ca"));
}

#[test]
fn what_its_owner_wrote_into_a_kubeconfig_stays_while_it_leads_there() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path().join("pki")).expect("a new authority");
    let path = dir.path().join("admin.kubeconfig");
    let write = |url: &str| authority.write_admin_kubeconfig(&path, url).expect("it is written");
    let there = || std::fs::read_to_string(&path).expect("it is there");
    write("https://127.0.0.1:6443");
    let edited = there().replace("    user: kubernetes-admin\n", "    user: kubernetes-admin\n    namespace: shop\n");
    std::fs::write(&path, &edited).expect("a file");
    write("https://127.0.0.1:6443");
    assert_eq!(there(), edited);
    write("https://127.0.0.1:7443");
    assert!(there().contains("https://127.0.0.1:7443") && !there().contains("namespace: shop"));
}
