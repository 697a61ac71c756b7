//! Operators of the language. Those that do not look at all their operands are nodes of a program, and only declared here.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use super::{Evaluated, Row, no_overload};
use crate::{
    declared::{ListKind, Shape},
    error::Error,
    fuel,
    value::{Items, Key, List, Map, Value, compare},
};

/// The rows of one comparison.
macro_rules! comparison {
    ($name:literal, $word:literal, $run:expr) => {
        [
            (concat!($word, "_bool"), concat!($name, "(bool, bool) -> bool"), $run as super::Run),
            (concat!($word, "_int64"), concat!($name, "(int, int) -> bool"), $run),
            (concat!($word, "_int64_double"), concat!($name, "(int, double) -> bool"), $run),
            (concat!($word, "_int64_uint64"), concat!($name, "(int, uint) -> bool"), $run),
            (concat!($word, "_uint64"), concat!($name, "(uint, uint) -> bool"), $run),
            (concat!($word, "_uint64_double"), concat!($name, "(uint, double) -> bool"), $run),
            (concat!($word, "_uint64_int64"), concat!($name, "(uint, int) -> bool"), $run),
            (concat!($word, "_double"), concat!($name, "(double, double) -> bool"), $run),
            (concat!($word, "_double_int64"), concat!($name, "(double, int) -> bool"), $run),
            (concat!($word, "_double_uint64"), concat!($name, "(double, uint) -> bool"), $run),
            (concat!($word, "_string"), concat!($name, "(string, string) -> bool"), $run),
            (concat!($word, "_bytes"), concat!($name, "(bytes, bytes) -> bool"), $run),
            (concat!($word, "_timestamp"), concat!($name, "(timestamp, timestamp) -> bool"), $run),
            (concat!($word, "_duration"), concat!($name, "(duration, duration) -> bool"), $run),
        ]
    };
}

const LESS: [Row; 14] = comparison!("_<_", "less", |it| ordered(it, Ordering::is_lt));
const LESS_EQUALS: [Row; 14] = comparison!("_<=_", "less_equals", |it| ordered(it, Ordering::is_le));
const GREATER: [Row; 14] = comparison!("_>_", "greater", |it| ordered(it, Ordering::is_gt));
const GREATER_EQUALS: [Row; 14] = comparison!("_>=_", "greater_equals", |it| ordered(it, Ordering::is_ge));

const OTHERS: [Row; 49] = [
    ("conditional", "_?_:_(bool, A, A) -> A", no_overload),
    ("logical_and", "_&&_(bool, bool) -> bool", no_overload),
    ("logical_or", "_||_(bool, bool) -> bool", no_overload),
    ("logical_not", "!_(bool) -> bool", not),
    ("not_strictly_false", "@not_strictly_false(bool) -> bool", no_overload),
    ("equals", "_==_(A, A) -> bool", |it| Ok(Value::Bool(it[0] == it[1]))),
    ("not_equals", "_!=_(A, A) -> bool", |it| Ok(Value::Bool(it[0] != it[1]))),
    ("add_bytes", "_+_(bytes, bytes) -> bytes", add),
    ("add_double", "_+_(double, double) -> double", add),
    ("add_duration_duration", "_+_(duration, duration) -> duration", add),
    ("add_duration_timestamp", "_+_(duration, timestamp) -> timestamp", add),
    ("add_timestamp_duration", "_+_(timestamp, duration) -> timestamp", add),
    ("add_int64", "_+_(int, int) -> int", add),
    ("add_list", "_+_(list(A), list(A)) -> list(A)", add),
    ("add_string", "_+_(string, string) -> string", add),
    ("add_uint64", "_+_(uint, uint) -> uint", add),
    ("divide_double", "_/_(double, double) -> double", divide),
    ("divide_int64", "_/_(int, int) -> int", divide),
    ("divide_uint64", "_/_(uint, uint) -> uint", divide),
    ("modulo_int64", "_%_(int, int) -> int", modulo),
    ("modulo_uint64", "_%_(uint, uint) -> uint", modulo),
    ("multiply_double", "_*_(double, double) -> double", multiply),
    ("multiply_int64", "_*_(int, int) -> int", multiply),
    ("multiply_uint64", "_*_(uint, uint) -> uint", multiply),
    ("negate_double", "-_(double) -> double", negate),
    ("negate_int64", "-_(int) -> int", negate),
    ("subtract_double", "_-_(double, double) -> double", subtract),
    ("subtract_duration_duration", "_-_(duration, duration) -> duration", subtract),
    ("subtract_int64", "_-_(int, int) -> int", subtract),
    ("subtract_timestamp_duration", "_-_(timestamp, duration) -> timestamp", subtract),
    ("subtract_timestamp_timestamp", "_-_(timestamp, timestamp) -> duration", subtract),
    ("subtract_uint64", "_-_(uint, uint) -> uint", subtract),
    ("in_list", "@in(A, list(A)) -> bool", is_in),
    ("in_map", "@in(A, map(A, B)) -> bool", is_in),
    ("index_list", "_[_](list(A), int) -> A", index),
    ("index_map", "_[_](map(A, B), A) -> B", index),
    ("size_string", "size(string) -> int", size),
    ("string_size", ".size(string) -> int", size),
    ("size_bytes", "size(bytes) -> int", size),
    ("bytes_size", ".size(bytes) -> int", size),
    ("size_list", "size(list(A)) -> int", size),
    ("list_size", ".size(list(A)) -> int", size),
    ("size_map", "size(map(A, B)) -> int", size),
    ("map_size", ".size(map(A, B)) -> int", size),
    ("contains_string", ".contains(string, string) -> bool", |it| texts(it, |a, b| a.contains(b))),
    ("starts_with_string", ".startsWith(string, string) -> bool", |it| texts(it, |a, b| a.starts_with(b))),
    ("ends_with_string", ".endsWith(string, string) -> bool", |it| texts(it, |a, b| a.ends_with(b))),
    ("to_dyn", "dyn(A) -> dyn", |it| Ok(it[0].clone())),
    ("type", "type(A) -> type(A)", |it| Ok(Value::Type(crate::value::Text::Shared(it[0].type_name().into())))),
];

