//! Lists, as cel-go's extension has them in its third version; and what makes maps of comprehensions.

use std::cmp::Ordering;

use super::{Evaluated, Row};
use crate::{
    error::Error,
    fuel,
    value::{Entries, Key, List, Map, Value, compare},
};

pub(super) const ROWS: &[Row] = &[
    ("list_slice", ".slice(list(T), int, int) -> list(T)", slice),
    ("list_flatten", ".flatten(list(list(T))) -> list(T)", flatten),
    ("list_flatten_int", ".flatten(list(dyn), int) -> list(dyn)", flatten),
    ("list_int_sort", ".sort(list(int)) -> list(int)", sort),
    ("list_uint_sort", ".sort(list(uint)) -> list(uint)", sort),
    ("list_double_sort", ".sort(list(double)) -> list(double)", sort),
    ("list_bool_sort", ".sort(list(bool)) -> list(bool)", sort),
    ("list_google.protobuf.Duration_sort", ".sort(list(duration)) -> list(duration)", sort),
    ("list_google.protobuf.Timestamp_sort", ".sort(list(timestamp)) -> list(timestamp)", sort),
    ("list_string_sort", ".sort(list(string)) -> list(string)", sort),
    ("list_bytes_sort", ".sort(list(bytes)) -> list(bytes)", sort),
    ("list_int_sortByAssociatedKeys", ".@sortByAssociatedKeys(list(T), list(int)) -> list(T)", sort_by),
    ("list_uint_sortByAssociatedKeys", ".@sortByAssociatedKeys(list(T), list(uint)) -> list(T)", sort_by),
    ("list_double_sortByAssociatedKeys", ".@sortByAssociatedKeys(list(T), list(double)) -> list(T)", sort_by),
    ("list_bool_sortByAssociatedKeys", ".@sortByAssociatedKeys(list(T), list(bool)) -> list(T)", sort_by),
    (
        "list_google.protobuf.Duration_sortByAssociatedKeys",
        ".@sortByAssociatedKeys(list(T), list(duration)) -> list(T)",
        sort_by,
    ),
    (
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
        ".@sortByAssociatedKeys(list(T), list(timestamp)) -> list(T)",
        sort_by,
    ),
    ("list_string_sortByAssociatedKeys", ".@sortByAssociatedKeys(list(T), list(string)) -> list(T)", sort_by),
    ("list_bytes_sortByAssociatedKeys", ".@sortByAssociatedKeys(list(T), list(bytes)) -> list(T)", sort_by),
    ("lists_range", "lists.range(int) -> list(int)", range),
    ("list_reverse", ".reverse(list(T)) -> list(T)", reverse),
    ("list_distinct", ".distinct(list(T)) -> list(T)", distinct),
];

pub(super) const MAP_ROWS: &[Row] = &[
    ("@mapInsert_map_key_value", "cel.@mapInsert(map(K, V), K, V) -> map(K, V)", insert),
    ("@mapInsert_map_map", "cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)", insert),
];

/// A longer range would cost more than one call may.
const RANGE_MAX: i64 = 1_000_000;

/// Nothing that JSON brings is deeper.
const FLATTEN_DEPTH_MAX: i64 = 200;
const ITEMS_MAX: usize = 1 << 20;

fn list<'v, 'a>(value: &'v Value<'a>) -> Result<&'v List<'a>, Box<Error>> {
    match value {
        Value::List(list) => Ok(list),
        _ => Err(Error::no_such_overload()),
    }
}

fn slice<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (list, Value::Int(start), Value::Int(end)) = (list(&args[0])?, &args[1], &args[2]) else {
        return Err(Error::no_such_overload());
    };
    let refused = |why: &str| Error::other(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(refused("negative indexes not supported"));
    };
    if from > to {
        return Err(refused("start index must be less than or equal to end index"));
    }
    if to > list.len() {
        return Err(refused(&format!("list is length {}", list.len())));
    }
    Ok((from..to).map_while(|it| list.get(it)).collect::<Vec<_>>().into())
}

