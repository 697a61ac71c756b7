//! Kubernetes's protobuf as the same DOM that JSON gives: field numbers stand in the type table.
//!
//! The wire format is proto2 with all plain fields of Go structs always written, so a zero may mean "left out". The table says
//! which these are; behind a pointer a zero means itself. A field whose number the table does not know is left out, as Kubernetes
//! does: clients of earlier releases write fields that are gone (`clusterName` of each object's metadata until v1.23).

mod body;
mod encode;
mod range_allocation;
mod union;
mod wire;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::{
    Time,
    depth::{self, LEVELS_MAX},
};
use serde_json::{Map, Value};

use crate::{Field, Shape, Type, table::API_GROUP_DISCOVERY_LIST};
use wire::{Payload, Reader};

pub use body::{Message, body, event, list_head, list_tail, put_item, whole};
pub use range_allocation::RangeAllocation;

/// The first bytes of every protobuf body, before the envelope.
const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    #[error("the body does not begin with the prefix of Kubernetes protobuf")]
    NoPrefix,
    #[error("unexpected end of the message")]
    Truncated,
    #[error("malformed field in {0}")]
    Malformed(&'static str),
    #[error("there is no type for kind {0:?} in version {1:?}")]
    UnknownKind(String, String),
    #[error("exceeded max depth")]
    TooDeep,
    #[error("a text is not UTF-8")]
    NotText,
}

/// Reads a whole body: prefix, envelope and object. The object carries `kind` and `apiVersion`, as in JSON.
///
/// # Errors
/// See [`ProtoError`].
pub fn decode(body: &[u8]) -> Result<Value, ProtoError> {
    decode_stored(body, |_, _| None)
}

/// Reads a body as it is stored. `successor` names the version whose types say what a kind has in a version that is not served any more.
///
/// # Errors
/// See [`ProtoError`].
pub fn decode_stored(body: &[u8], successor: impl Fn(&str, &str) -> Option<&'static str>) -> Result<Value, ProtoError> {
    let (type_meta, raw) = enveloped(body)?;
    let (mut api_version, kind) = read_type_meta(type_meta)?;
    if let Some(version) = successor(&api_version, &kind) {
        version.clone_into(&mut api_version);
    }
    let of = type_of(&api_version, &kind).ok_or_else(|| ProtoError::UnknownKind(kind.clone(), api_version.clone()))?;
    let mut object = Map::new();
    object.insert("kind".into(), kind.into());
    object.insert("apiVersion".into(), api_version.into());
    message(raw, of, &[], &mut object, inside(Scope { levels: LEVELS_MAX })?)?;
    Ok(Value::Object(object))
}

/// What is in the envelope: a TypeMeta and an object.
fn enveloped(body: &[u8]) -> Result<(&[u8], &[u8]), ProtoError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtoError::NoPrefix)?;
    let (mut type_meta, mut raw): (&[u8], &[u8]) = (&[], &[]);
    let mut fields = Reader(envelope);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Bytes(bytes)) => type_meta = bytes,
            (2, Payload::Bytes(bytes)) => raw = bytes,
            // Content encoding and type: always those of plain protobuf.
            _ => {}
        }
    }
    Ok((type_meta, raw))
}

