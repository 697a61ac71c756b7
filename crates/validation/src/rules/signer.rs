//! Names of signers of certificates.

use corten_meta::{Violation, field};
use corten_schema::Cursor;

/// `example.com/signer`: a domain and a path below it.
pub fn signer_name(name: Cursor<'_>) {
    const DOMAIN_BYTES_MAX: usize = 253;
    const BYTES_MAX: usize = 571;
    if !name.required() {
        return;
    }
    let Some((domain, path)) = name.str().split_once('/').filter(|it| !it.1.contains('/')) else {
        return name.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'");
    };
    // Of each part Kubernetes tells the first label that is wrong.
    let check = |part: &str, grammar: fn(&str) -> Vec<String>| {
        let wrong = part.split('.').map(|it| (it, grammar(it))).find(|it| !it.1.is_empty());
        for (label, reason) in wrong.iter().flat_map(|(label, reasons)| reasons.iter().map(move |it| (label, it))) {
            name.invalid_as(part, &format!("validating label {label:?}: {reason}"));
        }
    };
    if domain.len() > DOMAIN_BYTES_MAX {
        name.report(Violation::too_long(name.path(), DOMAIN_BYTES_MAX));
    }
    check(domain, field::dns1123_label);
    if !domain.contains('.') {
        name.invalid_as(domain, "should be a domain with at least two segments separated by dots");
    }
    check(path, field::dns1123_subdomain);
    if name.str().len() > BYTES_MAX {
        name.report(Violation::too_long(name.path(), BYTES_MAX));
    }
}
