//! Lists, as Kubernetes' own library has them: sorted, summed, searched.

use std::cmp::Ordering;

use super::{Evaluated, Row, operators::add};
use crate::{
    error::Error,
    fuel,
    value::{Value, compare},
};

pub(super) const ROWS: &[Row] = &[
    ("list_int_is_sorted_bool", ".isSorted(list(int)) -> bool", is_sorted),
    ("list_uint_is_sorted_bool", ".isSorted(list(uint)) -> bool", is_sorted),
    ("list_double_is_sorted_bool", ".isSorted(list(double)) -> bool", is_sorted),
    ("list_bool_is_sorted_bool", ".isSorted(list(bool)) -> bool", is_sorted),
    ("list_duration_is_sorted_bool", ".isSorted(list(duration)) -> bool", is_sorted),
    ("list_timestamp_is_sorted_bool", ".isSorted(list(timestamp)) -> bool", is_sorted),
    ("list_string_is_sorted_bool", ".isSorted(list(string)) -> bool", is_sorted),
    ("list_bytes_is_sorted_bool", ".isSorted(list(bytes)) -> bool", is_sorted),
    ("list_int_sum_int", ".sum(list(int)) -> int", |it| sum(it, Value::Int(0))),
    ("list_uint_sum_uint", ".sum(list(uint)) -> uint", |it| sum(it, Value::Uint(0))),
    ("list_double_sum_double", ".sum(list(double)) -> double", |it| sum(it, Value::Double(0.0))),
    ("list_duration_sum_duration", ".sum(list(duration)) -> duration", |it| sum(it, Value::Duration(0))),
    ("list_int_max_int", ".max(list(int)) -> int", max),
    ("list_uint_max_uint", ".max(list(uint)) -> uint", max),
    ("list_double_max_double", ".max(list(double)) -> double", max),
    ("list_bool_max_bool", ".max(list(bool)) -> bool", max),
    ("list_duration_max_duration", ".max(list(duration)) -> duration", max),
    ("list_timestamp_max_timestamp", ".max(list(timestamp)) -> timestamp", max),
    ("list_string_max_string", ".max(list(string)) -> string", max),
    ("list_bytes_max_bytes", ".max(list(bytes)) -> bytes", max),
    ("list_int_min_int", ".min(list(int)) -> int", min),
    ("list_uint_min_uint", ".min(list(uint)) -> uint", min),
    ("list_double_min_double", ".min(list(double)) -> double", min),
    ("list_bool_min_bool", ".min(list(bool)) -> bool", min),
    ("list_duration_min_duration", ".min(list(duration)) -> duration", min),
    ("list_timestamp_min_timestamp", ".min(list(timestamp)) -> timestamp", min),
    ("list_string_min_string", ".min(list(string)) -> string", min),
    ("list_bytes_min_bytes", ".min(list(bytes)) -> bytes", min),
    ("list_a_index_of_int", ".indexOf(list(A), A) -> int", |it| {
        place(it, |list, item| list.iter().position(|it| it == item))
    }),
    ("list_a_last_index_of_int", ".lastIndexOf(list(A), A) -> int", |it| {
        place(it, |list, item| list.iter().rposition(|it| it == item))
    }),
];

fn items<'a>(args: &[Value<'a>]) -> Result<Vec<Value<'a>>, Box<Error>> {
    match &args[0] {
        Value::List(list) => {
            fuel::spend(2 * list.len() as u64);
            Ok(list.iter().collect())
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let items = items(args)?;
    Ok(Value::Bool(!items.windows(2).any(|it| compare(&it[0], &it[1]) == Some(Ordering::Greater))))
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Evaluated<'a> {
    items(args)?.into_iter().try_fold(zero, |sum, it| add(&[sum, it]))
}

fn max<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    best(args, Ordering::Less).ok_or_else(|| Error::other("max called on empty list"))
}

fn min<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    best(args, Ordering::Greater).ok_or_else(|| Error::other("min called on empty list"))
}

fn best<'a>(args: &[Value<'a>], worse: Ordering) -> Option<Value<'a>> {
    let items = items(args).ok()?;
    items.into_iter().reduce(|best, it| if compare(&best, &it) == Some(worse) { it } else { best })
}

fn place<'a>(args: &[Value<'a>], find: fn(&[Value<'a>], &Value<'a>) -> Option<usize>) -> Evaluated<'a> {
    Ok(find(&items(args)?, &args[1]).map_or(Value::Int(-1), Value::from))
}
