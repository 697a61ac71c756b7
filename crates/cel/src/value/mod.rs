//! What an expression works on. JSON is wrapped and not copied: a value of it is made when it is looked at.

mod equal;
mod json;
mod key;
mod order;
mod text;

use std::{fmt, net::IpAddr, ops::Deref, sync::Arc};

use corten_meta::Quantity;
use serde_json::Value as Json;

pub use key::Key;
pub(crate) use order::compare;
pub(crate) use text::{double_text, text_of};

use crate::{
    declared::DeclType,
    opaque::{
        Authorizing, Cidr, Format, Semver, Url,
        authorizing::{Attributes, Authorizer, Stage},
    },
    timestamp::Timestamp,
};

/// A value. It borrows from the objects it was made of, and from the program.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    List(List<'a>),
    Map(Map<'a>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(Text<'a>),
    Optional(Option<Arc<Value<'a>>>),
    Opaque(Arc<Opaque<'a>>),
}

/// A text that is borrowed, or shared.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

/// A list and, where a schema declares it, what its items are and when it equals another.
#[derive(Clone, Debug)]
pub struct List<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) declared: Option<&'a DeclType>,
}

#[derive(Clone, Debug)]
pub(crate) enum Items<'a> {
    Json(&'a [Json]),
    Made(Arc<Vec<Value<'a>>>),
    /// The sum of two lists, which is not copied: a sum costs little, however long it is.
    Joined(Arc<(List<'a>, List<'a>, usize)>),
}

/// A map, or an object.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>, Option<&'a DeclType>),
    Made(Arc<Entries<'a>>),
    /// Named expressions, evaluated when they are asked for: see [`crate::Activation::composed`].
    Composed,
}

/// Entries that an expression made; of an object, its type, too.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    pub(crate) of: Option<Arc<str>>,
    pub(crate) by_key: std::collections::BTreeMap<Key<'a>, Value<'a>>,
    /// What each other key has, when it is asked for.
    pub(crate) missing: Option<Value<'a>>,
}

impl<'a> Entries<'a> {
    fn get(&self, key: &Key<'_>) -> Option<Value<'a>> {
        self.by_key.get(key).or(self.missing.as_ref()).cloned()
    }
}

/// What only functions look into.
#[derive(Clone, Debug)]
pub enum Opaque<'a> {
    Quantity(Quantity),
    Url(Url),
    Format(&'static Format),
    Semver(Semver),
    Ip(IpAddr),
    Cidr(Cidr),
    Authorizing(Box<Authorizing<'a>>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::String(Text::Shared(text.into()))
    }
}

impl From<bool> for Value<'_> {
    fn from(it: bool) -> Self {
        Self::Bool(it)
    }
}

impl From<i64> for Value<'_> {
    fn from(it: i64) -> Self {
        Self::Int(it)
    }
}

impl From<usize> for Value<'_> {
    fn from(it: usize) -> Self {
        Self::Int(i64::try_from(it).unwrap_or(i64::MAX))
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        Self::List(List { items: Items::Made(Arc::new(items)), declared: None })
    }
}

impl<'a> From<Opaque<'a>> for Value<'a> {
    fn from(it: Opaque<'a>) -> Self {
        Self::Opaque(Arc::new(it))
    }
}

impl<'a> From<Authorizing<'a>> for Opaque<'a> {
    fn from(it: Authorizing<'a>) -> Self {
        Self::Authorizing(Box::new(it))
    }
}

impl<'a> From<Entries<'a>> for Value<'a> {
    fn from(it: Entries<'a>) -> Self {
        Self::Map(Map::Made(Arc::new(it)))
    }
}

impl<'a> FromIterator<(Key<'a>, Value<'a>)> for Value<'a> {
    fn from_iter<T: IntoIterator<Item = (Key<'a>, Value<'a>)>>(entries: T) -> Self {
        Entries { by_key: entries.into_iter().collect(), ..Entries::default() }.into()
    }
}

impl<'a> Value<'a> {
    pub const NONE: Self = Self::Optional(None);

    /// `authorizer`.
    pub fn authorizer(by: &'a dyn Authorizer) -> Self {
        Opaque::from(Authorizing { by, asked: Attributes::default(), stage: Stage::Authorizer }).into()
    }

    /// `authorizer.requestResource`: a question about the resource of the request.
    pub fn resource_authorizer(by: &'a dyn Authorizer, asked: Attributes) -> Self {
        Opaque::from(Authorizing { by, asked, stage: Stage::Resource }).into()
    }

