//! What may be asked of a version.

use std::cmp::Ordering;

use super::{Evaluated, Row, quantity::order};
use crate::{
    error::Error,
    opaque::{
        Semver,
        semver::{normalized, parse},
    },
    value::{Opaque, Value},
};

pub(super) const ROWS: &[Row] =
    &[
        ("string_to_semver", "semver(string) -> Semver", |it| {
            Ok(Opaque::Semver(parsed(it)?.map_err(Error::other)?).into())
        }),
        ("string_bool_to_semver", "semver(string, bool) -> Semver", |it| {
            Ok(Opaque::Semver(parsed(it)?.map_err(Error::other)?).into())
        }),
        ("is_semver_string", "isSemver(string) -> bool", |it| Ok(Value::Bool(parsed(it)?.is_ok()))),
        ("is_semver_string_bool", "isSemver(string, bool) -> bool", |it| Ok(Value::Bool(parsed(it)?.is_ok()))),
        ("semver_is_greater_than", ".isGreaterThan(Semver, Semver) -> bool", |it| {
            compared(it, |it| Value::Bool(it.is_gt()))
        }),
        ("semver_is_less_than", ".isLessThan(Semver, Semver) -> bool", |it| compared(it, |it| Value::Bool(it.is_lt()))),
        ("semver_compare_to", ".compareTo(Semver, Semver) -> int", |it| compared(it, order)),
        ("semver_major", ".major(Semver) -> int", |it| number(it, 0)),
        ("semver_minor", ".minor(Semver) -> int", |it| number(it, 1)),
        ("semver_patch", ".patch(Semver) -> int", |it| number(it, 2)),
    ];

fn parsed(args: &[Value<'_>]) -> Result<Result<Semver, String>, Box<Error>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(parse(text)),
        [Value::String(text), Value::Bool(true)] => Ok(normalized(text).and_then(|it| parse(&it))),
        _ => Err(Error::no_such_overload()),
    }
}

fn get<'v>(value: &'v Value<'_>) -> Result<&'v Semver, Box<Error>> {
    if let Value::Opaque(it) = value
        && let Opaque::Semver(it) = &**it
    {
        return Ok(it);
    }
    Err(Error::no_such_overload())
}

fn number<'a>(args: &[Value<'a>], at: usize) -> Evaluated<'a> {
    Ok(Value::Int(i64::try_from(get(&args[0])?.numbers[at]).unwrap_or(i64::MAX)))
}

fn compared<'a>(args: &[Value<'a>], make: fn(Ordering) -> Value<'a>) -> Evaluated<'a> {
    Ok(make(get(&args[0])?.order(get(&args[1])?)))
}