pub(super) const ROWS: &[Row] = &joined();

const fn joined() -> [Row; 105] {
    let mut rows = [OTHERS[0]; 105];
    let mut at = 0;
    while at < 14 {
        rows[at] = LESS[at];
        rows[14 + at] = LESS_EQUALS[at];
        rows[28 + at] = GREATER[at];
        rows[42 + at] = GREATER_EQUALS[at];
        at += 1;
    }
    at = 0;
    while at < 49 {
        rows[56 + at] = OTHERS[at];
        at += 1;
    }
    rows
}

fn ordered<'a>(args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Evaluated<'a> {
    match compare(&args[0], &args[1]) {
        Some(order) => Ok(Value::Bool(holds(order))),
        None if is_number(&args[0]) && is_number(&args[1]) => Ok(Value::Bool(false)),
        None => Err(Error::no_such_overload()),
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn not<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Bool(it) => Ok(Value::Bool(!it)),
        _ => Err(Error::no_such_overload()),
    }
}

fn texts<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Evaluated<'a> {
    match args {
        [Value::String(a), Value::String(b)] => Ok(Value::Bool(holds(a, b))),
        _ => Err(Error::no_such_overload()),
    }
}

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";
const DURATION: &str = "duration overflow";
const TIMESTAMP: &str = "timestamp overflow";

fn checked<'a, T>(it: Option<T>, make: fn(T) -> Value<'a>, otherwise: &str) -> Evaluated<'a> {
    it.map(make).ok_or_else(|| Error::other(otherwise))
}

pub(super) fn add<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => checked(a.checked_add(*b), Value::Int, INT),
        (Value::Uint(a), Value::Uint(b)) => checked(a.checked_add(*b), Value::Uint, UINT),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            let mut sum = String::with_capacity(a.len() + b.len());
            sum.push_str(a);
            sum.push_str(b);
            Ok(sum.into())
        }
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes(a.iter().chain(b.iter()).copied().collect())),
        (Value::List(a), Value::List(b)) => Ok(Value::List(concatenated(a, b))),
        (Value::Duration(a), Value::Duration(b)) => checked(a.checked_add(*b), Value::Duration, DURATION),
        (Value::Duration(by), Value::Timestamp(at)) | (Value::Timestamp(at), Value::Duration(by)) => {
            checked(at.moved(i128::from(*by)), Value::Timestamp, TIMESTAMP)
        }
        _ => Err(Error::no_such_overload()),
    }
}