fn flatten<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let depth = match args.get(1) {
        None => 1,
        Some(Value::Int(depth)) => *depth,
        Some(_) => return Err(Error::no_such_overload()),
    };
    if depth < 0 {
        return Err(Error::other("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(&mut flat, list(&args[0])?, depth.min(FLATTEN_DEPTH_MAX));
    if flat.len() > ITEMS_MAX {
        return Err(Error::other("list is too long"));
    }
    Ok(flat.into())
}

fn flatten_into<'a>(flat: &mut Vec<Value<'a>>, list: &List<'a>, depth: i64) {
    for it in list.iter() {
        if !fuel::spend(1) || flat.len() > ITEMS_MAX {
            return;
        }
        match &it {
            Value::List(inner) if depth > 0 => flatten_into(flat, inner, depth - 1),
            _ => flat.push(it),
        }
    }
}

fn sort<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    sorted(list(&args[0])?, list(&args[0])?)
}

fn sort_by<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    sorted(list(&args[0])?, list(&args[1])?)
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Evaluated<'a> {
    // Of a list whose type is not known, upstream charges nothing for what is in it.
    fuel::spend(16 * keys.len() as u64);
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.iter().zip(list.iter()).collect();
    if let Some((first, _)) = pairs.first() {
        if compare(first, first).is_none() && !matches!(first, Value::Double(_)) {
            return Err(Error::other("list elements must be comparable"));
        }
        if pairs.iter().any(|it| std::mem::discriminant(&it.0) != std::mem::discriminant(first)) {
            return Err(Error::other("list elements must have the same type"));
        }
    }
    // Each is compared about so often, with texts that may be the same for long; amid sorting it is too late to stop.
    let bytes = pairs.iter().fold(0_usize, |sum, it| sum.saturating_add(text_bytes(&it.0)));
    if !fuel::spend_read(bytes.saturating_mul(pairs.len().checked_ilog2().unwrap_or(0) as usize + 1)) {
        return Err(Error::interrupted());
    }
    pairs.sort_by(|a, b| compare(&a.0, &b.0).unwrap_or(Ordering::Equal));
    Ok(pairs.into_iter().map(|it| it.1).collect::<Vec<_>>().into())
}

fn text_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

fn range<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::Int(n) = args[0] else { return Err(Error::no_such_overload()) };
    if n < 0 {
        return Err(Error::other(format!("lists.range: size must be non-negative, got {n}")));
    }
    if n > RANGE_MAX {
        return Err(Error::other(format!("lists.range: size {n} exceeds maximum allowed ({RANGE_MAX})")));
    }
    Ok((0..n).map(Value::Int).collect::<Vec<_>>().into())
}

fn reverse<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let mut items: Vec<_> = list(&args[0])?.iter().collect();
    items.reverse();
    Ok(items.into())
}

fn distinct<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let mut items: Vec<Value<'a>> = Vec::new();
    for it in list(&args[0])?.iter() {
        if !items.contains(&it) {
            items.push(it);
        }
    }
    Ok(items.into())
}

fn insert<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::Map(Map::Made(into)) = &args[0] else { return Err(Error::no_such_overload()) };
    let mut entries = (**into).clone();
    insert_into(&mut entries, &args[1..])?;
    Ok(entries.into())
}

/// Inserts a key and its value, or all of a map.
///
/// # Errors
/// If the key is there already, or is none.
pub(crate) fn insert_into<'a>(entries: &mut Entries<'a>, args: &[Value<'a>]) -> Result<(), Box<Error>> {
    let mut insert = |key: Key<'a>, value: Value<'a>| {
        if entries.by_key.contains_key(&key) {
            return Err(Error::other(format!("insert failed: key {key} already exists")));
        }
        entries.by_key.insert(key, value);
        Ok(())
    };
    match args {
        [key, value] => insert(Key::of(key.clone()).ok_or_else(Error::no_such_overload)?, value.clone()),
        [Value::Map(map)] => map.keys().into_iter().try_for_each(|key| match map.get(&key) {
            Some(value) => insert(key, value),
            None => Ok(()),
        }),
        _ => Err(Error::no_such_overload()),
    }
}
