//! One step of a path as field sets write it: `f:spec`, `k:{"name":"web"}`, `v:"a"`, `i:0`.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::Value;

use super::form::{Form, below};
use crate::{
    Default, Shape,
    described::{Described, FieldType, Keys, Made},
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element<'a> {
    Field(Cow<'a, str>),
    /// An element of a keyed list: its keys, sorted by name.
    Key(Vec<(Cow<'a, str>, Scalar<'a>)>),
    /// An element of a set.
    Value(Scalar<'a>),
    Index(i64),
}

/// In the order of upstream's values: numbers by what they count, then text, truth, nothing.
#[derive(Clone, Debug)]
pub(super) enum Scalar<'a> {
    Float(f64),
    Int(i64),
    Text(Cow<'a, str>),
    Bool(bool),
    Null,
}

impl<'a> Element<'a> {
    pub(super) fn field(name: &'a str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    /// Names an element of a keyed list or a set.
    ///
    /// # Errors
    /// Where the element lacks its keys, or is of no kind that a set may hold; in upstream's words.
    pub(super) fn of_item(form: Form<'a>, item: &'a Value) -> Result<Self, String> {
        match form {
            Form::Keyed(of, keys) => keyed(of, keys, item),
            _ => match item {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
                other => Ok(Self::Value(Scalar::of(other))),
            },
        }
    }

    /// Reads `f:spec`; `None` for a kind of element that a newer version may know.
    ///
    /// # Errors
    /// Where it is malformed.
    pub(super) fn read(text: Cow<'a, str>) -> Result<Option<Self>, String> {
        let malformed = || format!("cannot read the path element {text:?}");
        let (kind, rest) = text.split_once(':').ok_or_else(malformed)?;
        Ok(Some(match kind {
            "f" => Self::Field(match &text {
                Cow::Borrowed(text) => Cow::Borrowed(&text[2..]),
                Cow::Owned(_) => Cow::Owned(rest.to_owned()),
            }),
            "k" => {
                let keys: serde_json::Map<String, Value> = serde_json::from_str(rest).map_err(|_| malformed())?;
                let mut keys: Vec<_> =
                    keys.into_iter().map(|(name, value)| (Cow::Owned(name), Scalar::owned(value))).collect();
                keys.sort();
                Self::Key(keys)
            }
            "v" => Self::Value(Scalar::owned(serde_json::from_str(rest).map_err(|_| malformed())?)),
            "i" => Self::Index(rest.parse().map_err(|_| malformed())?),
            _ => return Ok(None),
        }))
    }

    /// Writes `"f:spec"`, quotes included.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => quoted(out, "f:", name),
            Self::Key(keys) => {
                let mut text = String::from("{");
                for (at, (name, value)) in keys.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    quoted(&mut text, "", name);
                    text.push(':');
                    value.write(&mut text);
                }
                text.push('}');
                quoted(out, "k:", &text);
            }
            Self::Value(value) => {
                let mut text = String::new();
                value.write(&mut text);
                quoted(out, "v:", &text);
            }
            Self::Index(at) => quoted(out, "i:", &at.to_string()),
        }
    }
}

/// An element without some of its keys is known by the others; what has a default counts as it.
fn keyed<'a>(of: Described<'a>, keys: Keys<'a>, item: &'a Value) -> Result<Element<'a>, String> {
    let entries = match item {
        Value::Object(entries) => entries,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut found = Vec::new();
    for key in keys.iter() {
        let value = entries.get(key).map(Scalar::of).or_else(|| default_of(of, key));
        if let Some(value) = value {
            found.push((Cow::Borrowed(key), value));
        }
    }
    if found.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits all key fields {:?} (and doesn't have default values for any key fields)",
            keys.iter().collect::<Vec<_>>()
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Element::Key(found))
}

fn default_of<'a>(of: Described<'a>, key: &str) -> Option<Scalar<'a>> {
    let Made::Struct(of) = of.made() else { return None };
    let field = match of.field(key)? {
        FieldType::Table(field) => field,
        FieldType::Custom(of) => return of.default_value().map(Scalar::of),
        FieldType::Text | FieldType::ObjectMeta(_) => return None,
    };
    match (field.default, field.shape) {
        (Default::Text(text), _) => Some(Scalar::Text(Cow::Borrowed(text))),
        (Default::Zero, Shape::Int32 | Shape::Int64 | Shape::Number) => Some(Scalar::Int(0)),
        (Default::Zero, Shape::Boolean) => Some(Scalar::Bool(false)),
        (Default::Zero, _) => Some(Scalar::Text(Cow::Borrowed(""))),
        (Default::None, _) => None,
    }
}

impl<'a> Scalar<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            other => Self::owned(other.clone()),
        }
    }

    /// Lists and maps have no place in a key; as their text they at least stay different.
    fn owned(value: Value) -> Scalar<'static> {
        match value {
            Value::Null => Scalar::Null,
            Value::Bool(it) => Scalar::Bool(it),
            Value::String(text) => Scalar::Text(Cow::Owned(text)),
            Value::Number(number) => {
                number.as_i64().map_or_else(|| Scalar::Float(number.as_f64().unwrap_or_default()), Scalar::Int)
            }
            other => Scalar::Text(Cow::Owned(other.to_string())),
        }
    }

    pub(super) fn into_owned(self) -> Scalar<'static> {
        match self {
            Self::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
            Self::Float(it) => Scalar::Float(it),
            Self::Int(it) => Scalar::Int(it),
            Self::Bool(it) => Scalar::Bool(it),
            Self::Null => Scalar::Null,
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => quoted(out, "", text),
            other => out.push_str(&other.to_string()),
        }
    }
}

impl Ord for Scalar<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        #[expect(
            clippy::cast_precision_loss,
            reason = "whole numbers and fractions compare as fractions (structured-merge-diff's `value.Compare`)"
        )]
        let float = |it: &Self| match it {
            Self::Float(it) => Some(*it),
            Self::Int(it) => Some(*it as f64),
            _ => None,
        };
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (a, b) => match (float(a), float(b)) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => a.rank().cmp(&b.rank()),
            },
        }
    }
}

impl Scalar<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Float(_) => 0,
            Self::Int(_) => 1,
            Self::Text(_) => 2,
            Self::Bool(_) => 3,
            Self::Null => 4,
        }
    }
}

impl PartialOrd for Scalar<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar<'_> {}

/// As messages show it: text quoted.
impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(it) => write!(f, "{it}"),
            Self::Int(it) => write!(f, "{it}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bool(it) => write!(f, "{it}"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// As messages show it: `.spec`, `[name="web"]`, `[="a"]`, `[0]`.
impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (at, (name, value)) in keys.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

/// Text as JSON; nearly all of it needs no escape.
fn quoted(out: &mut String, prefix: &str, text: &str) {
    out.push('"');
    out.push_str(prefix);
    if text.bytes().all(|it| it >= 0x20 && it != b'"' && it != b'\\') {
        out.push_str(text);
    } else {
        let escaped = serde_json::to_string(text).expect("text is JSON");
        out.push_str(&escaped[1..escaped.len() - 1]);
    }
    out.push('"');
}

/// A key of an object as it stands in the input, copied only where it has escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

/// The form of what an element of this form's value is.
pub(super) fn form_below<'t>(form: Form<'t>, element: &Element<'_>) -> Form<'t> {
    match (form, element) {
        (Form::Struct(of), Element::Field(name)) => super::form::of_named(of, name),
        (Form::Map(of), Element::Field(_)) | (Form::Keyed(of, _), Element::Key(_)) => below(of),
        _ => Form::Leaf,
    }
}
