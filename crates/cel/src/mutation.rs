//! Objects that mutating policies make: `Object{spec: Object.spec{…}}`, and patches: `JSONPatch{…}`.

use std::sync::LazyLock;

use serde_json::Value as Json;

use crate::{
    declared::{DeclType, Field, ObjectDecl, Shape, Type},
    error::Error,
    value::{Items, Map, Value},
};

const ROOT: &str = "Object";
const PATCH: &str = "JSONPatch";

static PATCH_TYPE: LazyLock<DeclType> = LazyLock::new(|| {
    let field =
        |name: &str, of: DeclType| (name.to_owned(), Field { property: name.to_owned(), of, is_required: false });
    let fields = ["op", "path", "from"].map(|it| field(it, DeclType::string(None)));
    let fields = fields.into_iter().chain([field("value", DeclType::DYN)]).collect();
    DeclType::new(Shape::Object(std::sync::Arc::new(ObjectDecl { name: PATCH.into(), fields })), 0, 2)
});

/// The type that is made under this name.
pub(crate) fn structure(name: &str) -> Option<Type> {
    let name = name.trim_start_matches('.');
    if name == PATCH {
        return Some(PATCH_TYPE.cel_type());
    }
    (name == ROOT || name.strip_prefix(ROOT)?.starts_with('.')).then(|| Type::Open(name.into()))
}

/// What a mutating policy made, as JSON.
///
/// # Errors
/// Where the type of an object is not named for the fields that lead to it, or a value has no form in JSON.
pub fn to_json(value: &Value<'_>) -> Result<Json, Error> {
    if let Value::Map(Map::Made(entries)) = value
        && entries.of.as_deref().is_some_and(|it| it.starts_with(ROOT))
    {
        check_names(value, ROOT)?;
    }
    value.to_json().ok_or_else(|| *Error::other("the value has no form in JSON"))
}

/// Lists and maps between objects have no name, and count for nothing.
fn check_names(value: &Value<'_>, path: &str) -> Result<(), Error> {
    match value {
        Value::Map(Map::Made(entries)) => {
            let named = entries.of.as_deref();
            if let Some(name) = named.filter(|it| *it != path) {
                let message = format!(
                    "unexpected type name {name:?}, expected {path:?}, which matches field name path from root Object type"
                );
                return Err(*Error::other(message));
            }
            entries.by_key.iter().try_for_each(|(key, value)| match named {
                Some(_) => check_names(value, &format!("{path}.{key}")),
                None => check_names(value, path),
            })
        }
        Value::List(list) => match &list.items {
            Items::Json(_) => Ok(()),
            _ => list.iter().try_for_each(|it| check_names(&it, path)),
        },
        Value::Optional(Some(it)) => check_names(it, path),
        _ => Ok(()),
    }
}
