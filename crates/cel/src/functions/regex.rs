//! What is asked of regular expressions.

use std::{cell::RefCell, rc::Rc};

use super::{Evaluated, ITEM_BYTES, Row};
use crate::{error::Error, fuel, pattern::Machine, value::Value};

pub(super) const STANDARD_ROWS: &[Row] = &[
    ("matches", "matches(string, string) -> bool", |it| with(it, matches)),
    ("matches_string", ".matches(string, string) -> bool", |it| with(it, matches)),
];

pub(super) const ROWS: &[Row] = &[
    ("string_find_string", ".find(string, string) -> string", |it| with(it, find)),
    ("string_find_all_string", ".findAll(string, string) -> list(string)", |it| with(it, find_all)),
    ("string_find_all_string_int", ".findAll(string, string, int) -> list(string)", |it| with(it, find_all)),
];

type Use<'a> = fn(&Machine, &str, Option<i64>) -> Evaluated<'a>;

fn with<'a>(args: &[Value<'a>], make: Use<'a>) -> Evaluated<'a> {
    let (Value::String(text), Value::String(pattern)) = (&args[0], &args[1]) else {
        return Err(Error::no_such_overload());
    };
    let machine = cached(pattern).map_err(|it| Error::other(format!("Illegal regex: {it}")))?;
    searched(&machine, text, args, make)
}

/// What a function finds in a text, if there is the fuel to look through it once.
fn searched<'a>(machine: &Machine, text: &str, args: &[Value<'a>], make: Use<'a>) -> Evaluated<'a> {
    if !fuel::spend((text.len() as u64).saturating_mul(machine.fuel())) {
        return Err(Error::interrupted());
    }
    make(machine, text, limit(args)?)
}

thread_local! {
    /// The pattern that was compiled last: one that a field holds is used for all items of a list.
    static LAST: RefCell<Option<(String, Rc<Machine>)>> = const { RefCell::new(None) };
}

fn cached(pattern: &str) -> Result<Rc<Machine>, String> {
    let known = LAST.with_borrow(|it| it.as_ref().filter(|it| it.0 == pattern).map(|it| it.1.clone()));
    if let Some(known) = known {
        return Ok(known);
    }
    let machine = Rc::new(Machine::of_found(pattern)?);
    LAST.set(Some((pattern.to_owned(), machine.clone())));
    Ok(machine)
}

/// With a pattern that was compiled before.
///
/// # Errors
/// If the arguments are none, or there is too little fuel.
pub(crate) fn run_compiled<'a>(function: &str, machine: &Machine, args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::String(text) = &args[0] else { return Err(Error::no_such_overload()) };
    let make: Use<'a> = match function {
        "find" => find,
        "findAll" => find_all,
        _ => matches,
    };
    searched(machine, text, args, make)
}

fn limit(args: &[Value<'_>]) -> Result<Option<i64>, Box<Error>> {
    match args.get(2) {
        None => Ok(None),
        Some(Value::Int(limit)) => Ok(Some(*limit)),
        Some(_) => Err(Error::no_such_overload()),
    }
}

fn matches<'a>(machine: &Machine, text: &str, _: Option<i64>) -> Evaluated<'a> {
    Ok(Value::Bool(machine.regex.is_match(text)))
}

fn find<'a>(machine: &Machine, text: &str, _: Option<i64>) -> Evaluated<'a> {
    Ok(machine.regex.find(text).map_or(String::new(), |it| it.as_str().to_owned()).into())
}

/// Each search may read to the end of the text, however short what it finds is: `.*[^A-Z]|[A-Z]` in capitals.
fn find_all<'a>(machine: &Machine, text: &str, limit: Option<i64>) -> Evaluated<'a> {
    let most = limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(usize::MAX);
    let per_byte = machine.fuel().div_ceil(16);
    let mut found: Vec<Value<'a>> = Vec::new();
    for part in machine.regex.find_iter(text).take(most) {
        let rest = (text.len() - part.start()) as u64;
        if !fuel::spend(rest.saturating_mul(per_byte)) || !fuel::spend_made(part.len() + ITEM_BYTES) {
            return Err(Error::interrupted());
        }
        found.push(part.as_str().to_owned().into());
    }
    Ok(found.into())
}
