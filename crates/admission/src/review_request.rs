//! A write as others are shown it: `request` of an AdmissionReview, which is `request` in expressions, too.

use std::borrow::Cow;

use corten_access::identity::UserInfo;
use corten_api::resources::NAMESPACES;
use corten_cacher::watch_cache::versions;
use corten_kinds::{Kind, Subresource};
use corten_meta::Status;
use corten_policies::matching::{self, GroupVersionResource};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json, value::RawValue};

use crate::plugin::{Attributes, Operation};

/// What metadata gets only once nobody can change the object any more.
const GIVEN_LATER: [&str; 3] = ["uid", "creationTimestamp", "generation"];

pub(crate) fn operation(of: Operation) -> matching::Operation {
    match of {
        Operation::Create => matching::Operation::Create,
        Operation::Update => matching::Operation::Update,
        Operation::Delete => matching::Operation::Delete,
        Operation::Connect => matching::Operation::Connect,
    }
}

pub(crate) fn place(kind: &Kind) -> GroupVersionResource<'_> {
    let resource = &kind.resource;
    GroupVersionResource { group: &resource.group, version: &resource.version, plural: &resource.plural }
}

/// As in the generic handlers: a Namespace is in itself.
pub(crate) fn namespace<'a>(request: &Attributes<'a>, object: &'a Value) -> &'a str {
    if request.kind.resource == NAMESPACES { name(request, object) } else { request.namespace }
}

pub(crate) fn name<'a>(request: &Attributes<'a>, object: &'a Value) -> &'a str {
    if !request.name.is_empty() || request.generated_name {
        return request.name;
    }
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Group, version and kind of what a subresource takes, where it is not the object itself.
fn part(kind: &Kind, subresource: Subresource) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match subresource {
        Subresource::Scale => ("autoscaling", "v1", "Scale"),
        Subresource::Binding => ("", "v1", "Binding"),
        Subresource::Eviction => ("policy", "v1", "Eviction"),
        Subresource::Token => ("authentication.k8s.io", "v1", "TokenRequest"),
        Subresource::Exec => ("", "v1", "PodExecOptions"),
        Subresource::Attach => ("", "v1", "PodAttachOptions"),
        Subresource::PortForward => ("", "v1", "PodPortForwardOptions"),
        Subresource::Proxy => match &*kind.resource.plural {
            "nodes" => ("", "v1", "NodeProxyOptions"),
            "services" => ("", "v1", "ServiceProxyOptions"),
            _ => ("", "v1", "PodProxyOptions"),
        },
        Subresource::Status
        | Subresource::Finalize
        | Subresource::Log
        | Subresource::Approval
        | Subresource::EphemeralContainers
        | Subresource::Resize => return None,
    })
}

#[derive(Clone, Copy, Serialize)]
struct GroupVersionKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl<'a> GroupVersionKind<'a> {
    fn of(row: &'a Kind, subresource: Option<Subresource>) -> Self {
        let resource = &row.resource;
        let whole = (&*resource.group, &*resource.version, &*resource.kind);
        let (group, version, kind) = subresource.and_then(|it| part(row, it)).unwrap_or(whole);
        Self { group, version, kind }
    }
}

#[derive(Clone, Copy, Serialize)]
struct ResourceOf<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

impl<'a> ResourceOf<'a> {
    fn of(row: &'a Kind) -> Self {
        let resource = &row.resource;
        Self { group: &resource.group, version: &resource.version, resource: &resource.plural }
    }
}

/// `admission.k8s.io/v1 AdmissionRequest` without its objects, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Described<'a> {
    uid: &'a str,
    kind: GroupVersionKind<'a>,
    resource: ResourceOf<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: GroupVersionKind<'a>,
    request_resource: ResourceOf<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'a str,
    user_info: UserInfo<'a>,
    dry_run: bool,
    options: Value,
}

/// The request in the version of `row`, without its objects.
pub(crate) fn described<'a>(
    request: &'a Attributes<'a>,
    row: &'a Kind,
    object: &'a Value,
    uid: &'a str,
) -> Described<'a> {
    let below = request.subresource.map_or("", Subresource::as_str);
    Described {
        uid,
        kind: GroupVersionKind::of(row, request.subresource),
        resource: ResourceOf::of(row),
        sub_resource: below,
        request_kind: GroupVersionKind::of(request.asked, request.subresource),
        request_resource: ResourceOf::of(request.asked),
        request_sub_resource: below,
        name: name(request, object),
        namespace: namespace(request, object),
        operation: operation(request.operation).as_str(),
        user_info: UserInfo::of(request.who),
        dry_run: request.dry_run,
        options: request.form.options(),
    }
}

/// The same as a value, for expressions.
pub(crate) fn request(request: &Attributes<'_>, row: &Kind, object: &Value) -> Value {
    json!(described(request, row, object, ""))
}

