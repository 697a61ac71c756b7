//! `format` and `strings.quote`: texts with places for values, as cel-go's extension writes them in its second version.

use std::fmt::Write as _;

use super::{Evaluated, MADE_BYTES_MAX, Row};
use crate::{
    error::Error,
    fuel,
    value::{List, Value, double_text, text_of},
};

pub(super) const ROWS: &[Row] = &[
    ("string_format", ".format(string, list(dyn)) -> string", format),
    ("strings_quote", "strings.quote(string) -> string", quote),
];

/// More digits after the point are not written.
const PRECISION_MAX: usize = 100;
const PRECISION: usize = 6;
const TOO_LONG: &str = "string is too long";

fn format<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::List(values)) = (&args[0], &args[1]) else {
        return Err(Error::no_such_overload());
    };
    formatted(text, values).map(Value::from).map_err(Error::other)
}

fn formatted(text: &str, values: &List<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let (mut chars, mut next) = (text.chars(), 0);
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let (mut letter, mut precision) = (chars.next(), None);
        if letter == Some('%') {
            out.push('%');
            continue;
        }
        if letter == Some('.') {
            let mut digits = String::new();
            letter = chars.next();
            while let Some(digit) = letter.filter(char::is_ascii_digit) {
                digits.push(digit);
                letter = chars.next();
            }
            let wanted: usize = digits.parse().map_err(|_| "error while parsing precision".to_owned())?;
            if wanted > PRECISION_MAX {
                return Err(format!("precision {wanted} exceeds the maximum of {PRECISION_MAX}"));
            }
            precision = Some(wanted);
        }
        let letter = letter.ok_or("unexpected end of string")?;
        let value = values.get(next).ok_or_else(|| format!("index {next} out of range"))?;
        next += 1;
        clause(&mut out, letter, precision.unwrap_or(PRECISION), &value)?;
        if out.len() > MADE_BYTES_MAX {
            return Err(TOO_LONG.to_owned());
        }
    }
    Ok(out)
}

fn clause(out: &mut String, letter: char, precision: usize, value: &Value<'_>) -> Result<(), String> {
    let wrong = |what: &str| format!("error during formatting: {what}, was given {}", value.type_name());
    match letter {
        's' => out.push_str(&plain(value).map_err(|it| format!("error during formatting: {it}"))?),
        'd' => match value {
            Value::Int(_) | Value::Uint(_) => out.push_str(&text_of(value).unwrap_or_default()),
            Value::Double(it) if !it.is_finite() => out.push_str(&special(*it)),
            _ => return Err(wrong("decimal clause can only be used on integers")),
        },
        'f' | 'e' => {
            let number = match value {
                Value::Double(it) => *it,
                #[expect(clippy::cast_precision_loss, reason = "a float was asked for")]
                Value::Int(it) => *it as f64,
                #[expect(clippy::cast_precision_loss, reason = "a float was asked for")]
                Value::Uint(it) => *it as f64,
                _ if letter == 'f' => return Err(wrong("fixed-point clause can only be used on doubles")),
                _ => return Err(wrong("scientific clause can only be used on doubles")),
            };
            let text = match letter {
                _ if !number.is_finite() => special(number),
                'f' => format!("{number:.precision$}"),
                _ => scientific(number, precision),
            };
            out.push_str(&text);
        }
        'b' | 'o' | 'x' | 'X' => based(out, letter, value).ok_or_else(|| match letter {
            'b' => wrong("only integers and bools can be formatted as binary"),
            'o' => wrong("octal clause can only be used on integers"),
            _ => wrong("only integers, byte buffers, and strings can be formatted as hex"),
        })?,
        other => return Err(format!("could not parse formatting clause: unrecognized formatting clause \"{other}\"")),
    }
    Ok(())
}

fn special(number: f64) -> String {
    if number.is_nan() { "NaN".to_owned() } else { if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned() }
}

/// `2.718280e+00`.
fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn based(out: &mut String, letter: char, value: &Value<'_>) -> Option<()> {
    let (sign, number) = match value {
        Value::Int(it) => (if *it < 0 { "-" } else { "" }, it.unsigned_abs()),
        Value::Uint(it) => ("", *it),
        Value::Bool(it) if letter == 'b' => ("", u64::from(*it)),
        Value::String(text) if matches!(letter, 'x' | 'X') => return hex(out, letter, text.as_bytes()),
        Value::Bytes(bytes) if matches!(letter, 'x' | 'X') => return hex(out, letter, bytes),
        _ => return None,
    };
    out.push_str(sign);
    match letter {
        'b' => write!(out, "{number:b}"),
        'o' => write!(out, "{number:o}"),
        'x' => write!(out, "{number:x}"),
        _ => write!(out, "{number:X}"),
    }
    .ok()
}

fn hex(out: &mut String, letter: char, bytes: &[u8]) -> Option<()> {
    for byte in bytes {
        if letter == 'x' { write!(out, "{byte:02x}") } else { write!(out, "{byte:02X}") }.ok()?;
    }
    Some(())
}

/// What `%s` writes. What is shared is written each time it is met, so its bytes take fuel.
fn plain(value: &Value<'_>) -> Result<String, String> {
    if !fuel::spend(10) {
        return Err(TOO_LONG.to_owned());
    }
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::Double(it) if !it.is_finite() => special(*it),
        Value::Double(it) => double_text(*it),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|it| plain(&it)).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let value = map.get(&key).unwrap_or(Value::Null);
                entries.push(format!("{key}: {}", plain(&value)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => text_of(other).ok_or_else(|| {
            format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
                 timestamps, was given {}",
                other.type_name()
            )
        })?,
    };
    if fuel::spend_made(text.len()) { Ok(text) } else { Err(TOO_LONG.to_owned()) }
}

fn quote<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::String(text) = &args[0] else { return Err(Error::no_such_overload()) };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(quoted.into())
}