/// The sum of two lists: of sets, what either has; of associative ones, the second's item where both have the key.
fn concatenated<'a>(a: &List<'a>, b: &List<'a>) -> List<'a> {
    let declared = a.declared.or(b.declared);
    let key: Box<dyn Fn(&Value<'a>) -> String> = match declared.map(|it| &it.shape) {
        Some(Shape::List(_, ListKind::Set)) => Box::new(json_text),
        Some(Shape::List(_, ListKind::Map(keys))) => Box::new(|it| keys_text(keys, it)),
        _ => return a.joined(b),
    };
    // Upstream charges nothing for this, so it is the fuel that bounds it.
    fuel::spend(20 * (a.len() as u64).saturating_add(b.len() as u64));
    let mut items: Vec<Value<'a>> = a.iter().collect();
    let mut places: BTreeMap<String, usize> = items.iter().enumerate().map(|(at, it)| (key(it), at)).collect();
    for it in b.iter() {
        match places.entry(key(&it)) {
            Entry::Occupied(place) => items[*place.get()] = it,
            Entry::Vacant(place) => {
                place.insert(items.len());
                items.push(it);
            }
        }
    }
    List { items: Items::Made(Arc::new(items)), declared }
}

/// A value as a text that tells it from others.
fn json_text(value: &Value<'_>) -> String {
    if fuel::is_spent() {
        return String::new();
    }
    let text = value.to_json().map_or(String::new(), |it| it.to_string());
    if fuel::spend_made(text.len()) { text } else { String::new() }
}

/// The keys of an item of an associative list.
fn keys_text(keys: &[String], item: &Value<'_>) -> String {
    let Value::Map(map) = item else { return String::new() };
    let values = keys.iter().map(|it| map.field(crate::escape(it).as_deref().unwrap_or(it)));
    values.map(|it| it.as_ref().map_or(String::new(), json_text)).collect::<Vec<_>>().join(",")
}

fn subtract<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => checked(a.checked_sub(*b), Value::Int, INT),
        (Value::Uint(a), Value::Uint(b)) => checked(a.checked_sub(*b), Value::Uint, UINT),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => checked(a.checked_sub(*b), Value::Duration, DURATION),
        (Value::Timestamp(at), Value::Duration(by)) => {
            checked(by.checked_neg().and_then(|it| at.moved(i128::from(it))), Value::Timestamp, TIMESTAMP)
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            checked(i64::try_from(a.nanos_since(*b)).ok(), Value::Duration, DURATION)
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn multiply<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => checked(a.checked_mul(*b), Value::Int, INT),
        (Value::Uint(a), Value::Uint(b)) => checked(a.checked_mul(*b), Value::Uint, UINT),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn divide<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Error::other("division by zero")),
        (Value::Int(a), Value::Int(b)) => checked(a.checked_div(*b), Value::Int, INT),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a / b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn modulo<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Error::other("modulus by zero")),
        (Value::Int(a), Value::Int(b)) => checked(a.checked_rem(*b), Value::Int, INT),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a % b)),
        _ => Err(Error::no_such_overload()),
    }
}

fn negate<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Int(it) => checked(it.checked_neg(), Value::Int, INT),
        Value::Double(it) => Ok(Value::Double(-it)),
        _ => Err(Error::no_such_overload()),
    }
}

fn is_in<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[1] {
        Value::List(list) => Ok(Value::Bool(list.iter().any(|it| it == args[0]))),
        Value::Map(map) => Ok(Value::Bool(Key::to_find(&args[0]).is_some_and(|it| map.contains(&it)))),
        _ => Err(Error::no_such_overload()),
    }
}

fn size<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        it @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(i64::try_from(it.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn index<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (of, key) = (&args[0], &args[1]);
    match found(of, key)? {
        Some(value) => Ok(value),
        None => Err(match (of, Key::to_find(key)) {
            (Value::List(_), Some(at)) => Error::other(format!("index out of bounds: {at}")),
            (_, Some(key)) => Error::no_such_key(key),
            (_, None) => Error::no_such_overload(),
        }),
    }
}

/// The element of a list or map, if it is there.
pub(crate) fn found<'a>(of: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, Box<Error>> {
    match of {
        Value::List(list) => match Key::to_find(key) {
            Some(Key::Int(at)) => Ok(usize::try_from(at).ok().and_then(|it| list.get(it))),
            Some(Key::Uint(at)) => Ok(usize::try_from(at).ok().and_then(|it| list.get(it))),
            _ => Err(Error::other(format!("unsupported index type '{}' in list", key.type_name()))),
        },
        Value::Map(map) => match Key::to_find(key) {
            Some(key) => Ok(map.get(&key)),
            None if matches!(key, Value::Double(_)) => Ok(None),
            None => Err(Error::other(format!("unsupported key type: {}", key.type_name()))),
        },
        _ => Err(Error::no_such_overload()),
    }
}

/// The field of an object, if it is there.
pub(crate) fn field<'a>(of: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, Box<Error>> {
    match of {
        Value::Map(map) => Ok(Map::field(map, name)),
        _ => Err(Error::no_such_overload()),
    }
}
