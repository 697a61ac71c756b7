//! Lists as sets: does one contain another, are they the same, do they meet?

use super::{Evaluated, Row};
use crate::{
    error::Error,
    value::{List, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("list_sets_contains_list", "sets.contains(list(T), list(T)) -> bool", |it| with(it, contains)),
    ("list_sets_equivalent_list", "sets.equivalent(list(T), list(T)) -> bool", |it| {
        with(it, |a, b| contains(a, b) && contains(b, a))
    }),
    ("list_sets_intersects_list", "sets.intersects(list(T), list(T)) -> bool", |it| {
        with(it, |a, b| b.iter().any(|it| has(a, &it)))
    }),
];

fn with<'a>(args: &[Value<'a>], holds: fn(&List<'a>, &List<'a>) -> bool) -> Evaluated<'a> {
    match args {
        [Value::List(a), Value::List(b)] => Ok(Value::Bool(holds(a, b))),
        _ => Err(Error::no_such_overload()),
    }
}

fn has<'a>(list: &List<'a>, item: &Value<'a>) -> bool {
    list.iter().any(|it| it == *item)
}

fn contains<'a>(list: &List<'a>, items: &List<'a>) -> bool {
    items.iter().all(|it| has(list, &it))
}
