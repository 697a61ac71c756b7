//! Types that a schema declares, with how large their values may be: apiserver's `DeclType`.
//!
//! A tree of them is the type of a variable, and the estimate reads sizes from it.

mod cel_type;
mod schema;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

pub use cel_type::Type;
use serde_json::Value as Json;

use crate::budget::REQUEST_BYTES_MAX;

/// A declared type: what it is, and what is known of its size.
#[derive(Clone, Debug)]
pub struct DeclType {
    pub shape: Shape,
    /// Characters of a text, bytes, items of a list, entries of a map: so many at most.
    pub max_elements: u64,
    /// What the smallest value takes in JSON: it bounds how many of them a list of unknown length may have.
    pub min_bytes: u64,
}

#[derive(Clone, Debug)]
pub enum Shape {
    Dyn,
    Null,
    Bool,
    Int,
    Double,
    String,
    /// A text in base64.
    Bytes,
    /// A text as Go writes durations.
    Duration,
    /// A text: a date with time.
    Timestamp,
    /// A text: a date alone.
    Date,
    List(Arc<DeclType>, ListKind),
    /// Its keys are texts.
    Map(Arc<DeclType>),
    Object(Arc<ObjectDecl>),
    Optional(Arc<DeclType>),
    /// What no schema declares, such as the authorizer.
    Other(Type),
}

/// `x-kubernetes-list-type`: how items are told apart, when lists are equal, and what their sum is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    #[default]
    Atomic,
    Set,
    /// Items have these keys.
    Map(Vec<String>),
}

impl ListKind {
    pub const ATOMIC: &str = "atomic";
    pub const MAP: &str = "map";
    pub const SET: &str = "set";
    /// All that a schema may say, as refusals name it.
    pub const NAMES: [&str; 3] = [Self::ATOMIC, Self::MAP, Self::SET];

    /// What the schema of a list says. What says nothing that is known is atomic: the definition's own check has refused it.
    pub fn of_schema(schema: &Json) -> Self {
        match schema["x-kubernetes-list-type"].as_str() {
            Some(Self::SET) => Self::Set,
            Some(Self::MAP) => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array();
                Self::Map(keys.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect())
            }
            _ => Self::Atomic,
        }
    }
}

/// An object with declared fields.
#[derive(Clone, Debug)]
pub struct ObjectDecl {
    pub name: Arc<str>,
    /// By the name that expressions have for it: see [`crate::escape`].
    pub fields: BTreeMap<String, Field>,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name in the object.
    pub property: String,
    pub of: DeclType,
    pub is_required: bool,
}

/// The name of an object that has none yet.
pub(crate) const UNNAMED: &str = "object";
/// Upstream reckons with no elements in what is no text, list or map.
const NONE: u64 = 0;
/// Quotes.
const MIN_STRING: u64 = 2;
/// A character of a text may take so many bytes.
const CHAR_BYTES_MAX: u64 = 4;

/// The keys of every map. Upstream reckons with no size of theirs.
pub(crate) static KEY: LazyLock<DeclType> = LazyLock::new(|| DeclType::new(Shape::String, NONE, MIN_STRING));

impl DeclType {
    pub const fn new(shape: Shape, max_elements: u64, min_bytes: u64) -> Self {
        Self { shape, max_elements, min_bytes }
    }

    pub const DYN: Self = Self::new(Shape::Dyn, NONE, 1);
    pub const NULL: Self = Self::new(Shape::Null, NONE, 4);
    pub const BOOL: Self = Self::new(Shape::Bool, NONE, 4);
    pub const INT: Self = Self::new(Shape::Int, NONE, 1);
    pub const DOUBLE: Self = Self::new(Shape::Double, NONE, 1);
    pub const DURATION: Self = Self::new(Shape::Duration, 32, 4);
    pub const TIMESTAMP: Self = Self::new(Shape::Timestamp, 37, 21);
    pub const DATE: Self = Self::new(Shape::Date, 12, 12);

    /// `x-kubernetes-int-or-string`: known when it runs. Its text has so many characters at most.
    pub fn int_or_string(max_length: Option<u64>) -> Self {
        Self { shape: Shape::Dyn, min_bytes: 1, ..Self::string(max_length) }
    }

    /// A text of so many characters at most.
    pub fn string(max_length: Option<u64>) -> Self {
        let max = max_length.map_or(REQUEST_BYTES_MAX - MIN_STRING, |it| it.saturating_mul(CHAR_BYTES_MAX));
        Self::new(Shape::String, max, MIN_STRING)
    }

