//! Regular expressions in Go's syntax (RE2), by a machine of bounded size: one pattern cannot make a match take long.

use std::cell::RefCell;

use regex::{Regex, RegexBuilder};

use super::{Evaluated, Row};
use crate::{error::Error, fuel, value::Value};

pub(super) const STANDARD_ROWS: &[Row] = &[
    ("matches", "matches(string, string) -> bool", |it| with(it, |it, text, _| Value::Bool(it.is_match(text)))),
    ("matches_string", ".matches(string, string) -> bool", |it| with(it, |it, text, _| Value::Bool(it.is_match(text)))),
];

pub(super) const ROWS: &[Row] = &[
    ("string_find_string", ".find(string, string) -> string", |it| with(it, find)),
    ("string_find_all_string", ".findAll(string, string) -> list(string)", |it| with(it, find_all)),
    ("string_find_all_string_int", ".findAll(string, string, int) -> list(string)", |it| with(it, find_all)),
];

/// What a machine may take, tried one after the other: how large it is says what it takes to run it.
const SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, 2 << 20];
const DFA_BYTES: usize = 1 << 20;
/// A pattern that is not constant is compiled each time, so it may be so long only.
const PATTERN_BYTES_MAX: usize = 16 << 10;

type Use<'a> = fn(&Regex, &str, Option<i64>) -> Value<'a>;

fn with<'a>(args: &[Value<'a>], make: Use<'a>) -> Evaluated<'a> {
    let (Value::String(text), Value::String(pattern)) = (&args[0], &args[1]) else {
        return Err(Error::no_such_overload());
    };
    let (regex, per_byte) = cached(pattern).map_err(|it| Error::other(format!("Illegal regex: {it}")))?;
    if !fuel::spend((text.len() as u64).saturating_mul(per_byte)) {
        return Err(Error::other("operation interrupted"));
    }
    Ok(make(&regex, text, limit(args)?))
}

thread_local! {
    /// The pattern that was compiled last: one that a field holds is used for all items of a list.
    static LAST: RefCell<Option<(String, Regex, u64)>> = const { RefCell::new(None) };
}

fn cached(pattern: &str) -> Result<(Regex, u64), String> {
    let known = LAST.with_borrow(|it| it.as_ref().filter(|it| it.0 == pattern).map(|it| (it.1.clone(), it.2)));
    if let Some(known) = known {
        return Ok(known);
    }
    let sized = sized(pattern)?;
    let fuel = sized.fuel();
    LAST.set(Some((pattern.to_owned(), sized.regex.clone(), fuel)));
    Ok((sized.regex, fuel))
}

/// With a pattern that was compiled before.
///
/// # Errors
/// If the arguments are none.
pub(crate) fn run_compiled<'a>(function: &str, regex: &Regex, args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::String(text) = &args[0] else { return Err(Error::no_such_overload()) };
    Ok(match function {
        "find" => find(regex, text, None),
        "findAll" => find_all(regex, text, limit(args)?),
        _ => Value::Bool(regex.is_match(text)),
    })
}

fn limit(args: &[Value<'_>]) -> Result<Option<i64>, Box<Error>> {
    match args.get(2) {
        None => Ok(None),
        Some(Value::Int(limit)) => Ok(Some(*limit)),
        Some(_) => Err(Error::no_such_overload()),
    }
}

fn find<'a>(regex: &Regex, text: &str, _: Option<i64>) -> Value<'a> {
    regex.find(text).map_or(String::new(), |it| it.as_str().to_owned()).into()
}

fn find_all<'a>(regex: &Regex, text: &str, limit: Option<i64>) -> Value<'a> {
    let most = limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(usize::MAX);
    regex.find_iter(text).take(most).map(|it| Value::from(it.as_str().to_owned())).collect::<Vec<_>>().into()
}

/// A machine, and how large it is.
#[derive(Debug)]
pub(crate) struct Sized {
    pub(crate) regex: Regex,
    bytes: usize,
}

impl Sized {
    /// What it takes to match one byte, at worst: every state of the machine is looked at.
    pub(crate) fn fuel(&self) -> u64 {
        (self.bytes as u64 >> 6).max(1)
    }
}

/// # Errors
/// What is wrong with the pattern.
pub(crate) fn compiled(pattern: &str) -> Result<Regex, String> {
    sized(pattern).map(|it| it.regex)
}

/// # Errors
/// What is wrong with the pattern.
pub(crate) fn sized(pattern: &str) -> Result<Sized, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err("error parsing regexp: expression is too large".to_owned());
    }
    let translated = translated(pattern)?;
    for bytes in SIZES {
        // What is made for a size that does not do is work, too.
        fuel::spend(bytes as u64 * 4);
        let built = RegexBuilder::new(&translated).size_limit(bytes).dfa_size_limit(DFA_BYTES).nest_limit(100).build();
        match built {
            Ok(regex) => return Ok(Sized { regex, bytes }),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(other) => {
                // The last line says what is wrong, the ones before point at it.
                let said = other.to_string();
                let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                return Err(format!("error parsing regexp: {why}: `{pattern}`"));
            }
        }
    }
    Err("error parsing regexp: expression is too large".to_owned())
}

