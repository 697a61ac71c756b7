//! What names look like in `resource.k8s.io`: pools, qualified names of attributes and capacities.

use corten_meta::{Violation, field};
use corten_schema::Cursor;

const POOL_BYTES_MAX: usize = 253;
const DOMAIN_BYTES_MAX: usize = 63;
const ID_BYTES_MAX: usize = 32;
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

/// Reports a text that is longer than `max` bytes.
pub(super) fn not_longer(text: Cursor<'_>, max: usize) {
    if text.str().len() > max {
        text.report(Violation::too_long(text.path(), max));
    }
}

/// Reports a list of more than `max` items.
pub(super) fn at_most(list: Cursor<'_>, max: usize) {
    if list.items().len() > max {
        list.report(Violation::too_many(list.path(), list.items().len(), max));
    }
}

/// DNS names between slashes.
pub(super) fn pool(name: Cursor<'_>) {
    if !name.required() {
        return;
    }
    not_longer(name, POOL_BYTES_MAX);
    for part in name.str().split('/') {
        field::dns1123_subdomain(part).iter().for_each(|it| name.invalid_as(part, it));
    }
}

pub(super) fn label(name: Cursor<'_>) {
    name.follows(field::dns1123_label);
}

/// `[domain/]identifier`; `name` is what the place at hand holds, or the key it is at.
pub(super) fn qualified(at: Cursor<'_>, name: &str) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [""] => at.missing("name required"),
        [name] => identifier(at, name),
        [domain, name] => {
            if domain.is_empty() {
                at.missing("the domain must not be empty");
            } else {
                if domain.len() > DOMAIN_BYTES_MAX {
                    at.report(Violation::too_long(at.path(), DOMAIN_BYTES_MAX));
                }
                field::dns1123_subdomain(&domain.to_lowercase()).iter().for_each(|it| at.invalid_as(domain, it));
            }
            if name.is_empty() {
                at.missing("the name must not be empty");
            } else {
                identifier(at, name);
            }
        }
        _ => at.invalid_as(name, "must be a name with at most one '/'"),
    }
}

pub(super) fn fully_qualified(name: Cursor<'_>) {
    if name.str().contains('/') {
        return qualified(name, name.str());
    }
    identifier(name, name.str());
    name.invalid_as(name.str(), "a fully qualified name must be a domain and a name separated by a slash");
}

fn identifier(at: Cursor<'_>, name: &str) {
    if name.len() > ID_BYTES_MAX {
        at.report(Violation::too_long(at.path(), ID_BYTES_MAX));
    }
    let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if name.is_empty() || name.starts_with(|it: char| it.is_ascii_digit()) || !name.chars().all(word) {
        at.invalid_as(name, C_IDENTIFIER);
    }
}
