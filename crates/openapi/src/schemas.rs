//! Types as OpenAPI schemas, in the dialect of version 2 or 3: shapes from the type table, words from the notes.

mod custom;

use std::collections::BTreeMap;

use corten_kinds::{KINDS, Kind, KindRef};
use corten_schema::{Apply, Field, Merge, Patch, Shape, Type};
use serde_json::{Map, Value, json};

use super::notes::{FieldNote, Notes, TypeNote};
use crate::discovery::facts;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
pub(super) const VERSION: &str = "io.k8s.apimachinery.pkg.version.Info";
/// Whose fields all objects have.
const OBJECT: &str = "io.k8s.api.core.v1.ConfigMap";
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";

const VERSION_FIELDS: [&str; 9] =
    ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
const VERSION_RANGE: [&str; 4] = ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];

/// Types of no group that say what they are, as if they were of the first.
const OF_CORE: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

impl Dialect {
    pub(super) fn reference(self, name: &str) -> Value {
        json!({ "$ref": format!("{}{name}", self.folder()) })
    }

    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        }
    }
}

/// One schema as text, and the names of those that it refers to.
struct SchemaText {
    text: String,
    references: Vec<String>,
}

/// Schemas that were written once, for all documents that need them.
pub(super) struct Schemas {
    pub(super) dialect: Dialect,
    notes: Notes,
    lists: BTreeMap<String, KindRef>,
    /// The types of custom resources, by name.
    custom: BTreeMap<String, KindRef>,
    written: BTreeMap<String, SchemaText>,
}

impl Schemas {
    pub(super) fn new(dialect: Dialect, kinds: impl Iterator<Item = KindRef> + Clone) -> Self {
        let with_list = kinds.clone().filter(|it| it.allows(corten_kinds::Verb::List));
        let lists = with_list.map(|it| (format!("{}List", it.schema.name()), it)).collect();
        let custom = kinds.filter(|it| it.is_custom()).map(|it| (it.schema.name().to_owned(), it)).collect();
        Self { dialect, notes: Notes::read(), lists, custom, written: BTreeMap::new() }
    }

    /// What a field of a type that every document knows is for.
    pub(super) fn words(&self, of: &str, field: &str) -> &str {
        self.notes.of(of).and_then(|it| it.field(field)).map_or("", |it| &*it.description)
    }

    /// The schemas that the `roots` need, by name; `about` are the groups and versions that the document is about.
    pub(super) fn needed(&mut self, roots: Vec<String>, about: &[(&str, &str)]) -> BTreeMap<String, String> {
        let (mut found, mut open) = (BTreeMap::new(), roots);
        while let Some(name) = open.pop() {
            if found.contains_key(&name) {
                continue;
            }
            if !self.written.contains_key(&name) {
                let written = self.write(&name);
                self.written.insert(name.clone(), written);
            }
            let written = &self.written[&name];
            open.extend(written.references.iter().cloned());
            let mut text = written.text.clone();
            // These two are what they are in every group.
            if name == DELETE_OPTIONS || name == WATCH_EVENT {
                let kind = name.rsplit('.').next().unwrap_or_default();
                let kinds: Vec<Value> = about.iter().map(|(group, version)| gvk(group, version, kind)).collect();
                text.truncate(text.len() - 1);
                text += &format!(",\"x-kubernetes-group-version-kind\":{}}}", json!(kinds));
            }
            found.insert(name, text);
        }
        found
    }

    fn write(&self, name: &str) -> SchemaText {
        let mut schema = if let Some(kind) = self.custom.get(name) {
            custom::written(self, kind)
        } else if let Some(of) = corten_schema::find(name) {
            self.of_type(of)
        } else if let Some(kind) = self.lists.get(name) {
            self.list_of(kind)
        } else if name == WATCH_EVENT {
            self.watch_event()
        } else if name == VERSION {
            self.version()
        } else {
            self.of_own_form(name)
        };
        let description = self.notes.of(name).map_or("", |it| &*it.description);
        let fields = schema.as_object_mut().expect("a schema is an object");
        if !description.is_empty() {
            fields.insert("description".into(), json!(description));
        }
        fields.sort_keys();
        let mut references = Vec::new();
        collect(&schema, self.dialect.folder(), &mut references);
        SchemaText { text: schema.to_string(), references }
    }

