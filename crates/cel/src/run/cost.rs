//! What a call costs when it runs, by what it was given: decided once for each call of a program.

use crate::{
    budget::{AUTHORIZER_CHECK, LIST, REGEX, STRUCT, TRAVERSAL, times},
    functions::Overload,
    value::{List, Map, Opaque, Value},
};

/// How a call is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    One,
    Check,
    Selector,
    /// All that is in the first argument is read once.
    Walk,
    /// The first argument is read so many times.
    Read(u8),
    /// The result is written.
    Written,
    Regex,
    Contains,
    ContainsIp {
        is_text: bool,
    },
    ContainsCidr {
        is_text: bool,
    },
    Validate,
    /// The second argument is looked through.
    In,
    /// As long as the shorter one.
    Shorter,
    Both,
    ListOfResult,
    Flatten,
    /// Everything with everything, in the list at this place.
    SelfCompare(u8),
    Sets(u8),
    Equal,
}

impl Rule {
    /// Where several overloads may be meant, upstream knows the function's name alone.
    pub(super) fn of(function: &str, overload: Option<&Overload>) -> Self {
        let id = overload.map_or("", |it| it.id);
        if let Some(rule) = Self::of_overload(id) {
            return rule;
        }
        match function {
            "check" => Self::Check,
            "fieldSelector" | "labelSelector" => Self::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Self::Walk,
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => Self::Read(1),
            "replace" | "split" | "ip.isCanonical" => Self::Read(2),
            "join" => Self::Written,
            "find" | "findAll" => Self::Regex,
            "ip" if id != "cidr_ip" => Self::Read(1),
            "containsIP" => Self::ContainsIp { is_text: id == "cidr_contains_ip_string" },
            "containsCIDR" => Self::ContainsCidr { is_text: id == "cidr_contains_cidr_string" },
            "validate" => Self::Validate,
            "_==_" | "_!=_" => Self::Equal,
            _ => Self::of_language(id),
        }
    }

    fn of_overload(id: &str) -> Option<Self> {
        Some(match id {
            "list_slice" | "lists_range" | "list_reverse" => Self::ListOfResult,
            "list_flatten" | "list_flatten_int" => Self::Flatten,
            "list_distinct" => Self::SelfCompare(0),
            "list_sets_contains_list" | "list_sets_intersects_list" => Self::Sets(1),
            "list_sets_equivalent_list" => Self::Sets(2),
            _ if id.starts_with("list_") && id.ends_with("_sort") => Self::SelfCompare(0),
            _ if id.ends_with("_sortByAssociatedKeys") => Self::SelfCompare(1),
            _ => return None,
        })
    }

    fn of_language(id: &str) -> Self {
        match id {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string" | "string_format"
            | "strings_quote" => Self::Read(1),
            "in_list" => Self::In,
            "add_string" | "add_bytes" => Self::Both,
            "matches_string" => Self::Regex,
            "contains_string" => Self::Contains,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => Self::Shorter,
            _ => Self::One,
        }
    }

    pub(super) fn charge(self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let size = |at: usize| args.get(at).map_or(0, Value::size);
        let read = |units: u64, n: u8| times(units, f64::from(n) * TRAVERSAL);
        match self {
            Self::One => 1,
            Self::Check => AUTHORIZER_CHECK,
            Self::Selector => {
                #[expect(clippy::cast_precision_loss, reason = "a small constant")]
                let each = (LIST + STRUCT) as f64;
                LIST + read(size(1), 1) + times(times(size(1), 0.5), each)
            }
            Self::Walk => args.first().map_or(0, |it| walk(it, 0)),
            Self::Read(n) => read(size(0), n),
            Self::Written => read(result.map_or(0, Value::size), 2),
            Self::Regex => read(size(0).saturating_add(1), 1).saturating_mul(times(size(1), REGEX)),
            Self::Contains => read(size(0), 1).saturating_mul(read(size(1), 1)),
            Self::ContainsIp { is_text } => read(2 * size(0), 1) + if is_text { read(size(1), 1) } else { 0 },
            Self::ContainsCidr { is_text } => {
                read(2 * size(0), 1) + read(size(0), 1) + 1 + if is_text { read(size(1), 1) } else { 0 }
            }
            Self::Validate => {
                let pattern = match args.first() {
                    Some(Value::Opaque(it)) => match &**it {
                        Opaque::Format(it) => it.pattern_chars,
                        _ => 1,
                    },
                    _ => 1,
                };
                read(size(1).saturating_add(1), 1).saturating_mul(times(pattern, REGEX))
            }
            Self::In => size(1),
            Self::Shorter => read(size(0).min(size(1)), 1),
            Self::Equal if matches!(args.first(), Some(Value::Opaque(_))) => 1,
            Self::Equal => read(size(0).min(size(1)), 1),
            Self::Both => read(size(0).saturating_add(size(1)), 1),
            Self::ListOfResult => result.map_or(0, Value::size) + 1 + LIST,
            Self::Flatten => {
                let depth = match args.get(1) {
                    Some(Value::Int(depth)) => u64::try_from(*depth).unwrap_or(0),
                    _ => 1,
                };
                size(0).saturating_mul(depth).saturating_add(1 + LIST)
            }
            Self::SelfCompare(at) => {
                let list = args.get(usize::from(at));
                let first = match list {
                    Some(Value::List(list)) => list.get(0),
                    _ => None,
                };
                let factor =
                    if matches!(first, Some(Value::String(_) | Value::Bytes(_))) { 2.0 + TRAVERSAL } else { 2.0 };
                let n = list.map_or(0, Value::size);
                floor(n.saturating_mul(n), factor).saturating_add(1 + LIST)
            }
            Self::Sets(n) => size(0).saturating_mul(size(1)).saturating_mul(u64::from(n)).saturating_add(1),
        }
    }
}

/// Rounded down, as in Kubernetes's `CallCost`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "upstream reckons in floats; a float that does not fit saturates"
)]
fn floor(size: u64, factor: f64) -> u64 {
    (size as f64 * factor) as u64
}

/// So deep a walk goes; nothing that JSON brings is deeper.
const WALK_DEPTH_MAX: u8 = 200;

/// All that is in a value, read once. What is shared is read each time, so the walk may run out of fuel.
fn walk(value: &Value<'_>, depth: u8) -> u64 {
    if depth > WALK_DEPTH_MAX || !crate::fuel::spend(1) {
        return 1;
    }
    let list = |it: &List<'_>| it.iter().fold(0_u64, |sum, it| sum.saturating_add(walk(&it, depth + 1)));
    match value {
        Value::String(text) => floor(text.len() as u64, TRAVERSAL),
        Value::Bytes(bytes) => floor(bytes.len() as u64, TRAVERSAL),
        Value::List(items) => list(items),
        Value::Map(map) => walk_map(map, depth),
        _ => 1,
    }
}

fn walk_map(map: &Map<'_>, depth: u8) -> u64 {
    map.keys().into_iter().fold(0_u64, |sum, key| {
        let value = map.get(&key).map_or(0, |it| walk(&it, depth + 1));
        sum.saturating_add(value).saturating_add(walk(&key.into_value(), depth + 1))
    })
}

#[cfg(test)]
mod tests;
