use std::time::SystemTime;

use rcgen::KeyPair;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::*;

/// A new key's request for this subject and these names, as PEM.
fn request(subject: &[(rcgen::DnType, &str)], names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).expect("names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    let key = KeyPair::generate().expect("a key");
    params.serialize_request(&key).expect("a request").pem().expect("PEM")
}

fn sign(
    authority: &Authority,
    request: &str,
    signer: &str,
    usages: &[&str],
    seconds: Option<i64>,
) -> Result<String, String> {
    let usages: Vec<String> = usages.iter().map(|it| (*it).to_owned()).collect();
    let asked = SigningRequest { request, signer, usages: &usages, expiration_seconds: seconds };
    authority.sign_request(&asked, SystemTime::now())
}

#[test]
fn a_signed_certificate_proves_what_was_asked_for() {
    use rcgen::DnType;
    let authority = Authority::in_memory().expect("an authority");
    // The second organization goes by its number: rcgen writes each kind once.
    let organizations = DnType::CustomDnType(vec![2, 5, 4, 10]);
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let subject =
        [(DnType::OrganizationName, "dev"), (organizations, "ops"), (uid, "u-1"), (DnType::CommonName, "jane")];
    let request = request(&subject, &[]);
    let signer = "kubernetes.io/kube-apiserver-client";
    let pem =
        sign(&authority, &request, signer, &["client auth", "digital signature"], Some(900)).expect("a certificate");
    let issued = Credential { certificate: pem, key: String::new() };
    let chain = vec![certificate::certificate_of(&issued).expect("a certificate")];
    let proven = authority.verify_client(&chain).expect("it is ours");
    let groups = ["dev".to_owned(), "ops".to_owned()];
    assert_eq!((&*proven.user, &*proven.uid, &*proven.groups), ("jane", "u-1", &groups[..]));
    let (start, end) = certificate::lifetime_of(&issued).expect("it has a life");
    assert_eq!(end.duration_since(start).expect("forwards"), Duration::from_secs(900 + 300));

    // Another name under the same signature.
    let der = x509_parser::pem::parse_x509_pem(request.as_bytes()).expect("PEM").1.contents;
    let at = der.windows(4).position(|it| it == b"jane").expect("the name");
    let forged = [&der[..at], b"root", &der[at + 4..]].concat();
    let forged = certificate::pem("CERTIFICATE REQUEST", &CertificateDer::from(forged));
    let refused = sign(&authority, &forged, signer, &["client auth"], None);
    assert_eq!(refused, Err("unable to verify certificate request signature".to_owned()));
}

#[test]
fn files_of_somebody_elses_sign_as_the_clusters_own() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let authority = Authority::load_or_create(dir.path()).expect("an authority");
    let [certificate, key] = ["ca.crt", "ca.key"].map(|it| dir.path().join(it));
    let other = dir.path().join("other.key");
    std::fs::write(&other, KeyPair::generate().expect("a key").serialize_pem()).expect("written");
    let files = SigningFiles::new(certificate.clone(), key.clone()).expect("they belong together");
    let request = request(&[(rcgen::DnType::CommonName, "jane")], &[]);
    let usages = ["client auth".to_owned()];
    let signer = "kubernetes.io/kube-apiserver-client";
    let asked = SigningRequest { request: &request, signer, usages: &usages, expiration_seconds: None };
    let pem = files.sign_request(&asked, SystemTime::now()).expect("a certificate");
    let issued = Credential { certificate: pem, key: String::new() };
    let chain = vec![certificate::certificate_of(&issued).expect("a certificate")];
    assert_eq!(authority.verify_client(&chain).expect("it is ours").user, "jane");

    // One of them is replaced, and the other will be.
    std::fs::copy(&other, &key).expect("copied");
    assert!(files.sign_request(&asked, SystemTime::now()).is_ok());

    let refused = |key| SigningFiles::new(certificate.clone(), key).err().map(|it| it.to_string()).unwrap_or_default();
    assert!(refused(other).contains("it is not the key of"));
    assert!(refused(dir.path().join("none")).contains("it is not there"));
}