    /// Types that are no object with fields.
    fn of_own_form(&self, name: &str) -> Value {
        let is_v2 = self.dialect == Dialect::V2;
        match name {
            TIME | MICRO_TIME => json!({ "type": "string", "format": "date-time" }),
            QUANTITY if is_v2 => json!({ "type": "string" }),
            QUANTITY => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
            INT_OR_STRING if is_v2 => json!({ "type": "string", "format": "int-or-string" }),
            INT_OR_STRING => {
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
            }
            _ if name.contains(".JSON") => json!({}),
            PATCH => json!({ "type": "object", "description": "A patch, in the form that its media type says." }),
            _ => json!({ "type": "object" }),
        }
    }

    fn shape(&self, shape: &Shape, own_form: Option<&str>) -> Value {
        let to = |name: &str| self.dialect.reference(name);
        match shape {
            Shape::String => json!({ "type": "string" }),
            Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
            Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
            Shape::Number => json!({ "type": "number", "format": "double" }),
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Time => to(TIME),
            Shape::MicroTime => to(MICRO_TIME),
            Shape::Bytes => json!({ "type": "string", "format": "byte" }),
            Shape::Any => own_form.map_or_else(|| json!({ "type": "object" }), to),
            Shape::Quantity => to(QUANTITY),
            Shape::IntOrString => to(INT_OR_STRING),
            Shape::Object(of) => to(of.name),
            Shape::List(of) => json!({ "type": "array", "items": self.shape(of, own_form) }),
            Shape::Map(of) => json!({ "type": "object", "additionalProperties": self.shape(of, own_form) }),
        }
    }

    /// A field of type `to`. Version 3 lets a reference stand beside nothing else.
    pub(super) fn referring(&self, to: &str, mut beside: Map<String, Value>) -> Value {
        let mut reference = self.dialect.reference(to);
        if self.dialect == Dialect::V3 && !beside.is_empty() {
            beside.insert("allOf".into(), json!([reference]));
            return Value::Object(beside);
        }
        reference.as_object_mut().expect("a reference is an object").append(&mut beside);
        reference
    }

    fn field(&self, field: &Field, note: &FieldNote) -> Value {
        let mut beside = extensions(&field.shape, field.merge, note.is_plain_list);
        beside.extend(note.extensions.clone());
        if !note.description.is_empty() {
            beside.insert("description".into(), json!(note.description));
        }
        // As kube-apiserver's: version 2 says no defaults, because old clients fill them in.
        if let Some(default) = note.default.as_ref().filter(|_| self.dialect == Dialect::V3) {
            beside.insert("default".into(), default.clone());
        }
        let mut schema = self.shape(&field.shape, note.own_form.as_deref());
        let Value::Object(fields) = &mut schema else { return schema };
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
            return self.referring(&name, beside);
        }
        fields.append(&mut beside);
        fields.sort_keys();
        schema
    }

    fn of_type(&self, of: &Type) -> Value {
        let (nothing, note) = (FieldNote::default(), self.notes.of(of.name));
        let field = |it: &Field| {
            let note = note.and_then(|note| note.field(it.name)).unwrap_or(&nothing);
            (it.name.to_owned(), self.field(it, note))
        };
        let properties: Map<String, Value> = of.fields.iter().map(field).collect();
        let required = required(of, note);
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
        let kinds = served_as(of.name);
        if !kinds.is_empty() {
            schema["x-kubernetes-group-version-kind"] = json!(kinds);
        }
        if let Some(unions) = note.and_then(|it| it.unions.as_ref()) {
            schema["x-kubernetes-unions"] = unions.clone();
        }
        schema
    }

    /// Text that is always there, as Go writes it.
    fn always_text(&self) -> Value {
        match self.dialect {
            Dialect::V2 => json!({ "type": "string" }),
            Dialect::V3 => json!({ "type": "string", "default": "" }),
        }
    }

    fn watch_event(&self) -> Value {
        let what = "The object as it became; as it was before it was deleted; or the Status of an error.";
        let object = self.referring(RAW, Map::from_iter([("description".into(), json!(what))]));
        json!({
            "type": "object",
            "description": "One change to a resource that is watched.",
            "required": ["type", "object"],
            "properties": { "object": object, "type": self.always_text() },
        })
    }

    /// What `/version` answers.
    fn version(&self) -> Value {
        let mut properties: Map<String, Value> =
            VERSION_FIELDS.iter().map(|it| ((*it).to_owned(), self.always_text())).collect();
        properties.extend(VERSION_RANGE.iter().map(|it| ((*it).to_owned(), json!({ "type": "string" }))));
        json!({
            "type": "object",
            "description": "The version of the server, and how it was built.",
            "required": VERSION_FIELDS,
            "properties": properties,
        })
    }

    fn list_of(&self, kind: &Kind) -> Value {
        let resource = &kind.resource;
        let words = |field: &str| json!({ "type": "string", "description": self.words(OBJECT, field) });
        let mut beside = Map::from_iter([("description".into(), json!("Standard list metadata."))]);
        if self.dialect == Dialect::V3 {
            beside.insert("default".into(), json!({}));
        }
        json!({
            "type": "object",
            "description": format!("{} is a list of objects of kind {}.", kind.list_kind(), resource.kind),
            "required": ["items"],
            "properties": {
                "apiVersion": words("apiVersion"),
                "items": {
                    "description": format!("The {} of the list.", resource.plural),
                    "items": self.dialect.reference(kind.schema.name()),
                    "type": "array",
                },
                "kind": words("kind"),
                "metadata": self.referring(LIST_META, beside),
            },
            "x-kubernetes-group-version-kind":
                [gvk(&resource.group, &resource.version, &kind.list_kind())],
        })
    }
}

