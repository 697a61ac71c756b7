use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::*;
use crate::pki::{Authority, Credential};

fn peer(credential: Option<&Credential>) -> Peer {
    let chain = credential.map(|it| CertificateDer::from_pem_slice(it.certificate.as_bytes()).expect("a certificate"));
    Peer { address: ([127, 0, 0, 1], 1).into(), certificates: chain.into_iter().collect() }
}

fn headers(name: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !name.is_empty() {
        headers.insert(name, "x".parse().expect("a value"));
    }
    headers
}

#[test]
fn credentials_decide_who_asks() {
    let authority = Authority::in_memory().expect("an authority");
    let jane = authority.issue_client("jane", &["dev"]).expect("a credential");
    let server = authority.issue_server("jane", &["localhost".into()]).expect("a credential");
    let foreign = Authority::in_memory().expect("another").issue_client("jane", &["dev"]).expect("a credential");
    for (what, credential, header, expected) in [
        ("a certificate", Some(&jane), "", Some(("jane", vec!["dev", AUTHENTICATED]))),
        ("nothing", None, "", Some((ANONYMOUS, vec![UNAUTHENTICATED]))),
        ("a server's certificate", Some(&server), "", None),
        ("a stranger's certificate", Some(&foreign), "", None),
        ("a token", None, "authorization", None),
    ] {
        let found = from_wire(Some(&peer(credential)), &headers(header), &authority);
        match expected {
            Some((user, groups)) => {
                let found = found.unwrap_or_else(|it| panic!("{what}: {it}"));
                assert_eq!((&*found.user, found.groups), (user, groups.into_iter().map(str::to_owned).collect()));
            }
            None => assert_eq!(found.expect_err(what).code, 401, "{what}"),
        }
    }
}

#[test]
fn a_certificate_is_named_by_its_fingerprint() {
    let authority = Authority::in_memory().expect("an authority");
    let jane = authority.issue_client("jane", &[]).expect("a credential");
    let found = from_wire(Some(&peer(Some(&jane))), &HeaderMap::new(), &authority).expect("it is ours");
    let credential = &found.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(credential.starts_with("X509SHA256=") && credential.len() == "X509SHA256=".len() + 64, "{credential}");
}

#[test]
fn nobody_becomes_someone_else() {
    for (header, message) in [
        ("impersonate-user", Some("impersonation is not supported yet")),
        ("impersonate-extra-scopes", Some("impersonation is not supported yet")),
        ("x-remote-user", Some("authentication by request headers is not supported yet")),
        ("x-requested-with", None),
    ] {
        let refused = refuse_foreign_identities(&headers(header)).err();
        assert_eq!(refused.map(|it| (it.code, it.message)), message.map(|it| (403, it.to_owned())), "{header}");
    }
}
