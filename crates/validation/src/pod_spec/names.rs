//! The small names inside a Pod: of containers, ports and variables.

use corten_meta::field;
use corten_schema::Cursor;

/// A name that must be there and be a DNS label. False where nothing can be said about duplicates.
pub(super) fn label_name(name: Cursor<'_>) -> bool {
    if name.required() {
        name.follows(field::dns1123_label);
    }
    !name.is_empty()
}

/// The name of a port: what IANA allows of a service name.
pub fn port_name(name: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if name.len() > 15 {
        reasons.push("must be no more than 15 characters".to_owned());
    }
    if name.is_empty() || !name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-') {
        reasons.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|it| it.is_ascii_lowercase()) {
        reasons.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        reasons.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        reasons.push("must not begin or end with a hyphen".to_owned());
    }
    reasons
}

pub(super) fn environment_name(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|it| (b' '..=b'~').contains(&it) && it != b'=') {
        return Vec::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
}

/// A number or a port's name, as probes and hooks name their port.
pub fn port_number_or_name(port: Cursor<'_>) {
    if port.value().is_string() {
        port.follows(port_name);
    } else {
        port.int_between(1, 65535);
    }
}
