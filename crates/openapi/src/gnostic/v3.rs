//! OpenAPI v3. Names and field numbers are those of `openapi.v3` in gnostic's `OpenAPIv3.proto`: the whole of it, since documents of
//! other servers are written, too. What it has no field for is left out.

mod messages;

use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::{Map, Value};

use self::messages::{DOCUMENT, REFERENCE, SCHEMA};

struct Message {
    fields: &'static [(&'static str, u32, Form)],
    /// Of fields with other names, each with its name: a map in JSON.
    named: Option<(u32, Form)>,
    /// Of fields `x-…`; 0: it has none.
    extensions: u32,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    Integer,
    Number,
    /// Of any shape, as YAML; JSON is YAML.
    Any,
    /// The same, in a message that could hold an expression.
    AnyWithin,
    Message(&'static Message),
    /// Or a `$ref` in its place.
    OrReference(&'static Message),
    Each(&'static Form),
    /// A list of texts, as a message.
    Texts,
    /// A map, as a message of pairs.
    Map(&'static Form),
    /// A schema, or a list of them.
    Items,
    /// A schema, true or false.
    SchemaOrFlag,
    /// A number, true or false, or a text.
    Default,
}

/// The message for a document in JSON.
pub(crate) fn document(value: &Value) -> Vec<u8> {
    let mut written = Vec::new();
    write_message(&mut written, &DOCUMENT, value);
    written
}

fn write_message(out: &mut Vec<u8>, message: &Message, value: &Value) {
    let nothing = Map::new();
    for (name, value) in value.as_object().unwrap_or(&nothing) {
        if let Some((_, tag, form)) = message.fields.iter().find(|it| it.0 == name) {
            write(out, *tag, *form, value);
        } else if name.starts_with("x-") && message.extensions != 0 {
            write_pair(out, message.extensions, name, Form::Any, value);
        } else if let Some((tag, form)) = message.named {
            write_pair(out, tag, name, form, value);
        }
    }
}

fn write(out: &mut Vec<u8>, tag: u32, form: Form, value: &Value) {
    match form {
        Form::Text => write_text(out, tag, value.as_str().unwrap_or_default(), false),
        Form::Flag => write_flag(out, tag, value.as_bool().unwrap_or_default(), false),
        Form::Integer => {
            if let Some(number) = value.as_i64().filter(|it| *it != 0) {
                encode_key(tag, WireType::Varint, out);
                encode_varint(number.cast_unsigned(), out);
            }
        }
        Form::Number => write_number(out, tag, value.as_f64().unwrap_or_default(), false),
        Form::Any => write_within(out, tag, |out| write_text(out, 2, &value.to_string(), false)),
        Form::AnyWithin => write_within(out, tag, |out| write(out, 1, Form::Any, value)),
        Form::Message(message) => write_within(out, tag, |out| write_message(out, message, value)),
        Form::OrReference(message) => write_within(out, tag, |out| {
            if value.get("$ref").is_some_and(Value::is_string) {
                write(out, 2, Form::Message(&REFERENCE), value);
            } else {
                write(out, 1, Form::Message(message), value);
            }
        }),
        Form::Each(Form::Text) => texts(value).for_each(|it| write_text(out, tag, it, true)),
        Form::Each(form) => items(value).for_each(|it| write(out, tag, *form, it)),
        Form::Texts => write_within(out, tag, |out| texts(value).for_each(|it| write_text(out, 1, it, true))),
        Form::Map(form) => write_within(out, tag, |out| {
            value.as_object().into_iter().flatten().for_each(|(name, value)| write_pair(out, 1, name, *form, value));
        }),
        Form::Items => write_within(out, tag, |out| {
            let schemas = value.as_array().map_or(std::slice::from_ref(value), |it| &**it);
            schemas.iter().for_each(|it| write(out, 1, Form::OrReference(&SCHEMA), it));
        }),
        Form::SchemaOrFlag => write_within(out, tag, |out| match value {
            Value::Bool(is) => write_flag(out, 2, *is, true),
            schema => write(out, 1, Form::OrReference(&SCHEMA), schema),
        }),
        Form::Default => write_within(out, tag, |out| match value {
            Value::Number(number) => write_number(out, 1, number.as_f64().unwrap_or_default(), true),
            Value::Bool(is) => write_flag(out, 2, *is, true),
            Value::String(text) => write_text(out, 3, text, true),
            // The message has no place for maps and lists: that there is a default is all that it says.
            _ => {}
        }),
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

/// A message of a name (1) and a value (2).
fn write_pair(out: &mut Vec<u8>, tag: u32, name: &str, form: Form, value: &Value) {
    write_within(out, tag, |out| {
        write_text(out, 1, name, false);
        write(out, 2, form, value);
    });
}

fn write_within(out: &mut Vec<u8>, tag: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    write_bytes(out, tag, &inner);
}

fn write_bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// `is_chosen`: also where it is empty, because it is one of a list, or says which of several there is (`oneof`).
fn write_text(out: &mut Vec<u8>, tag: u32, text: &str, is_chosen: bool) {
    if is_chosen || !text.is_empty() {
        write_bytes(out, tag, text.as_bytes());
    }
}

fn write_flag(out: &mut Vec<u8>, tag: u32, is: bool, is_chosen: bool) {
    if is_chosen || is {
        encode_key(tag, WireType::Varint, out);
        encode_varint(u64::from(is), out);
    }
}

fn write_number(out: &mut Vec<u8>, tag: u32, number: f64, is_chosen: bool) {
    if is_chosen || number != 0.0 {
        encode_key(tag, WireType::SixtyFourBit, out);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