fn read_type_meta(bytes: &[u8]) -> Result<(String, String), ProtoError> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut fields = Reader(bytes);
    while let Some((number, payload)) = fields.next()? {
        let Payload::Bytes(bytes) = payload else { return Err(ProtoError::Malformed("TypeMeta")) };
        match number {
            1 => api_version = text(bytes)?,
            2 => kind = text(bytes)?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

/// `rbac.authorization.k8s.io/v1 Role` is `io.k8s.api.rbac.v1.Role`. Options belong to every version.
fn type_of(api_version: &str, kind: &str) -> Option<&'static Type> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    if (group, kind) == ("apidiscovery.k8s.io", "APIGroupDiscoveryList") {
        return Some(&API_GROUP_DISCOVERY_LIST);
    }
    let package = group.split('.').next().unwrap_or_default();
    let package = match (package, group) {
        ("apiextensions", _) => "apiextensions-apiserver.pkg.apis.apiextensions".into(),
        ("apiregistration", _) => "kube-aggregator.pkg.apis.apiregistration".into(),
        (_, "metrics.k8s.io") => "metrics.pkg.apis.metrics".into(),
        (_, "internal.apiserver.k8s.io") => "api.apiserverinternal".into(),
        (package, _) => format!("api.{package}"),
    };
    crate::find(&format!("io.k8s.{package}.{version}.{kind}"))
        .or_else(|| crate::find(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")))
}

/// What holds inside a list or map while a body is read.
#[derive(Clone, Copy)]
struct Scope {
    /// How many lists and maps may be within each other. Counted as JSON has them, for as that the object goes on: a map is two
    /// levels there, an embedded struct none.
    levels: usize,
}

/// Inside another list or map.
fn inside(scope: Scope) -> Result<Scope, ProtoError> {
    let levels = scope.levels.checked_sub(1).ok_or(ProtoError::TooDeep)?;
    Ok(Scope { levels })
}

/// Puts the fields of one message into `object`, `within` is the path of numbers of an embedded struct, whose fields are its parent's in JSON.
fn message(
    bytes: &[u8],
    of: &'static Type,
    within: &[u8],
    object: &mut Map<String, Value>,
    scope: Scope,
) -> Result<(), ProtoError> {
    let mut fields = Reader(bytes);
    while let Some((number, payload)) = fields.next()? {
        let Ok(last) = u8::try_from(number) else { continue };
        let path = [within, &[last]].concat();
        if let Some(field) = of.fields.iter().find(|it| it.number == path) {
            put(object, field, payload, of, scope)?;
        } else if of.fields.iter().any(|it| it.number.starts_with(&path)) {
            let Payload::Bytes(embedded) = payload else { return Err(ProtoError::Malformed(of.name)) };
            message(embedded, of, &path, object, scope)?;
        }
    }
    Ok(())
}

fn put(
    object: &mut Map<String, Value>,
    field: &'static Field,
    payload: Payload<'_>,
    of: &'static Type,
    scope: Scope,
) -> Result<(), ProtoError> {
    match (&field.shape, payload) {
        (Shape::List(item), Payload::Bytes(packed)) if is_varint(item) => {
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let mut reader = Reader(packed);
            while !reader.0.is_empty() {
                let value = one(item, Payload::Varint(reader.varint()?), of, inside(scope)?)?;
                list.as_array_mut().into_iter().for_each(|it| it.extend(value.clone()));
            }
        }
        (list @ Shape::List(_), Payload::Bytes(bytes)) if encode::is_list_message(of, field.name) => {
            object.insert(field.name.to_owned(), list_message(bytes, list, of, inside(scope)?)?);
        }
        (Shape::List(item), payload) => {
            let value = one(item, payload, of, inside(scope)?)?;
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().into_iter().for_each(|it| it.extend(value.clone()));
        }
        (Shape::Any, Payload::Bytes(bytes)) if union::is_one(of, field.name) => {
            object.insert(field.name.to_owned(), union::decode(bytes, of, field.name, scope)?);
        }
        (Shape::String, Payload::Bytes(bytes)) if encode::is_duration(of, field.name) => {
            object.insert(field.name.to_owned(), duration(bytes)?.into());
        }
        (Shape::Map(Shape::Any), Payload::Bytes(entry)) if union::is_one(of, field.name) => {
            let (key, bytes) = raw_entry(entry, of)?;
            let value = union::decode(bytes, of, field.name, inside(scope)?)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
        }
        (Shape::Map(item), Payload::Bytes(entry)) => {
            let (key, value) = map_entry(entry, item, of, inside(scope)?)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
        }
        (shape, payload) => {
            let value = one(shape, payload, of, scope)?;
            if let Some(value) = value.filter(|it| !is_zero(it) || !field.always) {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn is_varint(shape: &Shape) -> bool {
    matches!(shape, Shape::Int32 | Shape::Int64 | Shape::Boolean)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

fn map_entry(entry: &[u8], item: &Shape, of: &'static Type, scope: Scope) -> Result<(String, Value), ProtoError> {
    let (mut key, mut value) = (String::new(), None);
    let mut fields = Reader(entry);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Bytes(bytes)) => key = text(bytes)?,
            (2, Payload::Bytes(bytes)) if matches!(item, Shape::List(_)) => {
                value = Some(list_message(bytes, item, of, inside(scope)?)?)
            }
            (2, payload) => value = one(item, payload, of, scope)?,
            _ => return Err(ProtoError::Malformed(of.name)),
        }
    }
    let empty = || match item {
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::String => Value::String(String::new()),
        _ => Value::Null,
    };
    Ok((key, value.unwrap_or_else(empty)))
}

/// A key and the bytes of its value.
fn raw_entry<'b>(entry: &'b [u8], of: &'static Type) -> Result<(String, &'b [u8]), ProtoError> {
    let (mut key, mut value): (_, &[u8]) = (String::new(), &[]);
    let mut fields = Reader(entry);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Bytes(bytes)) => key = text(bytes)?,
            (2, Payload::Bytes(bytes)) => value = bytes,
            _ => return Err(ProtoError::Malformed(of.name)),
        }
    }
    Ok((key, value))
}

