use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::*;

fn peer(pem: &str) -> Peer {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    Peer { address: ([127, 0, 0, 1], 1).into(), certificates: [certificate].into() }
}

fn jane() -> Identity {
    let extra = [("example.com/a b%".to_owned(), vec!["1".to_owned(), "zwei ü".to_owned()])];
    let identity = Identity::new("jäne", &["dev", "ops", AUTHENTICATED]);
    Identity { uid: "u1".into(), extra: extra.into(), ..identity }
}

fn headers(who: &Identity) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-extra-forged", HeaderValue::from_static("x"));
    say(&mut headers, who).expect("headers can hold it");
    headers
}

#[test]
fn what_is_said_is_heard_again() {
    let pki = Authority::in_memory().expect("an authority");
    let proxy = pki.front_proxy_client().expect("a certificate").credential();
    assert_eq!(spoken_for(Some(&peer(&proxy.certificate)), &pki, &headers(&jane())), Some(jane()));
}

#[test]
fn headers_are_believed_from_an_allowed_name_of_the_front_proxys_authority_alone() {
    let pki = Authority::in_memory().expect("an authority");
    let foreign = Authority::in_memory().expect("another");
    for (what, pem) in [
        ("of the cluster's authority", pki.issue_client(FRONT_PROXY_CLIENT, &[]).expect("issued").certificate),
        ("an administrator", pki.issue_client("admin", &["system:masters"]).expect("issued").certificate),
        ("of another name", pki.front_proxy().issue_client("another", &[]).expect("issued").certificate),
        ("of another cluster", foreign.front_proxy_client().expect("issued").credential().certificate),
        (
            "a server's",
            pki.front_proxy().issue_server(FRONT_PROXY_CLIENT, &["a.b".into()]).expect("issued").certificate,
        ),
    ] {
        assert_eq!(spoken_for(Some(&peer(&pem)), &pki, &headers(&jane())), None, "{what}");
    }
    assert_eq!(spoken_for(None, &pki, &headers(&jane())), None);
    let proxy = pki.front_proxy_client().expect("a certificate").credential();
    assert_eq!(spoken_for(Some(&peer(&proxy.certificate)), &pki, &HeaderMap::new()), None, "it names nobody");
}

#[test]
fn whoever_is_proved_is_authenticated_and_nobody_else() {
    let pki = Authority::in_memory().expect("an authority");
    let proxy = peer(&pki.front_proxy_client().expect("a certificate").credential().certificate);
    for (who, groups) in
        [(Identity::new("jane", &["dev"]), vec!["dev", AUTHENTICATED]), (Identity::anonymous(), vec![UNAUTHENTICATED])]
    {
        let found = spoken_for(Some(&proxy), &pki, &headers(&who)).expect("somebody");
        assert_eq!(found.groups, groups);
    }
}

#[test]
fn what_no_header_can_hold_is_not_said() {
    let mut headers = HeaderMap::new();
    assert!(say(&mut headers, &Identity::new("a\nX-Remote-Group: system:masters", &[])).is_err());
}

#[test]
fn what_a_reader_of_headers_would_change_is_not_said() {
    for (user, group) in [("jane", " system:masters"), ("jane", "system:masters\t"), (" admin", "editors")] {
        let who = Identity::new(user, &[group]);
        let refused = say(&mut HeaderMap::new(), &who).expect_err("it would be said of somebody else");
        assert!(refused.contains("blank"), "{refused}");
    }
}

#[test]
fn headers_that_some_servers_take_for_the_same_are_removed_too() {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("x_remote_uid"), HeaderValue::from_static("forged"));
    headers.insert(HeaderName::from_static("x-remote_group"), HeaderValue::from_static("system:masters"));
    headers.insert(HeaderName::from_static("x-remotely"), HeaderValue::from_static("kept"));
    forget(&mut headers);
    assert_eq!(headers.len(), 1, "{headers:?}");
}
