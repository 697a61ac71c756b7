//! When two values are the same: values of different types are not, except numbers.

use super::{Items, List, Map, Opaque, Value, compare};
use crate::{
    declared::{ListKind, Shape},
    fuel,
};

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        // What is shared is compared each time it is met, and may be met exponentially often.
        if !fuel::spend(1) {
            return false;
        }
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) | (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::String(a), Self::String(b)) | (Self::Type(a), Self::Type(b)) => {
                a.len() == b.len() && fuel::spend_read(a.len()) && **a == **b
            }
            (Self::Bytes(a), Self::Bytes(b)) => a.len() == b.len() && fuel::spend_read(a.len()) && a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::List(a), Self::List(b)) => lists(a, b),
            (Self::Map(a), Self::Map(b)) => maps(a, b),
            (Self::Optional(a), Self::Optional(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => opaque(a, b),
            (Self::Int(_) | Self::Uint(_) | Self::Double(_), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                compare(self, other) == Some(std::cmp::Ordering::Equal)
            }
            _ => false,
        }
    }
}

fn lists(a: &List<'_>, b: &List<'_>) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let kind = [a, b].into_iter().find_map(|it| match &it.declared?.shape {
        Shape::List(_, kind) => Some(kind),
        _ => None,
    });
    match kind {
        // The order of a set says nothing.
        Some(ListKind::Set) => {
            let (a, b): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
            a.iter().all(|it| b.contains(it)) && b.iter().all(|it| a.contains(it))
        }
        Some(ListKind::Map(keys)) => {
            let b: Vec<_> = b.iter().collect();
            a.iter().all(|it| b.iter().any(|other| same_keys(keys, &it, other) && it == *other))
        }
        _ => match (&a.items, &b.items) {
            (Items::Made(a), Items::Made(b)) => a == b,
            _ => a.iter().zip(b.iter()).all(|(a, b)| a == b),
        },
    }
}

/// Do both items of an associative list have the same keys?
fn same_keys(keys: &[String], a: &Value<'_>, b: &Value<'_>) -> bool {
    let (Value::Map(a), Value::Map(b)) = (a, b) else { return false };
    keys.iter().all(|it| {
        let escaped = crate::escape(it);
        let name = escaped.as_deref().unwrap_or(it);
        a.field(name) == b.field(name)
    })
}

fn maps(a: &Map<'_>, b: &Map<'_>) -> bool {
    let name = |it: &Map<'_>| match it {
        Map::Made(entries) => entries.of.clone(),
        _ => None,
    };
    a.len() == b.len() && name(a) == name(b) && a.keys().iter().all(|it| a.get(it).is_some() && a.get(it) == b.get(it))
}

fn opaque(a: &Opaque<'_>, b: &Opaque<'_>) -> bool {
    match (a, b) {
        (Opaque::Quantity(a), Opaque::Quantity(b)) => a == b,
        (Opaque::Url(a), Opaque::Url(b)) => a == b,
        (Opaque::Format(a), Opaque::Format(b)) => a.name == b.name,
        (Opaque::Semver(a), Opaque::Semver(b)) => a == b,
        (Opaque::Ip(a), Opaque::Ip(b)) => a == b,
        (Opaque::Cidr(a), Opaque::Cidr(b)) => a == b,
        (Opaque::Authorizing(a), Opaque::Authorizing(b)) => a.is_same(b),
        _ => false,
    }
}
