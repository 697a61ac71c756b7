//! Parts of a CustomResourceDefinition's schema that are one of two things, which JSON tells by their form and protobuf by the
//! number of a field (JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, JSONSchemaPropsOrStringArray).

use serde_json::{Map, Value};

use super::{
    ProtoError, inside, message, text,
    wire::{Payload, Reader},
};
use crate::Type;

/// Is the field of this type such a part? All else without a shape of its own is JSON inside a message.
pub(super) fn is_one(of: &Type, field: &str) -> bool {
    of.short_name() == "JSONSchemaProps"
        && matches!(field, "items" | "additionalItems" | "additionalProperties" | "dependencies")
}

/// `of` is JSONSchemaProps itself: what is in the part is a schema again.
pub(super) fn decode(bytes: &[u8], of: &'static Type, field: &str, levels: usize) -> Result<Value, ProtoError> {
    let schema = |bytes: &[u8]| {
        let mut object = Map::new();
        message(bytes, of, &[], &mut object, inside(levels)?)?;
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
