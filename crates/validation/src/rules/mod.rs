//! Rules that kinds of several groups share.

pub mod address;
pub mod amount;
pub mod int_or_percent;
pub mod signer;

use std::collections::BTreeSet;

use corten_meta::field;
use corten_schema::{Cursor, Ordered};
use serde_json::Value;

use crate::fill::means_the_same;

/// What is set at creation and never again.
pub fn immutable(new: Cursor<'_>, old: &Value) {
    if !means_the_same(new.value(), old) {
        new.invalid("field is immutable");
    }
}

/// As [`immutable`], for a text that Go's type has no other way to leave out than to be empty.
pub fn immutable_text(new: Cursor<'_>, old: &Value) {
    if new.str() != old.as_str().unwrap_or_default() {
        new.invalid_as(new.str(), "field is immutable");
    }
}

/// A whole status or spec that may only count upwards: a hash collision is never forgotten.
pub fn never_less(new: Cursor<'_>, old: &Value) {
    if old.as_i64().is_some_and(|it| new.int() < it) {
        new.invalid("cannot be decremented");
    }
}

/// Counts in a status; none is negative.
pub fn counts(status: Cursor<'_>, fields: &[&'static str]) {
    fields.iter().for_each(|it| status.at(it).non_negative_int());
}

/// None of these is more than the number in `most`.
pub fn at_most(status: Cursor<'_>, fields: &[&'static str], most: &'static str, name: &str) {
    for count in fields.iter().map(|it| status.at(it)) {
        if count.int() > status.at(most).int() {
            count.invalid(&format!("cannot be greater than {name}"));
        }
    }
}

/// A text that must be there and one of these.
pub fn required_one_of(value: Cursor<'_>, known: &[&str]) -> bool {
    value.required() && value.one_of(known)
}

/// Absent, or one of these.
pub fn optional_one_of(value: Cursor<'_>, known: &[&str]) {
    if value.exists() {
        value.one_of(known);
    }
}

/// Reports the items whose `key` another item before them has.
pub fn unique<'a>(list: Cursor<'a>, key: impl Fn(Cursor<'a>) -> Cursor<'a>) {
    let mut seen = BTreeSet::new();
    for key in list.each().map(key) {
        if !seen.insert(Ordered(key.value())) {
            key.duplicate();
        }
    }
}

/// As [`unique`], where it is the item that is reported, with its key.
pub fn unique_items<'a>(list: Cursor<'a>, key: impl Fn(Cursor<'a>) -> Cursor<'a>) {
    let mut seen = BTreeSet::new();
    for item in list.each() {
        if !seen.insert(Ordered(key(item).value())) {
            item.instead(key(item)).duplicate();
        }
    }
}

/// `metav1.Condition`s.
pub fn conditions(conditions: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for condition in conditions.each() {
        let kind = condition.at("type");
        if seen.contains(kind.str()) {
            condition.at("type").duplicate();
        }
        seen.insert(kind.str());
        if kind.is_empty() {
            kind.missing("must be set");
        } else {
            kind.follows(field::qualified_name);
        }
        condition.at("status").one_of(&["False", "True", "Unknown"]);
        condition.at("observedGeneration").non_negative_int();
        let at = condition.at("lastTransitionTime");
        if at.is_empty() {
            at.missing("must be set");
        }
        let reason = condition.at("reason");
        if reason.is_empty() {
            reason.missing("must be set");
        } else {
            reason.follows(condition_reason);
        }
    }
}

fn condition_reason(text: &str) -> Vec<String> {
    const GRAMMAR: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let fits = text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.ends_with(is_word)
        && text.chars().all(|it| is_word(it) || matches!(it, ',' | ':'));
    if fits { Vec::new() } else { vec![GRAMMAR.to_owned()] }
}

/// The name of a CSI driver: a DNS name in any case, of 63 characters at most.
pub fn driver_name(name: Cursor<'_>) {
    if !name.required() {
        return;
    }
    if name.str().len() > 63 {
        name.report(corten_meta::Violation::too_long(name.path(), 63));
    }
    for reason in field::dns1123_subdomain(&name.str().to_lowercase()) {
        name.invalid(&reason);
    }
}

/// What may stand as one part of a path: kinds and names that a reference gives.
pub fn path_segment(name: Cursor<'_>) {
    if name.required() {
        name.follows(field::path_segment);
    }
}

/// `example.com/controller`: a domain and a path below it.
pub fn domain_prefixed_path(value: Cursor<'_>) {
    const GRAMMAR: &str = "must be a domain-prefixed path (such as \"acme.io/foo\")";
    if value.is_empty() {
        return value.missing("");
    }
    let Some((domain, path)) = value.str().split_once('/').filter(|it| !it.0.is_empty() && !it.1.is_empty()) else {
        return value.invalid(GRAMMAR);
    };
    for reason in field::dns1123_subdomain(domain) {
        value.invalid_as(domain, &reason);
    }
    let allowed = |it: u8| it.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&it);
    if !path.bytes().all(allowed) {
        value.invalid_as(path, "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
    }
}

/// What is wrong with a text as a key of a ConfigMap or Secret: each becomes the name of a file.
pub fn data_key_reasons(key: &str) -> Vec<String> {
    const GRAMMAR: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let mut reasons = Vec::new();
    if key.len() > 253 {
        reasons.push("must be no more than 253 characters".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it)) {
        reasons.push(GRAMMAR.to_owned());
    }
    match key {
        "." | ".." => reasons.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => reasons.push("must not start with '..'".to_owned()),
        _ => {}
    }
    reasons
}
