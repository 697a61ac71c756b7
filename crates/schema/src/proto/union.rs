//! Parts of a CustomResourceDefinition's schema that are one of two things, which JSON tells by their form and protobuf by the
//! number of a field (JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, JSONSchemaPropsOrStringArray).

use serde_json::{Map, Value};

use super::{
    ProtoError, Scope, encode, inside, message, text,
    wire::{Payload, Reader, Writer},
};
use crate::Type;

/// Is the field of this type such a part? All else without a shape of its own is JSON inside a message.
pub(super) fn is_one(of: &Type, field: &str) -> bool {
    of.short_name() == "JSONSchemaProps"
        && matches!(field, "items" | "additionalItems" | "additionalProperties" | "dependencies")
}

/// `of` is JSONSchemaProps itself: what is in the part is a schema again.
pub(super) fn decode(bytes: &[u8], of: &'static Type, field: &str, scope: Scope) -> Result<Value, ProtoError> {
    let schema = |bytes: &[u8]| {
        let mut object = Map::new();
        message(bytes, of, &[], &mut object, inside(scope)?)?;
        Ok::<_, ProtoError>(Value::Object(object))
    };
    let or_bool = matches!(field, "additionalItems" | "additionalProperties");
    let (mut whole, mut list, mut allows) = (None, Vec::new(), None);
    let mut fields = Reader(bytes);
    while let Some((number, payload)) = fields.next()? {
        match (number, payload) {
            (1, Payload::Varint(it)) if or_bool => allows = Some(Value::Bool(it != 0)),
            (2, Payload::Bytes(bytes)) if or_bool => whole = Some(schema(bytes)?),
            (1, Payload::Bytes(bytes)) if !or_bool => whole = Some(schema(bytes)?),
            (2, Payload::Bytes(bytes)) if field == "dependencies" => list.push(text(bytes)?.into()),
            (2, Payload::Bytes(bytes)) => list.push(schema(bytes)?),
            _ => return Err(ProtoError::Malformed(of.name)),
        }
    }
    Ok(whole.or(allows).unwrap_or(Value::Array(list)))
}

/// The content of the part's message.
pub(super) fn encode(of: &'static Type, field: &str, value: &Value, out: &mut Writer) {
    let or_bool = matches!(field, "additionalItems" | "additionalProperties");
    match value {
        // As Go keeps it: what has a schema is allowed.
        Value::Object(_) if or_bool => {
            out.varint(1, 1);
            out.nested(2, |out| encode::message(of, value, out));
        }
        Value::Object(_) => out.nested(1, |out| encode::message(of, value, out)),
        Value::Array(names) if field == "dependencies" => {
            names.iter().for_each(|it| out.bytes(2, it.as_str().unwrap_or_default().as_bytes()));
        }
        Value::Array(schemas) => schemas.iter().for_each(|it| out.nested(2, |out| encode::message(of, it, out))),
        other if or_bool => out.varint(1, u64::from(other.as_bool().unwrap_or_default())),
        _ => {}
    }
}
