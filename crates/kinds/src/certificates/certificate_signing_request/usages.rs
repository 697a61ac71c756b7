//! What a certificate may be used for, in Kubernetes's words.

use std::collections::BTreeSet;

use corten_schema::Cursor;

const KNOWN: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) fn check(usages: Cursor<'_>) {
    if usages.items().is_empty() {
        return usages.missing("");
    }
    let mut seen = BTreeSet::new();
    for usage in usages.each() {
        if !KNOWN.contains(&usage.str()) {
            usage.unsupported(KNOWN);
        }
        if seen.contains(usage.str()) {
            usage.duplicate();
        }
        seen.insert(usage.str());
    }
}
