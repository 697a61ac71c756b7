//! The operations of a JSON patch. They are counted before any is read: in a text of megabytes each zero would become a value of
//! many times its size.

use std::fmt;

use corten_meta::{depth, shortened};
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
    jsonptr::PointerBuf,
};
use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Deserializer, Map, Value};

use crate::{check::go_kind, patch::PatchError};

const OPERATIONS_MAX: usize = 10_000;

/// How many operations a patch has. What they are is not looked at, and nothing is kept of it.
///
/// # Errors
/// `Malformed` where it is no list, `TooLarge` where there are more than may be.
pub fn n_operations(patch: &[u8]) -> Result<usize, PatchError> {
    let n = match counted(patch).map_err(|it| malformed(&depth::reason(&it)))? {
        Counted::List(n) => n,
        Counted::Other(kind) => return Err(malformed(&no_go_value(kind, "Patch"))),
    };
    if n > OPERATIONS_MAX {
        let message = format!("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {n}");
        return Err(PatchError::TooLarge(message));
    }
    Ok(n)
}

/// # Errors
/// As [`n_operations`]; `Unprocessable` where one of them is none.
pub(super) fn operations(patch: &[u8]) -> Result<Vec<PatchOperation>, PatchError> {
    n_operations(patch)?;
    let operations: Vec<Value> = serde_json::from_slice(patch).map_err(|it| malformed(&depth::reason(&it)))?;
    if let Some(other) = operations.iter().find(|it| !it.is_object()) {
        return Err(malformed(&no_go_value(go_kind(other), "Operation")));
    }
    // As in evanphx/json-patch: an operation that is none is found when it is to be carried out.
    operations.into_iter().map(operation).collect::<Result<_, _>>().map_err(PatchError::Unprocessable)
}

/// No message shows a value: it may be a secret.
fn malformed(reason: &str) -> PatchError {
    PatchError::Malformed(format!("error decoding patch: {reason}"))
}

fn no_go_value(kind: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.{wanted}")
}

/// The parts are moved, never copied: a value may be most of the patch.
fn operation(value: Value) -> Result<PatchOperation, String> {
    let mut parts = Parts(match value {
        Value::Object(parts) => parts,
        _ => Map::new(),
    });
    let name = parts.text("op").unwrap_or_else(|| "unknown".to_owned());
    let path = parts.place("path");
    let read = match &*name {
        "add" => path.zip(parts.value()).map(|(path, value)| PatchOperation::Add(AddOperation { path, value })),
        "copy" => path.zip(parts.place("from")).map(|(path, from)| PatchOperation::Copy(CopyOperation { from, path })),
        "move" => path.zip(parts.place("from")).map(|(path, from)| PatchOperation::Move(MoveOperation { from, path })),
        "remove" => path.map(|path| PatchOperation::Remove(RemoveOperation { path })),
        "replace" => {
            path.zip(parts.value()).map(|(path, value)| PatchOperation::Replace(ReplaceOperation { path, value }))
        }
        "test" => path.zip(parts.value()).map(|(path, value)| PatchOperation::Test(TestOperation { path, value })),
        other => return Err(format!("Unexpected kind: {}", shortened(other))),
    };
    read.ok_or_else(|| format!("{name} operation does not apply: a path or a value is missing, or is no path"))
}

/// What an operation says, by its names.
struct Parts(Map<String, Value>);

impl Parts {
    fn text(&mut self, name: &str) -> Option<String> {
        match self.0.swap_remove(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    fn place(&mut self, name: &str) -> Option<PointerBuf> {
        PointerBuf::parse(self.text(name)?).ok()
    }

    fn value(&mut self) -> Option<Value> {
        self.0.swap_remove("value")
    }
}

enum Counted {
    List(usize),
    /// The kind of Go value that it is instead.
    Other(&'static str),
}

fn counted(json: &[u8]) -> Result<Counted, serde_json::Error> {
    let mut deserializer = Deserializer::from_slice(json);
    let counted = deserializer.deserialize_any(Count)?;
    deserializer.end()?;
    Ok(counted)
}

/// Goes through a list, or whatever else there is, without making anything of it.
struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = Counted;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Counted, A::Error> {
        let mut n = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            n += 1;
        }
        Ok(Counted::List(n))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Counted, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Counted::Other(go_kind(&Value::Object(Map::new()))))
    }

    fn visit_unit<E>(self) -> Result<Counted, E> {
        Ok(Counted::Other(go_kind(&Value::Null)))
    }

    fn visit_bool<E>(self, it: bool) -> Result<Counted, E> {
        Ok(Counted::Other(go_kind(&it.into())))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Counted, E> {
        Ok(Counted::Other(go_kind(&it.into())))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Counted, E> {
        Ok(Counted::Other(go_kind(&it.into())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Counted, E> {
        Ok(Counted::Other(go_kind(&0.into())))
    }

    fn visit_str<E>(self, _: &str) -> Result<Counted, E> {
        Ok(Counted::Other(go_kind(&Value::String(String::new()))))
    }
}
