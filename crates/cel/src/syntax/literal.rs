//! The values of literals: numbers, and texts with their escapes.

use super::ast::Literal;

/// # Errors
/// As cel-go says it.
pub(super) fn int(text: &str) -> Result<Literal, &'static str> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |it| ("-", it));
    let number = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16),
        None => text.parse(),
    };
    number.map(Literal::Int).map_err(|_| "invalid int literal")
}

pub(super) fn uint(text: &str) -> Result<Literal, &'static str> {
    let digits = text.trim_end_matches(['u', 'U']);
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    number.map(Literal::Uint).map_err(|_| "invalid uint literal")
}

pub(super) fn double(text: &str) -> Result<Literal, &'static str> {
    let number: f64 = text.parse().map_err(|_| "invalid double literal")?;
    // Go refuses what is beyond the largest number.
    if number.is_finite() { Ok(Literal::Double(number)) } else { Err("invalid double literal") }
}

pub(super) fn string(text: &str) -> Result<Literal, String> {
    let (inner, is_raw) = inside(text);
    if is_raw {
        return Ok(Literal::String(inner.into()));
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        if char == '\\' {
            let number = escaped(&mut chars);
            out.push(char::from_u32(number).ok_or("invalid unicode code point")?);
        } else {
            out.push(char);
        }
    }
    Ok(Literal::String(out.into()))
}

pub(super) fn bytes(text: &str) -> Result<Literal, String> {
    let (inner, is_raw) = inside(&text[1..]);
    if is_raw {
        return Ok(Literal::Bytes(inner.as_bytes().into()));
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        if matches!(chars.clone().next(), Some('u' | 'U')) {
            return Err("unable to unescape bytes".to_owned());
        }
        let number = escaped(&mut chars);
        out.push(u8::try_from(number).map_err(|_| "unable to unescape bytes")?);
    }
    Ok(Literal::Bytes(out.into()))
}

/// What is between the quotes; is it raw?
fn inside(text: &str) -> (&str, bool) {
    let (text, is_raw) = text.strip_prefix(['r', 'R']).map_or((text, false), |it| (it, true));
    for quote in ["\"\"\"", "'''"] {
        if text.len() >= 6 && text.starts_with(quote) && text.ends_with(quote) {
            return (&text[3..text.len() - 3], is_raw);
        }
    }
    (&text[1..text.len() - 1], is_raw)
}

/// The lexer has seen that the escape is whole.
fn escaped(chars: &mut std::str::Chars<'_>) -> u32 {
    let letter = chars.next().unwrap_or('\\');
    let mut number = |first: u32, n: usize, radix: u32| {
        (0..n)
            .fold(first, |sum, _| sum.wrapping_mul(radix) + chars.next().and_then(|it| it.to_digit(radix)).unwrap_or(0))
    };
    match letter {
        'a' => 7,
        'b' => 8,
        't' => 9,
        'n' => 10,
        'v' => 11,
        'f' => 12,
        'r' => 13,
        'x' | 'X' => number(0, 2, 16),
        'u' => number(0, 4, 16),
        'U' => number(0, 8, 16),
        '0'..='3' => number(u32::from(letter) - u32::from('0'), 2, 8),
        itself => u32::from(itself),
    }
}
