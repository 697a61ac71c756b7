//! One value, by its key: from the JSON that Corten works with to the bytes that Kubernetes stores, and back.
//!
//! Bytes are read in whatever form they are: protobuf, JSON, YAML or CBOR, in the stored version, in one that is served beside it,
//! or in one that was served once. They are written in one form alone.

use std::sync::LazyLock;

use bytes::Bytes;
use corten_cacher::{
    codec::read_yaml,
    watch_cache::{built_in_of_key, encode, resource_of_key, versions},
};
use corten_kinds::{Kind, Schema, by_kind, by_path};
use corten_meta::{Resource, depth};
use corten_schema::proto;
use serde_json::Value;

use crate::{cbor, custom_resource_definition as definition, go_json, predecessors::successor};

/// What every protobuf body begins with.
const PROTOBUF: &[u8] = b"k8s\0";

/// The versions that kube-apiserver stores objects in where they are not Corten's: resource, group, version. Kubernetes stores the
/// newest version that the release before could read, too.
const OTHER_VERSIONS: &[(&str, &str, &str)] = &[
    ("mutatingadmissionpolicies", "admissionregistration.k8s.io", "v1beta1"),
    ("mutatingadmissionpolicybindings", "admissionregistration.k8s.io", "v1beta1"),
    ("clustertrustbundles", "certificates.k8s.io", "v1beta1"),
    ("podcertificaterequests", "certificates.k8s.io", "v1beta1"),
    ("devicetaintrules", "resource.k8s.io", "v1alpha3"),
    ("storageversionmigrations", "storagemigration.k8s.io", "v1beta1"),
];

/// The value as Kubernetes stores it. What stands at a key of no object, and what is no object, stays as it is.
pub fn to_stored(key: &[u8], json: &Bytes) -> Bytes {
    if resource_of_key(key).is_none() {
        return json.clone();
    }
    let Ok(read) = depth::read(json) else { return json.clone() };
    if !read.value.is_object() || !read.is_whole {
        return json.clone();
    }
    match built_in_of_key(key) {
        Some(kind) => built_in(kind, read.value).into(),
        None => custom(read.value).into(),
    }
}

fn built_in(kind: &Kind, mut object: Value) -> Vec<u8> {
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("apiextensions.k8s.io", _) => return go_json::written(&definition::to_v1beta1(object)),
        ("apiregistration.k8s.io", _) => {
            return go_json::written(&go_json::in_order_of_fields(object, kind.schema.name()));
        }
        _ => {}
    }
    if let Some(written) = written_as(kind) {
        versions::from_stored(written, &mut object);
    }
    // Kinds that Kubernetes does not have are stored as those of definitions are.
    proto::whole(&object).unwrap_or_else(|| custom(object))
}

/// Keys are sorted, as those of Go's maps are.
fn custom(mut object: Value) -> Vec<u8> {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.shift_remove("resourceVersion");
    }
    object.sort_all_objects();
    go_json::written(&object)
}

/// The row of the version that Kubernetes stores, where that is not the row Corten stores.
fn written_as(kind: &Kind) -> Option<&'static Kind> {
    static ROWS: LazyLock<Vec<&'static Kind>> = LazyLock::new(|| {
        let rows = OTHER_VERSIONS.iter().filter_map(|(plural, group, version)| by_path(group, version, plural));
        rows.filter(|it| it.view_of.is_some()).collect()
    });
    ROWS.iter().copied().find(|it| it.view_of.as_ref().is_some_and(|view| view.stored == kind.resource))
}

/// The JSON that Corten works with.
///
/// # Errors
/// Why that cannot be told of the bytes.
pub fn from_stored(key: &[u8], stored: &Bytes) -> Result<Bytes, String> {
    if resource_of_key(key).is_none() {
        return Ok(stored.clone());
    }
    match built_in_of_key(key) {
        Some(kind) => of_built_in(kind, stored),
        None => of_custom(key, stored),
    }
}

fn of_built_in(kind: &'static Kind, stored: &[u8]) -> Result<Bytes, String> {
    let mut object = read(stored)?;
    let (api_version, name) = type_meta(&object)?;
    if name != kind.resource.kind && !is_event(kind, &name) {
        return Err(format!("a {name} in version {api_version:?} is not stored as a {}", kind.resource.kind));
    }
    if definition::is_v1beta1(&api_version) {
        object = definition::from_v1beta1(object);
    } else if let Some(version) = successor(&api_version, &name) {
        object["apiVersion"] = version.into();
    }
    let (api_version, name) = type_meta(&object)?;
    let asked = by_kind(&api_version, &name)
        .filter(|it| it.stored_row().resource == kind.resource)
        .ok_or_else(|| format!("no kind {name:?} is registered for version {api_version:?}"))?;
    if let Schema::Table(schema) = &asked.schema
        && !stored.starts_with(PROTOBUF)
    {
        let findings = corten_schema::check(schema, &object);
        if let Some(wrong) = findings.wrong_types.first() {
            return Err(wrong.message.clone());
        }
        corten_schema::prune(schema, &mut object);
    }
    versions::to_stored(asked, &mut object);
    kind.policy.default(&mut object);
    kind.schema.complete(&mut object);
    Ok(encode(&kind.resource, &object))
}

/// Events are one kind under two groups.
fn is_event(kind: &Kind, name: &str) -> bool {
    kind.resource.plural == "events" && name == "Event"
}

/// Its version is its own: whoever reads it knows what its definition says.
fn of_custom(key: &[u8], stored: &[u8]) -> Result<Bytes, String> {
    let object = read(stored)?;
    let (api_version, kind) = type_meta(&object)?;
    let (plural, in_key) = resource_of_key(key).unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    if group != in_key {
        return Err(format!("an object of version {api_version:?} is not stored in group {in_key:?}"));
    }
    let resource = Resource {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: kind.into(),
        plural: plural.into(),
        // Nobody asks the head.
        namespaced: true,
    };
    Ok(encode(&resource, &object))
}

fn read(stored: &[u8]) -> Result<Value, String> {
    let first = stored.iter().find(|it| !it.is_ascii_whitespace());
    let object = match first {
        _ if stored.starts_with(PROTOBUF) => proto::decode_stored(stored, successor).map_err(|it| it.to_string())?,
        _ if stored.starts_with(cbor::TAG) => cbor::read(stored)?,
        Some(b'{') => {
            let read = depth::read(stored).map_err(|it| depth::reason(&it))?;
            if !read.is_whole {
                return Err(depth::EXCEEDED.to_owned());
            }
            read.value
        }
        Some(_) => read_yaml::read(stored)?.0,
        None => return Err("the value is empty".into()),
    };
    if object.is_object() { Ok(object) } else { Err("the value is no object".into()) }
}

fn type_meta(object: &Value) -> Result<(String, String), String> {
    let text = |name: &str| object[name].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let kind = text("kind").ok_or("Object 'Kind' is missing")?;
    let api_version = text("apiVersion").ok_or("Object 'apiVersion' is missing")?;
    Ok((api_version, kind))
}