/// An object of the request in the version of `row`, to be written: it is copied only where it is shown otherwise than it is.
///
/// # Errors
/// See [`shown`].
pub(crate) async fn written<'v>(
    request: &Attributes<'_>,
    row: &Kind,
    object: &'v Value,
) -> Result<Cow<'v, Value>, Status> {
    let is_as_it_is = is_whole(request) && versions::is_shown_as_it_is(row, object);
    if is_as_it_is { Ok(Cow::Borrowed(object)) } else { shown(request, row, object).await.map(Cow::Owned) }
}

/// An object that may still have its owners as one text, written with the list that others are shown.
pub(crate) struct WithOwners<'v>(pub(crate) &'v Value);

impl Serialize for WithOwners<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0["metadata"]["managedFields"].as_str();
        let list = text.and_then(|it| serde_json::from_str::<&RawValue>(it).ok());
        let (Value::Object(fields), Some(list)) = (self.0, list) else { return self.0.serialize(serializer) };
        let mut written = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    written.serialize_entry(name, &OwnersSpelledOut { metadata, list })?;
                }
                _ => written.serialize_entry(name, value)?,
            }
        }
        written.end()
    }
}

struct OwnersSpelledOut<'v> {
    metadata: &'v Map<String, Value>,
    list: &'v RawValue,
}

impl Serialize for OwnersSpelledOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = serializer.serialize_map(Some(self.metadata.len()))?;
        for (name, value) in self.metadata {
            if name == "managedFields" {
                written.serialize_entry(name, self.list)?;
            } else {
                written.serialize_entry(name, value)?;
            }
        }
        written.end()
    }
}

/// An object of the request as it is shown in the version of `row`; null where there is none.
///
/// # Errors
/// 500 where a webhook must convert it, and does not.
pub(crate) async fn shown(request: &Attributes<'_>, row: &Kind, object: &Value) -> Result<Value, Status> {
    if object.is_null() {
        return Ok(Value::Null);
    }
    if let Some(scale) = request.form.scale(object) {
        return Ok(scale);
    }
    let mut shown = object.clone();
    if is_whole(request) {
        spell_out_owners(&mut shown);
        return request.converted.get(&request.cluster.conversion, row, shown).await;
    }
    Ok(shown)
}

/// What others made of an object that they were shown in the version of `row`, as the request's own version has it.
///
/// # Errors
/// 500 where a webhook must convert it, and does not.
pub(crate) async fn taken(request: &Attributes<'_>, row: &Kind, mut object: Value) -> Result<Value, Status> {
    versions::to_stored(row, &mut object);
    if row.is_custom() { request.cluster.conversion.object(request.kind, object).await } else { Ok(object) }
}

/// Is the request about the object itself, or a part that has its form?
pub(crate) fn is_whole(request: &Attributes<'_>) -> bool {
    request.subresource.is_none_or(|it| part(request.kind, it).is_none())
}

/// The object that selectors look at.
pub(crate) fn selected<'v>(request: &Attributes<'_>, object: &'v Value) -> Option<Cow<'v, Value>> {
    if object.is_null() {
        return None;
    }
    Some(request.form.scale(object).map_or(Cow::Borrowed(object), Cow::Owned))
}

/// The type of what a subresource takes, where it is not the object itself.
pub(crate) fn part_schema(request: &Attributes<'_>) -> Option<&'static str> {
    Some(match request.subresource? {
        Subresource::Scale => "io.k8s.api.autoscaling.v1.Scale",
        Subresource::Eviction => "io.k8s.api.policy.v1.Eviction",
        Subresource::Token => "io.k8s.api.authentication.v1.TokenRequest",
        Subresource::Binding => "io.k8s.api.core.v1.Binding",
        _ => return None,
    })
}

/// Between the store and the next write the owners are one text; others are shown a list.
fn spell_out_owners(object: &mut Value) {
    let Some(text) = object["metadata"]["managedFields"].as_str() else { return };
    if let Ok(list) = serde_json::from_str::<Value>(text) {
        object["metadata"]["managedFields"] = list;
    }
}

/// Takes away what an object that is to be created gets only after it was admitted.
pub(crate) fn hide_what_is_given_later(request: &Attributes<'_>, shown: &mut Value) {
    if !is_new(request) {
        return;
    }
    let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for name in GIVEN_LATER {
        metadata.shift_remove(name);
    }
    if request.generated_name {
        metadata.shift_remove("name");
    }
}

/// Gives it back. A name that somebody gave stays.
pub(crate) fn restore_what_is_given_later(request: &Attributes<'_>, object: &mut Value, before: &Value) {
    if !is_new(request) {
        return;
    }
    let named = object["metadata"]["name"].as_str().is_some_and(|it| !it.is_empty());
    let names = GIVEN_LATER.iter().copied().chain((request.generated_name && !named).then_some("name"));
    for name in names {
        match before["metadata"].get(name) {
            Some(value) => object["metadata"][name] = value.clone(),
            None => {
                object["metadata"].as_object_mut().map(|it| it.shift_remove(name));
            }
        }
    }
}

fn is_new(request: &Attributes<'_>) -> bool {
    request.operation == Operation::Create && request.subresource.is_none()
}
