//! Named formats of texts and numbers: those that a CustomResourceDefinition may use (kube-openapi, `pkg/validation/strfmt` and
//! `validate/values.go`). A format that is not known says nothing.

use std::{net::IpAddr, sync::LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::{Time, address::Cidr, duration, field};
use regex::Regex;

use super::Type;

/// What a number must fit into. Each goes with one type, and says nothing of another
/// (`StripUnsupportedFormatsPostProcessorForVersion`; numbers are looked at since v1.36).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumericFormat {
    Int32,
    Int64,
    Float,
    Double,
}

impl NumericFormat {
    pub(super) fn of(of: &[Type], format: &str) -> Option<Self> {
        Some(match (of, format) {
            ([Type::Integer], "int32") => Self::Int32,
            ([Type::Integer], "int64") => Self::Int64,
            ([Type::Number], "float") => Self::Float,
            ([Type::Number], "double") => Self::Double,
            _ => return None,
        })
    }

    /// Is a number of its size (`IsValueValidAgainstRange`)? Of one that is not whole an integer has none.
    pub(super) fn fits(self, value: f64) -> bool {
        // As a float the largest integer of 64 bits is one more than it is.
        const I64_BOUND: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Self::Int32 => value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value),
            Self::Int64 => value.fract() == 0.0 && (-I64_BOUND..=I64_BOUND).contains(&value),
            #[expect(clippy::cast_possible_truncation, reason = "what is too large for it becomes infinite")]
            Self::Float => (value as f32).is_finite(),
            Self::Double => true,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// The type it goes with.
    pub(super) fn of_type(self) -> Type {
        match self {
            Self::Int32 | Self::Int64 => Type::Integer,
            Self::Float | Self::Double => Type::Number,
        }
    }
}

/// Does the text have the format?
pub(super) fn holds(format: &str, text: &str) -> bool {
    // `date-time` and `datetime` are one (strfmt.DefaultNameNormalizer).
    let name: String = format.chars().filter(|it| *it != '-').collect();
    match &*name {
        "bsonobjectid" => text.len() == 24 && is_hexadecimal(text),
        "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
        "cidr" => Cidr::parse(text).is_some(),
        "creditcard" => is_credit_card(text),
        "date" => format!("{text}T00:00:00Z").parse::<Time>().is_ok(),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => matches(&HEX_COLOR, text),
        "hostname" => is_host_name(text),
        "ipv4" => text.parse::<IpAddr>().is_ok_and(|it| it.is_ipv4()),
        "ipv6" => text.parse::<IpAddr>().is_ok_and(|it| it.is_ipv6()),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => field::dns1123_subdomain(text).is_empty(),
        "k8sshortname" => field::dns1123_label(text).is_empty(),
        "mac" => is_mac(text),
        "rgbcolor" => matches(&RGB_COLOR, text),
        "ssn" => matches(&SSN, text),
        "uri" => corten_cel::is_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        _ => true,
    }
}