/// From Go's syntax to this machine's. They differ in what classes of characters mean (ASCII there), in octal escapes and
/// quoted parts, and in signs that mean themselves there and something else here.
fn translated(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(char) = rest.chars().next() {
        let length = match char {
            '\\' => escaped(&mut out, rest, in_class)?,
            '[' if in_class && !rest.starts_with("[:") => quoted(&mut out, "\\["),
            '[' if in_class => named_class(&mut out, rest),
            '[' => {
                in_class = true;
                class_start(&mut out, rest)
            }
            ']' if in_class => {
                in_class = false;
                quoted(&mut out, "]")
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(char);
                1
            }
            '-' if in_class && rest.starts_with("--") => quoted(&mut out, "\\-"),
            '{' if !in_class && !is_repetition(rest) => quoted(&mut out, "\\{"),
            '}' if !in_class && !closes_repetition(&out) => quoted(&mut out, "\\}"),
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Ok(out)
}

/// Writes something for one byte.
fn quoted(out: &mut String, text: &str) -> usize {
    out.push_str(text);
    1
}

fn class_start(out: &mut String, rest: &str) -> usize {
    let start = if rest.starts_with("[^") { "[^" } else { "[" };
    out.push_str(start);
    // A bracket that comes first means itself.
    if rest[start.len()..].starts_with(']') {
        out.push_str("\\]");
        return start.len() + 1;
    }
    start.len()
}

/// `[:alpha:]` within a class, or a bracket.
fn named_class(out: &mut String, rest: &str) -> usize {
    match rest.find(":]") {
        Some(end) if rest[2..end].bytes().all(|it| it == b'^' || it.is_ascii_alphabetic()) => {
            out.push_str(&rest[..end + 2]);
            end + 2
        }
        _ => quoted(out, "\\["),
    }
}

fn is_repetition(rest: &str) -> bool {
    let Some(end) = rest.find('}') else { return false };
    let (low, high) = rest[1..end].split_once(',').unwrap_or((&rest[1..end], "0"));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    !low.is_empty() && is_number(low) && is_number(high)
}

/// Was the brace that is being closed kept as a repetition?
fn closes_repetition(out: &str) -> bool {
    out.rfind('{').is_some_and(|at| !out[..at].ends_with('\\') && !out[at..].contains('}'))
}

/// An escape, from its backslash on; gives how long it is.
fn escaped(out: &mut String, rest: &str, in_class: bool) -> Result<usize, String> {
    let Some(char) = rest[1..].chars().next() else {
        return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
    };
    let written = match (char, in_class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        // What is not ASCII is no part of a word, so the place between two bytes of a character is never looked at.
        ('B', false) => "(?u:\\B)",
        ('C' | 'Z' | 'G' | 'X' | 'R' | 'K' | 'k', _) | ('1'..='9', _) => {
            return Err(format!("error parsing regexp: invalid escape sequence: `\\{char}`"));
        }
        ('0', _) => {
            let digits = rest[1..].bytes().take(3).take_while(|it| matches!(it, b'0'..=b'7')).count();
            let code = u32::from_str_radix(&rest[1..=digits], 8).unwrap_or(0);
            out.push_str(&format!("\\x{{{code:X}}}"));
            return Ok(1 + digits);
        }
        ('Q', false) => {
            let inside = &rest[2..];
            let end = inside.find("\\E");
            out.push_str(&regex::escape(&inside[..end.unwrap_or(inside.len())]));
            return Ok(end.map_or(rest.len(), |it| it + 4));
        }
        ('E', false) => "",
        // Names of classes hold braces that are no repetition.
        ('p' | 'P' | 'x', _) if rest[2..].starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |it| it + 1);
            out.push_str(&rest[..end]);
            return Ok(end);
        }
        (other, _) => {
            out.push('\\');
            out.push(other);
            return Ok(1 + other.len_utf8());
        }
    };
    out.push_str(written);
    Ok(1 + char.len_utf8())
}
