//! Values that may be absent. `or` and `orValue` do not look at what they do not need: they are nodes of a program.

use super::{Evaluated, Row, found, no_overload};
use crate::{error::Error, value::Value};

pub(super) const ROWS: &[Row] = &[
    ("optional_of", "optional.of(V) -> optional(V)", |it| Ok(Value::some(it[0].clone()))),
    ("optional_ofNonZeroValue", "optional.ofNonZeroValue(V) -> optional(V)", of_non_zero),
    ("optional_none", "optional.none() -> optional(V)", |_| Ok(Value::NONE)),
    ("optional_value", ".value(optional(V)) -> V", value),
    ("optional_hasValue", ".hasValue(optional(V)) -> bool", has_value),
    ("optional_or_optional", ".or(optional(V), optional(V)) -> optional(V)", no_overload),
    ("optional_orValue_value", ".orValue(optional(V), V) -> V", no_overload),
    ("select_optional_field", "_?._(dyn, string) -> optional(V)", no_overload),
    ("list_optindex_optional_int", "_[?_](list(V), int) -> optional(V)", index),
    ("optional_list_optindex_optional_int", "_[?_](optional(list(V)), int) -> optional(V)", index),
    ("map_optindex_optional_value", "_[?_](map(K, V), K) -> optional(V)", index),
    ("optional_map_optindex_optional_value", "_[?_](optional(map(K, V)), K) -> optional(V)", index),
    ("optional_list_index_int", "_[_](optional(list(V)), int) -> optional(V)", index),
    ("optional_map_index_value", "_[_](optional(map(K, V)), K) -> optional(V)", index),
];

fn of_non_zero<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    Ok(if args[0].is_zero() { Value::NONE } else { Value::some(args[0].clone()) })
}

fn value<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Optional(Some(it)) => Ok((**it).clone()),
        Value::Optional(None) => Err(Error::other("optional.none() dereference")),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Optional(it) => Ok(Value::Bool(it.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn index<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let of = match &args[0] {
        Value::Optional(None) => return Ok(Value::NONE),
        Value::Optional(Some(it)) => it,
        other => other,
    };
    Ok(found(of, &args[1])?.map_or(Value::NONE, Value::some))
}