/// The table says it of metadata too. Kubernetes mostly does not: whoever leaves it out is told so by the rules for names.
fn required<'a>(of: &'a Type, note: Option<&'a TypeNote>) -> Vec<&'a str> {
    let is_optional = |name: &str| note.and_then(|it| it.field(name)).is_some_and(|it| it.is_optional);
    let said = of.fields.iter().filter(|it| it.required && it.name != "metadata" && !is_optional(it.name));
    let more = note.into_iter().flat_map(|it| &it.required);
    let mut required: Vec<&str> = said.map(|it| it.name).chain(more.map(|it| &**it)).collect();
    required.sort_unstable();
    required
}

pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "kind": kind, "version": version })
}

/// What objects of this type call themselves.
fn served_as(name: &str) -> Vec<Value> {
    let short = name.rsplit('.').next().unwrap_or_default();
    if name.contains(".meta.v1.") {
        return if OF_CORE.contains(&short) { vec![gvk("", "v1", short)] } else { Vec::new() };
    }
    let own = KINDS.iter().filter(|it| it.schema.name() == name).map(|it| {
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

/// The names that a schema refers to.
fn collect(schema: &Value, folder: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix(folder)) {
                found.push(name.to_owned());
            }
            fields.values().for_each(|it| collect(it, folder, found));
        }
        Value::Array(items) => items.iter().for_each(|it| collect(it, folder, found)),
        _ => {}
    }
}

/// How patches and server-side apply merge the field, where somebody says so.
fn extensions(shape: &Shape, merge: &Merge, is_plain_list: bool) -> Map<String, Value> {
    let mut extensions = Map::new();
    let mut add = |name: &str, value: Value| extensions.insert(format!("x-kubernetes-{name}"), value);
    if matches!(shape, Shape::List(_)) {
        match merge.apply {
            Apply::ByKeys(keys) => {
                add("list-map-keys", json!(keys));
                add("list-type", json!("map"));
            }
            Apply::Set => _ = add("list-type", json!("set")),
            Apply::Atomic | Apply::Deep if is_plain_list => {}
            Apply::Atomic | Apply::Deep => _ = add("list-type", json!("atomic")),
        }
    }
    if matches!(shape, Shape::Map(_) | Shape::Object(_)) {
        if merge.apply == Apply::Atomic {
            add("map-type", json!("atomic"));
        }
        if merge.patch == Patch::Replace {
            add("patch-strategy", json!("replace"));
        }
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
