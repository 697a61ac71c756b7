//! JSON as values, under the types a schema declares; and values as JSON.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Number, Value as Json};

use super::{Items, List, Map, Opaque, Text, Value, text_of};
use crate::{
    declared::{DeclType, Shape},
    timestamp::{duration, timestamp},
};

/// What one value may become: what is shared is written each time it is met.
const JSON_NODES_MAX: usize = 1 << 20;
const JSON_BYTES_MAX: usize = 16 << 20;

/// How much more may be written.
struct OutputBudget {
    nodes: usize,
    bytes: usize,
}

impl OutputBudget {
    fn take_node(&mut self) -> Option<()> {
        self.nodes = self.nodes.checked_sub(1)?;
        Some(())
    }

    fn take_text(&mut self, text: &str) -> Option<()> {
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(())
    }

    /// A text, if there is room for it.
    fn text(&mut self, text: String) -> Option<Json> {
        self.take_text(&text)?;
        Some(Json::from(text))
    }

    /// A copy of JSON, if there is room for it.
    fn copy(&mut self, json: &Json) -> Option<Json> {
        self.take_all(json)?;
        Some(json.clone())
    }

    fn take_all(&mut self, json: &Json) -> Option<()> {
        self.take_node()?;
        match json {
            Json::String(text) => self.take_text(text),
            Json::Array(items) => items.iter().try_for_each(|it| self.take_all(it)),
            Json::Object(entries) => entries.iter().try_for_each(|(key, value)| {
                self.take_text(key)?;
                self.take_all(value)
            }),
            _ => Some(()),
        }
    }
}

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
        self.to_json_within(&mut OutputBudget { nodes: JSON_NODES_MAX, bytes: JSON_BYTES_MAX })
    }

    fn to_json_within(&self, room: &mut OutputBudget) -> Option<Json> {
        room.take_node()?;
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(it) => Json::Bool(*it),
            Self::Int(it) => Json::from(*it),
            Self::Uint(it) => Json::from(*it),
            Self::Double(it) => Json::Number(Number::from_f64(*it)?),
            Self::String(it) => room.text(it.to_string())?,
            Self::Bytes(it) => room.text(STANDARD.encode(it))?,
            Self::List(list) => {
                let items = match &list.items {
                    Items::Json(items) => items.iter().map(|it| room.copy(it)).collect::<Option<_>>(),
                    _ => list.iter().map(|it| it.to_json_within(room)).collect(),
                };
                Json::Array(items?)
            }
            Self::Map(map) => Json::Object(map.to_json_within(room)?),
            Self::Type(_) | Self::Optional(None) => return None,
            Self::Optional(Some(it)) => it.to_json_within(room)?,
            Self::Duration(_) | Self::Timestamp(_) => room.text(text_of(self)?)?,
            Self::Opaque(it) => match &**it {
                Opaque::Quantity(_) | Opaque::Url(_) | Opaque::Semver(_) | Opaque::Ip(_) | Opaque::Cidr(_) => {
                    room.text(it.to_string())?
                }
                Opaque::Format(_) | Opaque::Authorizing(_) => return None,
            },
        })
    }
}

impl Map<'_> {
    fn to_json_within(&self, room: &mut OutputBudget) -> Option<serde_json::Map<String, Json>> {
        let entry = |room: &mut OutputBudget, key: String, value: Option<Json>| {
            room.take_text(&key)?;
            Some((key, value?))
        };
        match self {
            Map::Json(entries, _) => entries
                .iter()
                .map(|(key, value)| {
                    let value = room.copy(value);
                    entry(room, key.clone(), value)
                })
                .collect(),
            Map::Made(entries) => entries
                .by_key
                .iter()
                .map(|(key, value)| {
                    let value = value.to_json_within(room);
                    entry(room, key.to_string(), value)
                })
                .collect(),
            Map::Composed => None,
        }
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
