//! The versions that objects of a resource are stored in.

use std::sync::Arc;

use bytes::Bytes;
use corten_kinds::{CustomSchema, Kind};
use corten_meta::{Resource, depth};
use serde_json::Value;

/// A version that objects are stored in.
pub(super) struct Form {
    pub(super) resource: Resource,
    pub(super) head: String,
    schema: Option<Arc<CustomSchema>>,
}

impl Form {
    /// Those of a kind; `head` says what each begins with.
    pub(super) fn of(kind: &Kind, head: impl Fn(&Resource) -> String) -> Vec<Self> {
        let form = |resource: &Resource, schema| Self { resource: resource.clone(), head: head(resource), schema };
        match &kind.versions {
            Some(versions) => versions.iter().map(|it| form(&it.resource, Some(it.schema.clone()))).collect(),
            None => vec![form(&kind.resource, None)],
        }
    }

    /// As an object of this version is read: it may have been stored when its schema was another.
    pub(super) fn coerced(&self, value: Bytes, encode: impl Fn(&Resource, &Value) -> Bytes) -> Bytes {
        let Some(schema) = &self.schema else { return value };
        let Ok(read) = depth::read(&value) else { return value };
        let mut object = read.value.clone();
        schema.coerce(&mut object);
        if !read.is_whole || object == read.value { value } else { encode(&self.resource, &object) }
    }
}
