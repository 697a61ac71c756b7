use rustls_pki_types::{CertificateDer, pem::PemObject};

use corten_pki::{Authority, Credential as Certified};

use super::*;
use crate::identity::AUTHENTICATED;

fn peer(credential: Option<&Certified>) -> Peer {
    let chain = credential.map(|it| CertificateDer::from_pem_slice(it.certificate.as_bytes()).expect("a certificate"));
    Peer { address: ([127, 0, 0, 1], 1).into(), certificates: chain.into_iter().collect() }
}

#[test]
fn certificates_decide_who_asks() {
    let authority = Authority::in_memory().expect("an authority");
    let jane = authority.issue_client("jane", &["dev"]).expect("a credential");
    let server = authority.issue_server("jane", &["localhost".into()]).expect("a credential");
    let foreign = Authority::in_memory().expect("another").issue_client("jane", &["dev"]).expect("a credential");
    for (what, credential, expected) in [
        ("a certificate", Some(&jane), Some(Ok(("jane", vec!["dev", AUTHENTICATED])))),
        ("nothing", None, None),
        ("a server's certificate", Some(&server), Some(Err(()))),
        ("a stranger's certificate", Some(&foreign), Some(Err(()))),
    ] {
        let found = by_certificate(Some(&peer(credential)), &authority);
        let found = found.map(|it| it.map(|(it, _)| (it.user, it.groups)).map_err(drop));
        let owned = |(user, groups): (&str, Vec<&str>)| {
            (user.to_owned(), groups.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(found, expected.map(|it| it.map(owned)), "{what}");
    }
}

#[test]
fn a_certificate_is_named_by_its_fingerprint() {
    let authority = Authority::in_memory().expect("an authority");
    let jane = authority.issue_client("jane", &[]).expect("a credential");
    let (found, _) = by_certificate(Some(&peer(Some(&jane))), &authority).expect("one is shown").expect("it is ours");
    let credential = &found.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(credential.starts_with("X509SHA256=") && credential.len() == "X509SHA256=".len() + 64, "{credential}");
}

#[test]
fn tokens_are_found_where_they_may_be() {
    for (name, value, expected) in [
        ("authorization", "Bearer abc", Some("abc")),
        ("authorization", "bearer  ", None),
        ("authorization", "Basic abc", None),
        ("authorization", "abc", None),
        ("sec-websocket-protocol", "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.YWJj", Some("abc")),
        ("sec-websocket-protocol", "v4.channel.k8s.io", None),
        ("x-token", "Bearer abc", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a value"));
        assert_eq!(token(&headers).as_deref(), expected, "{name}: {value}");
    }
}

#[test]
fn secrets_and_claims_go_no_further() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer abc"),
        ("x-remote-user", "root"),
        ("x-remote-extra-scopes", "all"),
        ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.YWJj, v4.channel.k8s.io"),
        ("x-requested-with", "me"),
    ] {
        headers.insert(name, value.parse().expect("a value"));
    }
    forget_secrets(&mut headers);
    let mut left: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
    left.sort_unstable();
    assert_eq!(left, [("sec-websocket-protocol", "v4.channel.k8s.io"), ("x-requested-with", "me")]);
}
