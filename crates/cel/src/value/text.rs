//! A value as text, as Go writes it.

use super::Value;
use crate::timestamp::{duration_text, timestamp_text};

/// A value as text; `None` for what has no such form.
pub(crate) fn text_of(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::String(text) | Value::Type(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => it.to_string(),
        Value::Double(it) => double_text(*it),
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Timestamp(at) => timestamp_text(*at),
        _ => return None,
    })
}

/// As Go's shortest form: with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
