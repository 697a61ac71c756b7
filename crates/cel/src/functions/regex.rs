//! What is asked of regular expressions.

use std::cell::RefCell;

use regex::Regex;

use super::{Evaluated, Row};
use crate::{error::Error, fuel, pattern::Machine, value::Value};

pub(super) const STANDARD_ROWS: &[Row] = &[
    ("matches", "matches(string, string) -> bool", |it| with(it, |it, text, _| Value::Bool(it.is_match(text)))),
    ("matches_string", ".matches(string, string) -> bool", |it| with(it, |it, text, _| Value::Bool(it.is_match(text)))),
];

pub(super) const ROWS: &[Row] = &[
    ("string_find_string", ".find(string, string) -> string", |it| with(it, find)),
    ("string_find_all_string", ".findAll(string, string) -> list(string)", |it| with(it, find_all)),
    ("string_find_all_string_int", ".findAll(string, string, int) -> list(string)", |it| with(it, find_all)),
];

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
    let machine = Machine::of_found(pattern)?;
    let fuel = machine.fuel();
    LAST.set(Some((pattern.to_owned(), machine.regex.clone(), fuel)));
    Ok((machine.regex, fuel))
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
