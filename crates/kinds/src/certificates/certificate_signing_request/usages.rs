//! What a certificate may be used for, in Kubernetes's words.

use std::collections::BTreeSet;

use corten_schema::Cursor;

const KNOWN: &[&str] = &[
    "signing",
    "digital signature",
    "content commitment",
    "key encipherment",
    "key agreement",
    "data encipherment",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
    "any",
    "server auth",
    "client auth",
    "code signing",
    "email protection",
    "s/mime",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "timestamping",
    "ocsp signing",
    "microsoft sgc",
    "netscape sgc",
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
