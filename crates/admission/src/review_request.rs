//! A write as others are shown it: `request` of an AdmissionReview, which is `request` in expressions, too.

use std::borrow::Cow;

use corten_access::identity::user_info;
use corten_api::resources::NAMESPACES;
use corten_cacher::watch_cache::versions;
use corten_kinds::{Kind, Subresource};
use corten_meta::Status;
use corten_policies::matching::{self, GroupVersionResource};
use serde_json::{Value, json};

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

/// The request in the version of `row`, without its objects.
pub(crate) fn request(request: &Attributes<'_>, row: &Kind, object: &Value, uid: &str) -> Value {
    let (asked, subresource) = (&request.asked, request.subresource);
    let kind_of = |row: &Kind| {
        let resource = &row.resource;
        let whole = (&*resource.group, &*resource.version, &*resource.kind);
        let (group, version, kind) = subresource.and_then(|it| part(row, it)).unwrap_or(whole);
        json!({ "group": group, "version": version, "kind": kind })
    };
    let resource_of = |row: &Kind| {
        let resource = &row.resource;
        json!({ "group": resource.group, "version": resource.version, "resource": resource.plural })
    };
    let mut out = json!({ "uid": uid, "kind": kind_of(row), "resource": resource_of(row) });
    let below = subresource.map_or("", Subresource::as_str);
    if !below.is_empty() {
        out["subResource"] = below.into();
    }
    out["requestKind"] = kind_of(asked);
    out["requestResource"] = resource_of(asked);
    if !below.is_empty() {
        out["requestSubResource"] = below.into();
    }
    for (field, text) in [("name", name(request, object)), ("namespace", namespace(request, object))] {
        if !text.is_empty() {
            out[field] = text.into();
        }
    }
    out["operation"] = operation(request.operation).as_str().into();
    out["userInfo"] = user_info(request.who);
    out["dryRun"] = request.dry_run.into();
    out["options"] = request.form.options();
    out
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
