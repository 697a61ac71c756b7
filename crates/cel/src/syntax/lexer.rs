//! Words of an expression. What is no word is a complaint, and the next one is looked for.

use crate::error::Issue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    End,
    /// A sign or a keyword, as it is written.
    Sign(&'static str),
    Ident,
    /// A name in back-ticks, which Kubernetes does not enable.
    Escaped,
    Int,
    Uint,
    Float,
    Text,
    Bytes,
}

/// A word and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) token: Token,
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

/// Longer ones first.
const SIGNS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "in", "true", "false",
];
const NULL: &str = "null";

pub(crate) fn words(source: &str) -> (Vec<Word<'_>>, Vec<Issue>) {
    let mut words = Vec::with_capacity(source.len() / 3 + 1);
    let mut issues = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let space = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']).len();
        if space > 0 {
            at += space;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some((token, length)) = word(rest) {
            words.push(Word { token, text: &rest[..length], at });
            at += length;
        } else {
            let length = unread(rest);
            let text = rest[..length].replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
            issues.push(Issue { at: Some(at), message: format!("Syntax error: token recognition error at: '{text}'") });
            at += length;
        }
    }
    words.push(Word { token: Token::End, text: "<EOF>", at: source.len() });
    (words, issues)
}

fn word(rest: &str) -> Option<(Token, usize)> {
    let first = rest.as_bytes()[0];
    if let Some(found) = quoted(rest) {
        return Some(found);
    }
    if first == b'_' || first.is_ascii_alphabetic() {
        let length = rest.bytes().take_while(|it| *it == b'_' || it.is_ascii_alphanumeric()).count();
        let text = &rest[..length];
        let keyword = SIGNS[24..].iter().copied().chain([NULL]).find(|it| *it == text);
        return Some((keyword.map_or(Token::Ident, Token::Sign), length));
    }
    if first.is_ascii_digit() || (first == b'.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit)) {
        return Some(number(rest));
    }
    if first == b'`' {
        let length = rest[1..].find('`')? + 2;
        let is_name = rest[1..length - 1].bytes().all(|it| it.is_ascii_alphanumeric() || b"_.-/ ".contains(&it));
        return (is_name && length > 2).then_some((Token::Escaped, length));
    }
    let sign = SIGNS[..24].iter().find(|it| rest.starts_with(**it))?;
    Some((Token::Sign(sign), sign.len()))
}

fn number(rest: &str) -> (Token, usize) {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|it| it.is_ascii_digit()).count();
    let suffixed = |length: usize| match bytes.get(length) {
        Some(b'u' | b'U') => (Token::Uint, length + 1),
        _ => (Token::Int, length),
    };
    if rest.starts_with("0x") {
        let hex = bytes[2..].iter().take_while(|it| it.is_ascii_hexdigit()).count();
        if hex > 0 {
            return suffixed(2 + hex);
        }
    }
    let whole = digits(0);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(whole + 1) } else { 0 };
    let mut length = if fraction > 0 { whole + 1 + fraction } else { whole };
    let mut is_float = fraction > 0;
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let power = digits(length + 1 + sign);
        if power > 0 {
            length += 1 + sign + power;
            is_float = true;
        }
    }
    if is_float { (Token::Float, length) } else { suffixed(length) }
}

/// A text or bytes, with its prefix and quotes, if it is whole and has only escapes that there are.
fn quoted(rest: &str) -> Option<(Token, usize)> {
    let bytes = rest.as_bytes();
    let prefix = bytes.iter().take_while(|it| matches!(it, b'r' | b'R' | b'b' | b'B')).take(3).count();
    let letters = &bytes[..prefix];
    let is_raw = letters.iter().any(|it| it.eq_ignore_ascii_case(&b'r'));
    let is_bytes = letters.iter().any(|it| it.eq_ignore_ascii_case(&b'b'));
    if prefix > 2
        || (prefix == 2 && !(is_raw && is_bytes))
        || (is_raw && is_bytes && letters[0].eq_ignore_ascii_case(&b'r'))
    {
        return None;
    }
    let quote = *bytes.get(prefix).filter(|it| matches!(it, b'"' | b'\''))?;
    let token = if is_bytes { Token::Bytes } else { Token::Text };
    let triple = [quote; 3];
    if bytes[prefix..].starts_with(&triple)
        && let Some(length) = closed(bytes, prefix + 3, &triple, is_raw, true)
    {
        return Some((token, length));
    }
    closed(bytes, prefix + 1, &triple[..1], is_raw, false).map(|it| (token, it))
}

fn closed(bytes: &[u8], mut at: usize, end: &[u8], is_raw: bool, is_long: bool) -> Option<usize> {
    loop {
        let rest = bytes.get(at..)?;
        if rest.starts_with(end) {
            return Some(at + end.len());
        }
        at += match *rest.first()? {
            b'\n' | b'\r' if !is_long => return None,
            b'\\' if !is_raw => escape_length(rest)?,
            _ => 1,
        };
    }
}

fn escape_length(rest: &[u8]) -> Option<usize> {
    let hex = |from: usize, n: usize| {
        rest.get(from..from + n).filter(|it| it.iter().all(u8::is_ascii_hexdigit)).map(|_| from + n)
    };
    match rest.get(1)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Some(2),
        b'x' | b'X' => hex(2, 2),
        b'u' => hex(2, 4),
        b'U' => hex(2, 8),
        b'0'..=b'3' => rest.get(2..4).filter(|it| it.iter().all(|it| matches!(it, b'0'..=b'7'))).map(|_| 4),
        _ => None,
    }
}

/// How long an escape is up to the sign that breaks it, and with that.
fn broken_escape(rest: &[u8]) -> usize {
    let n_digits = match rest.get(1) {
        Some(b'x' | b'X') => 2,
        Some(b'u') => 4,
        Some(b'U') => 8,
        _ => return 2,
    };
    3 + rest[2..].iter().take(n_digits).take_while(|it| it.is_ascii_hexdigit()).count()
}

/// How much of what is no word one complaint is about: a quote goes to where it breaks, all else is one character.
fn unread(rest: &str) -> usize {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    // Half of a sign takes what should have been its other half with it.
    if rest.starts_with(['=', '&', '|']) {
        return first + rest[first..].chars().next().map_or(0, char::len_utf8);
    }
    if !rest.starts_with(['"', '\'']) {
        return first;
    }
    let (bytes, quote) = (rest.as_bytes(), rest.as_bytes()[0]);
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' | b'\r' => break,
            _ if *byte == quote => break,
            b'\\' => match escape_length(&bytes[at..]) {
                Some(length) => at += length,
                None => {
                    at += broken_escape(&bytes[at..]);
                    break;
                }
            },
            _ => at += 1,
        }
    }
    let mut at = at.min(rest.len());
    while !rest.is_char_boundary(at) {
        at += 1;
    }
    at.max(first)
}