static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| pattern("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let byte = r"\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*";
    pattern(&format!(r"^rgb\({byte},{byte},{byte}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| pattern("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

fn matches(pattern: &Regex, text: &str) -> bool {
    pattern.is_match(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// RFC 3339, whose zone may be left out (strfmt.IsDateTime).
fn is_date_time(text: &str) -> bool {
    let zoned = |it: String| it.parse::<Time>().is_ok();
    zoned(text.to_ascii_uppercase()) || zoned(format!("{text}Z"))
}

/// As Go writes it, or a number and a unit that people use (strfmt.ParseDuration).
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 7] = ["ns", "us", "ms", "s", "m", "h", "d"];
    const WORDS: [&str; 8] = ["nano", "micro", "milli", "second", "minute", "hour", "day", "week"];
    if duration::nanos(text).is_ok() {
        return true;
    }
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let unit = text[end..].trim().to_ascii_lowercase();
    end > 0 && (UNITS.contains(&&*unit) || unit == "w" || WORDS.iter().any(|it| unit.trim_end_matches('s') == *it))
}

/// An address by itself, or in angle brackets after a name (RFC 5322, 3.4).
fn is_email(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_atom = |it: &str| {
        !it.is_empty()
            && it.chars().all(|it| it.is_alphanumeric() || !it.is_ascii() || "!#$%&'*+/=?^_`{|}~-".contains(it))
    };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    (is_quoted || local.split('.').all(is_atom)) && domain.split('.').all(is_atom)
}

/// RFC 1034, 3.1, with letters of all alphabets.
fn is_host_name(text: &str) -> bool {
    const NAME_BYTES_MAX: usize = 255;
    const LABEL_BYTES_MAX: usize = 63;
    let is_label = |it: &str| {
        (1..=LABEL_BYTES_MAX).contains(&it.len())
            && !it.starts_with('-')
            && !it.ends_with('-')
            && it.chars().all(|it| it.is_alphanumeric() || it == '-')
    };
    text.len() <= NAME_BYTES_MAX && text.strip_suffix('.').unwrap_or(text).split('.').all(is_label)
}

/// Six, eight or twenty bytes, in one of the three ways to write them (Go's net.ParseMAC).
fn is_mac(text: &str) -> bool {
    let separated = |by: char, digits: usize| {
        let groups: Vec<&str> = text.split(by).collect();
        let n_bytes = groups.len() * digits / 2;
        groups.iter().all(|it| it.len() == digits && is_hexadecimal(it)) && [6, 8, 20].contains(&n_bytes)
    };
    separated(':', 2) || separated('-', 2) || separated('.', 4)
}

/// RFC 9562; the dashes may be left out.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let has_dashes = text.len() == 36 && DASHES.iter().all(|it| text.as_bytes()[*it] == b'-');
    let digits: String = if has_dashes { text.chars().filter(|it| *it != '-').collect() } else { text.to_owned() };
    if digits.len() != 32 || !is_hexadecimal(&digits) {
        return false;
    }
    let (of_version, of_variant) = (char::from(digits.as_bytes()[12]), digits.as_bytes()[16].to_ascii_lowercase());
    match version {
        None => true,
        Some('3') => of_version == '3',
        Some(version) => of_version == version && b"89ab".contains(&of_variant),
    }
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|it| !matches!(it, '-' | ' ')).collect()
}

/// ISO 2108, ten digits of which the last may be an X.
fn is_isbn10(text: &str) -> bool {
    let digits = digits_of(text);
    let value = |(at, it): (usize, char)| match it {
        'X' | 'x' if at == 9 => Some(10),
        it => it.to_digit(10),
    };
    let values: Option<Vec<u32>> = digits.chars().enumerate().map(value).collect();
    values.is_some_and(|it| it.len() == 10 && it.iter().zip(1..).map(|(it, weight)| it * weight).sum::<u32>() % 11 == 0)
}

/// ISO 2108, thirteen digits.
fn is_isbn13(text: &str) -> bool {
    let values: Option<Vec<u32>> = digits_of(text).chars().map(|it| it.to_digit(10)).collect();
    values.is_some_and(|it| {
        it.len() == 13
            && it.iter().zip([1, 3].into_iter().cycle()).map(|(it, weight)| it * weight).sum::<u32>() % 10 == 0
    })
}

/// Thirteen to sixteen digits with a right check digit (ISO/IEC 7812-1).
fn is_credit_card(text: &str) -> bool {
    let values: Option<Vec<u32>> = digits_of(text).chars().map(|it| it.to_digit(10)).collect();
    let Some(values) = values.filter(|it| (13..=16).contains(&it.len())) else { return false };
    let doubled = |(at, it): (usize, &u32)| match at % 2 {
        0 => *it,
        _ if *it > 4 => it * 2 - 9,
        _ => it * 2,
    };
    values.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}