    /// Of what is sent in base64, so many characters at most.
    pub fn bytes(max_length: Option<u64>) -> Self {
        Self::new(Shape::Bytes, max_length.unwrap_or(REQUEST_BYTES_MAX - MIN_STRING), MIN_STRING)
    }

    /// One of these texts: the longest bounds it.
    pub fn one_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let longest = texts.into_iter().map(str::len).max().unwrap_or(0);
        Self::new(Shape::String, longest as u64, MIN_STRING)
    }

    /// A list of so many items at most; without a bound, as many as fit into a request.
    pub fn list(of: Self, max_items: Option<u64>, kind: ListKind) -> Self {
        let max = max_items.unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (of.min_bytes + 1));
        Self::new(Shape::List(Arc::new(of), kind), max, 2)
    }

    /// A map of so many entries at most; without a bound, as many as fit into a request.
    pub fn map(of: Self, max_properties: Option<u64>) -> Self {
        // Quotes of a key, a colon, a comma.
        let max = max_properties.unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (of.min_bytes + 6));
        Self::new(Shape::Map(Arc::new(of)), max, 2)
    }

    /// An object; `fields` by the names of their properties, with their types, and whether they are required and have no
    /// default. What no expression can name is left out.
    pub fn object<'n>(name: &str, fields: impl IntoIterator<Item = (&'n str, Self, bool)>) -> Self {
        let mut min_bytes = 2;
        let mut named = BTreeMap::new();
        for (property, of, is_required) in fields {
            if is_required {
                min_bytes += property.len() as u64 + of.min_bytes + 4;
            }
            if let Some(escaped) = crate::escape(property) {
                named.insert(escaped, Field { property: property.to_owned(), of, is_required });
            }
        }
        Self::new(Shape::Object(Arc::new(ObjectDecl { name: name.into(), fields: named })), NONE, min_bytes)
    }

    /// Gives every object a name: this one's, and those of what is below by the way that leads there.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        let shape = match self.shape {
            Shape::Object(object) => {
                let name = if &*object.name == UNNAMED { name } else { &object.name };
                let fields = object.fields.iter().map(|(key, field)| {
                    let of = field.of.clone().named(&format!("{name}.{key}"));
                    (key.clone(), Field { of, ..field.clone() })
                });
                Shape::Object(Arc::new(ObjectDecl { name: name.into(), fields: fields.collect() }))
            }
            Shape::List(of, kind) => Shape::List(Arc::new((*of).clone().named(&format!("{name}.@idx"))), kind),
            Shape::Map(of) => Shape::Map(Arc::new((*of).clone().named(&format!("{name}.@elem")))),
            Shape::Optional(of) => Shape::Optional(Arc::new((*of).clone().named(name))),
            other => other,
        };
        Self { shape, ..self }
    }

    pub fn optional(of: Self) -> Self {
        let (max, min) = (of.max_elements, of.min_bytes);
        Self::new(Shape::Optional(Arc::new(of)), max, min)
    }

    /// A type without a schema.
    pub const fn of(of: Type) -> Self {
        Self::new(Shape::Other(of), NONE, 0)
    }

    /// The type that the check knows.
    pub fn cel_type(&self) -> Type {
        match &self.shape {
            Shape::Dyn => Type::Dyn,
            Shape::Null => Type::Null,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::Double => Type::Double,
            Shape::String => Type::String,
            Shape::Bytes => Type::Bytes,
            Shape::Duration => Type::Duration,
            Shape::Timestamp | Shape::Date => Type::Timestamp,
            Shape::List(of, _) => Type::list(of.cel_type()),
            Shape::Map(of) => Type::map(Type::String, of.cel_type()),
            Shape::Object(object) => Type::Object(object.clone()),
            Shape::Optional(of) => Type::optional(of.cel_type()),
            Shape::Other(of) => of.clone(),
        }
    }

    pub(crate) fn object_decl(&self) -> Option<&Arc<ObjectDecl>> {
        match &self.shape {
            Shape::Object(object) => Some(object),
            Shape::Optional(of) => of.object_decl(),
            _ => None,
        }
    }

    /// What its items are, or the values of its entries.
    pub(crate) fn inner(&self) -> Option<&Self> {
        match &self.shape {
            Shape::List(of, _) | Shape::Map(of) => Some(of),
            _ => None,
        }
    }
}
