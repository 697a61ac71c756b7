//! Devices that a Pod claims, and which of its containers use them.

use std::collections::BTreeSet;

use corten_meta::{Rule, Violation, field};
use corten_schema::Cursor;

const NAMES_SHOWN_MAX: usize = 1_000;

/// Checks the Pod's claims and gives their names.
pub(super) fn validate<'a>(claims: Cursor<'a>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for claim in claims.each() {
        let name = claim.at("name");
        if name.required() {
            name.follows(field::dns1123_label);
            if !seen.insert(name.str()) {
                name.duplicate();
            }
        }
        let (claimed, template) = (claim.at("resourceClaimName"), claim.at("resourceClaimTemplateName"));
        match (claimed.exists(), template.exists()) {
            (true, true) => {
                claim.invalid("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
            }
            (false, false) => claim.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            _ => {}
        }
        for name in [claimed, template].into_iter().filter(|it| it.exists()) {
            name.follows(field::dns1123_subdomain);
        }
    }
    seen
}

/// The claims one container uses.
pub(super) fn of_container(claims: Cursor<'_>, known: &BTreeSet<&str>) {
    let mut seen = BTreeSet::new();
    for claim in claims.each() {
        let name = claim.at("name").str();
        if name.is_empty() {
            claim.missing("");
            continue;
        }
        if !seen.insert((name, claim.at("request").str())) {
            claim.instead(claim.at("name")).duplicate();
        }
        if !known.contains(name) {
            // So many are shown as a message has room for.
            let names = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.iter().copied().take(NAMES_SHOWN_MAX).collect::<Vec<_>>().join(", "))
            };
            let message = format!("Not found: {name:?}: must be one of the names in pod.spec.resourceClaims{names}");
            claim.report(Violation { path: claim.path(), rule: Rule::NotFound, message });
        }
    }
}
