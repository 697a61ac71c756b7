//! What each of the cluster's signers signs, and what a certificate's usages are in X.509's words.

use x509_parser::certification_request::X509CertificationRequest;

use super::sign::{Names, SigningRequest};
use crate::der;

const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";

/// # Errors
/// Why the signer does not sign this.
pub(super) fn check(
    asked: &SigningRequest<'_>,
    request: &X509CertificationRequest<'_>,
    names: &Names<'_>,
) -> Result<(), String> {
    match asked.signer {
        "kubernetes.io/kube-apiserver-client" => client_usages(asked.usages),
        "kubernetes.io/kube-apiserver-client-kubelet" => {
            node(request)?;
            let forbidden = [(names.dns, "DNS"), (names.emails, "Email"), (names.addresses, "IP"), (names.uris, "URI")];
            none_of(&forbidden)?;
            exactly(asked.usages, "client auth")
        }
        "kubernetes.io/kubelet-serving" => {
            node(request)?;
            if names.dns + names.addresses == 0 {
                return Err("DNS or IP subjectAltName is required".into());
            }
            none_of(&[(names.emails, "Email"), (names.uris, "URI")])?;
            exactly(asked.usages, "server auth")
        }
        // Of `legacy-unknown` nothing is checked, for it means nothing.
        "kubernetes.io/legacy-unknown" => Ok(()),
        other => Err(format!("unrecognized signerName: {other:?}")),
    }
}

fn client_usages(usages: &[String]) -> Result<(), String> {
    if let Some(other) =
        usages.iter().find(|it| !["digital signature", "key encipherment", "client auth"].contains(&&***it))
    {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if usages.iter().any(|it| it == "client auth") {
        return Ok(());
    }
    Err("missing required usage for client certificate: client auth".into())
}

/// The subject of a node: one organization, and its name.
fn node(request: &X509CertificationRequest<'_>) -> Result<(), String> {
    let subject = &request.certification_request_info.subject;
    // One that not everybody can read is none that may be there.
    let organizations: Result<Vec<&str>, _> = subject.iter_organization().map(|it| it.as_str()).collect();
    if !organizations.is_ok_and(|it| it == [NODES]) {
        return Err("subject organization is not system:nodes".into());
    }
    let name = subject.iter_common_name().next();
    let name = name.and_then(|it| it.as_str().ok()).unwrap_or_default();
    if !name.starts_with(NODE) {
        return Err("subject common name does not begin with system:node:".into());
    }
    Ok(())
}

fn none_of(names: &[(usize, &str)]) -> Result<(), String> {
    match names.iter().find(|it| it.0 > 0) {
        Some((_, kind)) => Err(format!("{kind} subjectAltNames are not allowed")),
        None => Ok(()),
    }
}

/// The usages of a node's certificate: RSA keys encipher, others do not.
fn exactly(usages: &[String], purpose: &str) -> Result<(), String> {
    let mut found: Vec<&str> = usages.iter().map(String::as_str).collect();
    found.sort_unstable();
    let mut wanted = vec!["digital signature", "key encipherment", purpose];
    wanted.sort_unstable();
    let without: Vec<&str> = wanted.iter().copied().filter(|it| *it != "key encipherment").collect();
    if found == wanted || found == without {
        return Ok(());
    }
    Err(format!("usages did not match [{}]", wanted.join(" ")))
}

/// Kubernetes's name, and the bit of `keyUsage`.
const KEY_USAGES: &[(&str, u8)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Kubernetes's name, and the encoded identifier of `extKeyUsage`.
const EXTENDED: &[(&str, &[u8])] = &[
    ("any", &[0x55, 0x1d, 0x25, 0x00]),
    ("server auth", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]),
    ("client auth", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]),
    ("code signing", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03]),
    ("email protection", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04]),
    ("s/mime", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04]),
    ("ipsec end system", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x05]),
    ("ipsec tunnel", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x06]),
    ("ipsec user", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x07]),
    ("timestamping", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08]),
    ("ocsp signing", &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09]),
    ("microsoft sgc", &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x0a, 0x03, 0x03]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x04, 0x01]),
];

/// Both usage extensions, where there is something to say.
///
/// # Errors
/// A usage that is none.
pub(super) fn extensions(usages: &[String]) -> Result<Vec<Vec<u8>>, String> {
    let (mut bits, mut purposes) = (Vec::new(), Vec::new());
    for usage in usages {
        if let Some((_, bit)) = KEY_USAGES.iter().find(|it| it.0 == usage) {
            bits.push(*bit);
        } else if let Some((_, oid)) = EXTENDED.iter().find(|it| it.0 == usage) {
            let encoded = der::oid(oid);
            if !purposes.contains(&encoded) {
                purposes.push(encoded);
            }
        } else {
            return Err(format!("unrecognized usage values: [{usage:?}]"));
        }
    }
    let mut found = Vec::new();
    if !bits.is_empty() {
        found.push(der::extension(&[0x55, 0x1d, 0x0f], true, &der::bits(&bits)));
    }
    if !purposes.is_empty() {
        let purposes: Vec<&[u8]> = purposes.iter().map(Vec::as_slice).collect();
        found.push(der::extension(&[0x55, 0x1d, 0x25], false, &der::sequence(&purposes)));
    }
    Ok(found)
}