#[test]
fn signers_have_their_rules() {
    use rcgen::DnType;
    let authority = Authority::in_memory().expect("an authority");
    let node = [(DnType::OrganizationName, "system:nodes"), (DnType::CommonName, "system:node:n1")];
    let user = [(DnType::CommonName, "jane")];
    let serving = ["digital signature", "key encipherment", "server auth"];
    let client = ["digital signature", "client auth"];
    for (signer, subject, names, usages, expected) in [
        ("kube-apiserver-client", &user[..], &[][..], &["client auth"][..], None),
        ("kube-apiserver-client", &user, &[], &serving, Some("invalid usage for client certificate: server auth")),
        (
            "kube-apiserver-client",
            &user,
            &[],
            &["digital signature"],
            Some("missing required usage for client certificate: client auth"),
        ),
        ("kube-apiserver-client-kubelet", &node, &[], &client, None),
        ("kube-apiserver-client-kubelet", &user, &[], &client, Some("subject organization is not system:nodes")),
        ("kube-apiserver-client-kubelet", &node, &["n1"], &client, Some("DNS subjectAltNames are not allowed")),
        (
            "kube-apiserver-client-kubelet",
            &node,
            &[],
            &serving,
            Some("usages did not match [client auth digital signature key encipherment]"),
        ),
        ("kubelet-serving", &node, &["n1", "10.0.0.1"], &serving, None),
        ("kubelet-serving", &node, &[], &serving, Some("DNS or IP subjectAltName is required")),
        ("legacy-unknown", &user, &["a.example"], &["any", "cert sign"], None),
        ("other", &user, &[], &client, Some("unrecognized signerName: \"kubernetes.io/other\"")),
    ] {
        let found = sign(&authority, &request(subject, names), &format!("kubernetes.io/{signer}"), usages, None);
        assert_eq!(found.as_ref().err().map(String::as_str), expected, "{signer} {usages:?}");
        let Ok(pem) = found else { continue };
        let der =
            certificate::certificate_of(&Credential { certificate: pem, key: String::new() }).expect("a certificate");
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).expect("it is well formed");
        assert!(!parsed.is_ca());
        let alternatives =
            parsed.subject_alternative_name().expect("well formed").map_or(0, |it| it.value.general_names.len());
        assert_eq!(alternatives, names.len());
    }
}

/// Alternative names go into a certificate as they were sent, so none may be there that the rules did not see.
#[test]
fn names_that_cannot_be_read_or_are_there_twice_are_not_signed() {
    use rcgen::DnType;
    let authority = Authority::in_memory().expect("an authority");
    let names =
        |content: &[u8]| rcgen::CustomExtension::from_oid_content(&[2, 5, 29, 17], crate::der::tlv(0x30, content));
    let cluster = crate::der::tlv(0x82, b"kubernetes.default.svc");
    for (first, second, expected) in [
        (&["n1"][..], Some(cluster.clone()), "certificate request contains duplicate requested extensions"),
        (
            &[],
            Some([crate::der::tlv(0x82, b"n1"), crate::der::tlv(0x88, &[42, 3])].concat()),
            "only DNS, Email, IP and",
        ),
        (&[], Some(crate::der::tlv(0x87, &[10, 0, 0])), "x509: cannot parse IP address of length 3"),
        (&[], Some(crate::der::tlv(0x82, &[0xff, 0xfe])), "only DNS, Email, IP and"),
    ] {
        for (signer, organization, usages) in [
            ("kubelet-serving", "system:nodes", ["digital signature", "server auth"]),
            ("kube-apiserver-client-kubelet", "system:nodes", ["digital signature", "client auth"]),
            ("kube-apiserver-client", "dev", ["digital signature", "client auth"]),
        ] {
            let dns: Vec<String> = first.iter().map(|it| (*it).to_owned()).collect();
            let mut params = rcgen::CertificateParams::new(dns).expect("names");
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::OrganizationName, organization);
            params.distinguished_name.push(DnType::CommonName, "system:node:n1");
            params.custom_extensions.extend(second.iter().map(|it| names(it)));
            let key = KeyPair::generate().expect("a key");
            let request = params.serialize_request(&key).expect("a request").pem().expect("PEM");
            let refused = sign(&authority, &request, &format!("kubernetes.io/{signer}"), &usages, None);
            let refused = refused.expect_err("it is not signed");
            assert!(refused.contains(expected), "{signer}: {refused}");
        }
    }
}

#[test]
fn a_nodes_organization_is_one_that_everybody_can_read() {
    use rcgen::{DnType, DnValue};
    let authority = Authority::in_memory().expect("an authority");
    let mut params = rcgen::CertificateParams::new(vec!["n1".to_owned()]).expect("names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    let masters = rcgen::string::BmpString::try_from("system:masters").expect("text");
    params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), DnValue::BmpString(masters));
    params.distinguished_name.push(DnType::CommonName, "system:node:n1");
    let request = params.serialize_request(&KeyPair::generate().expect("a key")).expect("a request");
    let usages = ["digital signature", "server auth"];
    let refused = sign(&authority, &request.pem().expect("PEM"), "kubernetes.io/kubelet-serving", &usages, None);
    assert_eq!(refused, Err("subject organization is not system:nodes".to_owned()));
}

#[tokio::test]
async fn a_signed_serving_certificate_serves() {
    use rcgen::DnType;
    let authority = Authority::in_memory().expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(vec!["n1".to_owned()]).expect("a name");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, "system:node:n1");
    let request = params.serialize_request(&key).expect("a request").pem().expect("PEM");
    let usages = ["digital signature", "server auth"];
    let certificate =
        sign(&authority, &request, "kubernetes.io/kubelet-serving", &usages, None).expect("a certificate");
    let own = Credential { certificate, key: key.serialize_pem() }.fixed().expect("they belong together");
    let acceptor = TlsAcceptor::from(authority.server_config(&own).expect("a configuration"));
    let client = authority.kubelet_client().expect("a credential");
    let connector = TlsConnector::from(authority.client_config(&client).expect("a configuration"));
    let (near, far) = tokio::io::duplex(16 * 1024);
    let name = ServerName::try_from("n1").expect("a name");
    let (client, server) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    client.expect("the name is in the certificate");
    server.expect("the server accepts");
}