    pub fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of its type, as `type(value)` and complaints have it.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(Map::Json(_, Some(declared))) => declared.object_decl().map_or("map", |it| &it.name),
            Self::Map(Map::Made(entries)) => entries.of.as_deref().unwrap_or("map"),
            Self::Map(_) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Opaque(it) => it.type_name(),
        }
    }

    /// As `size()` and costs have it; one for what has none.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::String(text) => return chars(text),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Opaque(it) => match &**it {
                Opaque::Ip(IpAddr::V4(_)) => 4,
                Opaque::Ip(IpAddr::V6(_)) => 16,
                Opaque::Cidr(cidr) => usize::from(cidr.prefix.div_ceil(8)),
                _ => 1,
            },
            _ => 1,
        };
        size as u64
    }

    /// `optional.ofNonZeroValue`: is there anything in it?
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(it) => !it,
            Self::Int(it) | Self::Duration(it) => *it == 0,
            Self::Uint(it) => *it == 0,
            Self::Double(it) => *it == 0.0,
            Self::String(it) => it.is_empty(),
            Self::Bytes(it) => it.is_empty(),
            Self::List(it) => it.is_empty(),
            Self::Map(it) => it.is_empty(),
            Self::Optional(it) => it.is_none(),
            Self::Timestamp(_) | Self::Type(_) | Self::Opaque(_) => false,
        }
    }
}

/// A sum that is no longer is copied.
const COPIED_MAX: usize = 32;

/// Characters, quickly where all are ASCII.
pub(crate) fn chars(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}

impl Opaque<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Authorizing(it) => it.type_name(),
        }
    }
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Json(items) => items.len(),
            Items::Made(items) => items.len(),
            Items::Joined(both) => both.2,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, mut at: usize) -> Option<Value<'a>> {
        let mut list = self;
        loop {
            match &list.items {
                Items::Json(items) => {
                    return items.get(at).map(|it| Value::wrap(it, list.declared.and_then(DeclType::inner)));
                }
                Items::Made(items) => return items.get(at).cloned(),
                Items::Joined(both) if at < both.0.len() => list = &both.0,
                Items::Joined(both) => {
                    at -= both.0.len();
                    list = &both.1;
                }
            }
        }
    }

    /// This list and then the other.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        let len = self.len().saturating_add(other.len());
        if other.is_empty() {
            return self.clone();
        }
        let items = if len <= COPIED_MAX {
            Items::Made(Arc::new(self.iter().chain(other.iter()).collect()))
        } else {
            Items::Joined(Arc::new((self.clone(), other.clone(), len)))
        };
        Self { items, declared: None }
    }

    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).map_while(|it| self.get(it))
    }
}

impl<'a> Map<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Json(entries, Some(declared)) if declared.object_decl().is_some() => declared
                .object_decl()
                .map_or(0, |it| it.fields.values().filter(|it| entries.contains_key(&it.property)).count()),
            Self::Json(entries, _) => entries.len(),
            Self::Made(entries) => entries.by_key.len(),
            Self::Composed => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A field, or the value of a key that is a text.
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Json(entries, Some(declared)) => match declared.object_decl() {
                Some(object) => {
                    let field = object.fields.get(name)?;
                    entries.get(&field.property).map(|it| Value::wrap(it, Some(&field.of)))
                }
                None => entries.get(name).map(|it| Value::wrap(it, declared.inner())),
            },
            Self::Json(entries, None) => entries.get(name).map(|it| Value::wrap(it, None)),
            Self::Made(entries) => entries.get(&Key::String(Text::Borrowed(name))),
            Self::Composed => None,
        }
    }

    pub fn get(&self, key: &Key<'_>) -> Option<Value<'a>> {
        match (self, key) {
            (Self::Made(entries), _) => entries.get(key),
            (_, Key::String(text)) => self.field(text),
            _ => None,
        }
    }

    /// Is this one of its keys? One that has a value only when it is asked for is not.
    pub(crate) fn contains(&self, key: &Key<'_>) -> bool {
        match self {
            Self::Made(entries) => entries.by_key.contains_key(key),
            _ => self.get(key).is_some(),
        }
    }

    pub fn keys(&self) -> Vec<Key<'a>> {
        match self {
            Self::Json(entries, declared) => match declared.and_then(|it| it.object_decl()) {
                Some(object) => object
                    .fields
                    .iter()
                    .filter(|it| entries.contains_key(&it.1.property))
                    .map(|it| Key::String(Text::Borrowed(it.0)))
                    .collect(),
                None => entries.keys().map(|it| Key::String(Text::Borrowed(it))).collect(),
            },
            Self::Made(entries) => entries.by_key.keys().cloned().collect(),
            Self::Composed => Vec::new(),
        }
    }
}