/// A list that is a map's value travels as a message whose field 1 repeats.
fn list_message(bytes: &[u8], list: &Shape, of: &'static Type, scope: Scope) -> Result<Value, ProtoError> {
    let Shape::List(item) = list else { return Err(ProtoError::Malformed(of.name)) };
    let (mut items, mut fields) = (Vec::new(), Reader(bytes));
    while let Some((_, payload)) = fields.next()? {
        items.extend(one(item, payload, of, scope)?);
    }
    Ok(Value::Array(items))
}

/// One value; `None` for a time that is not set.
fn one(shape: &Shape, payload: Payload<'_>, of: &'static Type, scope: Scope) -> Result<Option<Value>, ProtoError> {
    let malformed = ProtoError::Malformed(of.name);
    Ok(Some(match (shape, payload) {
        (Shape::String, Payload::Bytes(bytes)) => text(bytes)?.into(),
        (Shape::Bytes, Payload::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Shape::Int32 | Shape::Int64, Payload::Varint(number)) => number.cast_signed().into(),
        (Shape::Boolean, Payload::Varint(number)) => (number != 0).into(),
        (Shape::Number, Payload::Fixed64(bits)) => f64::from_bits(bits).into(),
        (Shape::Time, Payload::Bytes(bytes)) => return Ok(time(bytes)?.map(|it| it.to_string().into())),
        (Shape::MicroTime, Payload::Bytes(bytes)) => return Ok(time(bytes)?.map(|it| it.micro().to_string().into())),
        (Shape::Quantity, Payload::Bytes(bytes)) => quantity(bytes)?,
        (Shape::IntOrString, Payload::Bytes(bytes)) => int_or_string(bytes)?,
        (Shape::Any, Payload::Bytes(bytes)) => raw_json(bytes, scope)?,
        (Shape::Object(inner), Payload::Bytes(bytes)) => {
            let mut object = Map::new();
            message(bytes, inner, &[], &mut object, inside(scope)?)?;
            Value::Object(object)
        }
        _ => return Err(malformed),
    }))
}

/// `Duration` of apimachinery.
fn duration(bytes: &[u8]) -> Result<String, ProtoError> {
    let (mut nanos, mut fields) = (0, Reader(bytes));
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Varint(value)) => nanos = value.cast_signed(),
            _ => return Err(ProtoError::Malformed("Duration")),
        }
    }
    Ok(corten_meta::duration::text(nanos))
}

fn text(bytes: &[u8]) -> Result<String, ProtoError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtoError::NotText)
}

fn time(bytes: &[u8]) -> Result<Option<Time>, ProtoError> {
    let (mut seconds, mut nanos, mut is_set) = (0_i64, 0_i64, false);
    let mut fields = Reader(bytes);
    while let Some((number, payload)) = fields.next()? {
        let Payload::Varint(value) = payload else { return Err(ProtoError::Malformed("Time")) };
        is_set = true;
        match number {
            1 => seconds = value.cast_signed(),
            _ => nanos = value.cast_signed(),
        }
    }
    let nanos = std::time::Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
    Ok(is_set.then(|| Time::from_unix_seconds(seconds).after(nanos)))
}

fn quantity(bytes: &[u8]) -> Result<Value, ProtoError> {
    let mut fields = Reader(bytes);
    let mut quantity = Value::String("0".into());
    while let Some((_, payload)) = fields.next()? {
        let Payload::Bytes(bytes) = payload else { return Err(ProtoError::Malformed("Quantity")) };
        quantity = text(bytes)?.into();
    }
    Ok(quantity)
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ProtoError> {
    let (mut is_text, mut number, mut string) = (false, 0_i64, String::new());
    let mut fields = Reader(bytes);
    while let Some((at, payload)) = fields.next()? {
        match (at, payload) {
            (1, Payload::Varint(value)) => is_text = value != 0,
            (2, Payload::Varint(value)) => number = value.cast_signed(),
            (3, Payload::Bytes(bytes)) => string = text(bytes)?,
            _ => return Err(ProtoError::Malformed("IntOrString")),
        }
    }
    Ok(if is_text { string.into() } else { number.into() })
}

/// RawExtension, FieldsV1 and JSON: the JSON text itself in field 1.
fn raw_json(bytes: &[u8], scope: Scope) -> Result<Value, ProtoError> {
    let mut fields = Reader(bytes);
    let mut value = Value::Object(Map::new());
    while let Some((number, payload)) = fields.next()? {
        let (1, Payload::Bytes(bytes)) = (number, payload) else { return Err(ProtoError::Malformed("RawExtension")) };
        value = serde_json::from_slice(bytes).map_err(|error| match depth::reason(&error) {
            reason if reason == depth::EXCEEDED => ProtoError::TooDeep,
            _ => ProtoError::Malformed("RawExtension"),
        })?;
    }
    if depth::fits(&value, scope.levels) { Ok(value) } else { Err(ProtoError::TooDeep) }
}

#[cfg(test)]
mod tests;
