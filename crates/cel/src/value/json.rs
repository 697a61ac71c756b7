//! JSON as values, under the types a schema declares; and values as JSON.

use std::cell::Cell;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Number, Value as Json};

use super::{Items, List, Map, Opaque, Text, Value, text_of};
use crate::{
    declared::{DeclType, Shape},
    timestamp::{duration, timestamp},
};

/// So many values are written: what is shared is written each time it is met.
const JSON_NODES_MAX: u32 = 1 << 20;

impl<'a> Value<'a> {
    /// JSON that nothing declares: whole numbers are ints, others doubles.
    pub fn from_json(json: &'a Json) -> Self {
        Self::wrap(json, None)
    }

    /// JSON as a schema declares it.
    pub fn declared(json: &'a Json, declared: &'a DeclType) -> Self {
        Self::wrap(json, Some(declared))
    }

    pub(crate) fn wrap(json: &'a Json, declared: Option<&'a DeclType>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(it) => Self::Bool(*it),
            Json::Number(it) => number(it, declared),
            Json::String(text) => string(text, declared),
            Json::Array(items) => {
                let declared = declared.filter(|it| matches!(it.shape, Shape::List(..)));
                Self::List(List { items: Items::Json(items), declared })
            }
            Json::Object(entries) => {
                let declared = declared.filter(|it| matches!(it.shape, Shape::Map(_) | Shape::Object(_)));
                Self::Map(Map::Json(entries, declared))
            }
        }
    }

    /// As JSON; `None` for what has no form there, or is too large.
    pub fn to_json(&self) -> Option<Json> {
        self.to_json_within(&Cell::new(JSON_NODES_MAX))
    }

    fn to_json_within(&self, left: &Cell<u32>) -> Option<Json> {
        left.set(left.get().checked_sub(1)?);
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(it) => Json::Bool(*it),
            Self::Int(it) => Json::from(*it),
            Self::Uint(it) => Json::from(*it),
            Self::Double(it) => Json::Number(Number::from_f64(*it)?),
            Self::String(it) => Json::from(&**it),
            Self::Bytes(it) => Json::from(STANDARD.encode(it)),
            Self::List(list) => match &list.items {
                Items::Json(items) => Json::from(items.to_vec()),
                _ => Json::Array(list.iter().map(|it| it.to_json_within(left)).collect::<Option<_>>()?),
            },
            Self::Map(Map::Json(entries, _)) => Json::Object((*entries).clone()),
            Self::Map(Map::Made(entries)) => {
                let entries =
                    entries.by_key.iter().map(|(key, value)| Some((key.to_string(), value.to_json_within(left)?)));
                Json::Object(entries.collect::<Option<_>>()?)
            }
            Self::Map(Map::Composed) | Self::Type(_) | Self::Optional(None) => return None,
            Self::Optional(Some(it)) => return it.to_json_within(left),
            Self::Duration(_) | Self::Timestamp(_) => Json::from(text_of(self)?),
            Self::Opaque(it) => match &**it {
                Opaque::Quantity(_) | Opaque::Url(_) | Opaque::Semver(_) | Opaque::Ip(_) | Opaque::Cidr(_) => {
                    Json::from(it.to_string())
                }
                Opaque::Format(_) | Opaque::Authorizing(_) => return None,
            },
        })
    }
}

impl std::fmt::Display for Opaque<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quantity(it) => write!(f, "{it}"),
            Self::Url(it) => write!(f, "{it}"),
            Self::Format(it) => f.write_str(it.name),
            Self::Semver(it) => write!(f, "{it}"),
            Self::Ip(it) => write!(f, "{it}"),
            Self::Cidr(it) => write!(f, "{it}"),
            Self::Authorizing(it) => f.write_str(it.type_name()),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only what is whole and in range is converted")]
fn number<'a>(number: &Number, declared: Option<&DeclType>) -> Value<'a> {
    let double = || Value::Double(number.as_f64().unwrap_or(f64::NAN));
    match (declared.map(|it| &it.shape), number.as_i64()) {
        (Some(Shape::Double), _) => double(),
        (_, Some(it)) => Value::Int(it),
        (Some(Shape::Int), None) => match number.as_f64() {
            Some(it) if it.fract() == 0.0 && it.abs() < 9.2e18 => Value::Int(it as i64),
            _ => double(),
        },
        (_, None) => double(),
    }
}

/// A text that is not what its format says stays one: that it is wrong is for the schema to say.
fn string<'a>(text: &'a str, declared: Option<&DeclType>) -> Value<'a> {
    let plain = Value::String(Text::Borrowed(text));
    match declared.map(|it| &it.shape) {
        Some(Shape::Bytes) => STANDARD.decode(text).map_or(plain, |it| Value::Bytes(it.into())),
        Some(Shape::Duration) => duration(text).map_or(plain, Value::Duration),
        Some(Shape::Timestamp) => timestamp(text).map_or(plain, Value::Timestamp),
        Some(Shape::Date) => timestamp(&format!("{text}T00:00:00Z")).map_or(plain, Value::Timestamp),
        _ => plain,
    }
}
