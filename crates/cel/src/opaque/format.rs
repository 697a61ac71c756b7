//! Named formats: what each says of a text.

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::field;

use super::url;
use crate::timestamp::timestamp;

/// A format, by its name.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    /// The name of the function that gives it.
    pub(crate) function: &'static str,
    /// How long its pattern is for the cost of using it, whether or not it has one.
    pub(crate) pattern_chars: u64,
    pub(crate) check: fn(&str) -> Vec<String>,
}

const fn format(
    function: &'static str,
    name: &'static str,
    pattern_chars: u64,
    check: fn(&str) -> Vec<String>,
) -> Format {
    Format { name, function, pattern_chars, check }
}

pub(crate) static FORMATS: [Format; 13] = [
    format("dns1123Label", "DNS1123Label", 30, field::dns1123_label),
    format("dns1123Subdomain", "DNS1123Subdomain", 60, field::dns1123_subdomain),
    format("dns1035Label", "DNS1035Label", 30, field::dns1035_label),
    format("qualifiedName", "QualifiedName", 60, field::qualified_name),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |it| field::dns1123_label(&masked(it))),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |it| field::dns1123_subdomain(&masked(it))),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |it| field::dns1035_label(&masked(it))),
    format("labelValue", "LabelValue", 40, field::label_value),
    format("uri", "URI", 1000, |it| url::checked(it).err().into_iter().collect()),
    format("uuid", "uuid", 36, |it| unless(is_uuid(it), "does not match the UUID format")),
    format("byte", "byte", 79, |it| unless(!it.is_empty() && STANDARD.decode(it).is_ok(), "invalid base64")),
    format("date", "date", 106, |it| unless(timestamp(&format!("{it}T00:00:00Z")).is_ok(), "invalid date")),
    format("datetime", "datetime", 106, |it| unless(timestamp(it).is_ok(), "invalid datetime")),
];

fn unless(is_valid: bool, complaint: &str) -> Vec<String> {
    if is_valid { Vec::new() } else { vec![complaint.to_owned()] }
}

/// A prefix may end with a dash: what follows it makes it a name.
fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

fn is_uuid(text: &str) -> bool {
    let digits: String = text.chars().filter(|it| *it != '-').collect();
    let dashes_fit = text.len() == 32
        || (text.char_indices().filter(|it| it.1 == '-').all(|it| [8, 13, 18, 23].contains(&it.0)) && text.len() <= 36);
    digits.len() == 32 && dashes_fit && digits.bytes().all(|it| it.is_ascii_hexdigit())
}
