//! Types of the type table as OpenAPI schemas, in the dialect of version 2 or 3.

use std::collections::BTreeMap;

use corten_kinds::{KINDS, Kind};
use corten_schema::{Apply, Field, Merge, Patch, Shape, Type};
use serde_json::{Map, Value, json};

use crate::discovery::facts;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

impl Dialect {
    pub(super) fn reference(self, name: &str) -> Value {
        let folder = match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        };
        json!({ "$ref": format!("{folder}{name}") })
    }

    fn shape(self, shape: &Shape) -> Value {
        match shape {
            Shape::String => json!({ "type": "string" }),
            Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
            Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
            Shape::Number => json!({ "type": "number", "format": "double" }),
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Time | Shape::MicroTime => json!({ "type": "string", "format": "date-time" }),
            Shape::Bytes => json!({ "type": "string", "format": "byte" }),
            Shape::Any if self == Self::V2 => json!({}),
            // kubectl takes a schema that says nothing at all for a missing one, and `explain --recursive` gives up.
            Shape::Any => json!({ "x-kubernetes-preserve-unknown-fields": true }),
            Shape::Quantity if self == Self::V2 => json!({ "type": "string" }),
            Shape::Quantity => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
            Shape::IntOrString if self == Self::V2 => json!({ "type": "string", "format": "int-or-string" }),
            Shape::IntOrString => {
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
            }
            Shape::Object(of) => self.reference(of.name),
            Shape::List(of) => json!({ "type": "array", "items": self.shape(of) }),
            Shape::Map(of) => json!({ "type": "object", "additionalProperties": self.shape(of) }),
        }
    }

    fn field(self, field: &Field) -> Value {
        let mut schema = self.shape(&field.shape);
        let extensions = extensions(&field.shape, field.merge);
        schema.as_object_mut().expect("a shape is an object").extend(extensions);
        schema
    }

    /// The schema of one type; `kinds` are the group, version and kind of objects that have it.
    pub(super) fn of_type(self, of: &Type, kinds: &[Value]) -> Value {
        let properties: Map<String, Value> = of.fields.iter().map(|it| (it.name.to_owned(), self.field(it))).collect();
        // The table says it of metadata too. Kubernetes does not: whoever leaves it out is told so by the rules for names.
        let required = of.fields.iter().filter(|it| it.required && it.name != "metadata");
        let required: Vec<&str> = required.map(|it| it.name).collect();
        let mut schema = json!({ "type": "object" });
        if !properties.is_empty() {
            schema["properties"] = Value::Object(properties);
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if of.atomic {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        if !kinds.is_empty() {
            schema["x-kubernetes-group-version-kind"] = json!(kinds);
        }
        schema
    }

    fn list_of(self, kind: &Kind) -> Value {
        let resource = &kind.resource;
        json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": { "type": "string" },
                "items": { "type": "array", "items": self.reference(kind.schema) },
                "kind": { "type": "string" },
                "metadata": self.reference(LIST_META),
            },
            "x-kubernetes-group-version-kind":
                [gvk(&resource.group, &resource.version, &format!("{}List", resource.kind))],
        })
    }

    /// The schemas that `kinds` and their requests need, by name.
    pub(super) fn all(self, kinds: &[&'static Kind]) -> Vec<(String, Value)> {
        let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
        for of in reachable(kinds).values() {
            schemas.insert(of.name.to_owned(), self.of_type(of, &served_as(of.name)));
        }
        for kind in kinds.iter().filter(|it| it.is_stored()) {
            schemas.insert(format!("{}List", kind.schema), self.list_of(kind));
        }
        schemas.insert(PATCH.into(), json!({ "type": "object" }));
        schemas.into_iter().collect()
    }
}

pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "kind": kind, "version": version })
}

/// What objects of this type call themselves.
fn served_as(name: &str) -> Vec<Value> {
    if name == DELETE_OPTIONS {
        let groups = KINDS.iter().map(|it| gvk(&it.resource.group, &it.resource.version, "DeleteOptions"));
        let mut groups: Vec<Value> = groups.collect();
        groups.dedup();
        return groups;
    }
    if name == STATUS {
        return vec![gvk("", "v1", "Status")];
    }
    let own = KINDS.iter().filter(|it| it.schema == name).map(|it| {
        let resource = &it.resource;
        gvk(&resource.group, &resource.version, &resource.kind)
    });
    let foreign = KINDS.iter().flat_map(|kind| kind.subresources.iter().map(|it| facts(kind, *it)));
    let foreign = foreign.filter(|it| it.schema == Some(name)).map(|it| gvk(it.group, it.version, it.kind));
    let mut all: Vec<Value> = Vec::new();
    for one in own.chain(foreign) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Every type that an object of one of these kinds, or a request about one, can hold.
fn reachable(kinds: &[&'static Kind]) -> BTreeMap<&'static str, &'static Type> {
    let subresources = kinds.iter().flat_map(|kind| kind.subresources.iter().map(|it| facts(kind, *it)));
    let names = kinds.iter().map(|it| it.schema).chain(subresources.filter_map(|it| it.schema));
    let mut found = BTreeMap::new();
    for name in names.chain([DELETE_OPTIONS, STATUS, LIST_META]) {
        if let Some(of) = corten_schema::find(name) {
            collect(of, &mut found);
        }
    }
    found
}

fn collect(of: &'static Type, found: &mut BTreeMap<&'static str, &'static Type>) {
    if found.insert(of.name, of).is_some() {
        return;
    }
    for field in of.fields {
        if let Some(of) = innermost(&field.shape) {
            collect(of, found);
        }
    }
}

fn innermost(shape: &Shape) -> Option<&'static Type> {
    match shape {
        Shape::Object(of) => Some(of),
        Shape::List(of) | Shape::Map(of) => innermost(of),
        _ => None,
    }
}

/// How patches and server-side apply merge the field, where that is not the default of its shape.
fn extensions(shape: &Shape, merge: &Merge) -> Map<String, Value> {
    let mut extensions = Map::new();
    let mut add = |name: &str, value: Value| extensions.insert(format!("x-kubernetes-{name}"), value);
    if matches!(shape, Shape::List(_)) {
        match merge.apply {
            Apply::ByKeys(keys) => {
                add("list-map-keys", json!(keys));
                add("list-type", json!("map"));
            }
            Apply::Set => {
                add("list-type", json!("set"));
            }
            Apply::Atomic | Apply::Deep => {
                add("list-type", json!("atomic"));
            }
        }
    } else if merge.apply == Apply::Atomic && matches!(shape, Shape::Map(_) | Shape::Object(_)) {
        add("map-type", json!("atomic"));
    }
    if let Patch::ByKey(key) = merge.patch {
        add("patch-merge-key", json!(key));
    }
    let merges = matches!(merge.patch, Patch::ByKey(_) | Patch::Set);
    match (merges, merge.retain_keys) {
        (true, true) => _ = add("patch-strategy", json!("merge,retainKeys")),
        (true, false) => _ = add("patch-strategy", json!("merge")),
        (false, true) => _ = add("patch-strategy", json!("retainKeys")),
        (false, false) => {}
    }
    extensions
}
