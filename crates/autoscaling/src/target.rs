//! What an autoscaler scales: the `scale` of an object of any kind.

use corten_kinds::KINDS;
use corten_meta::{Key, Resource};
use corten_reconcile::{
    ApiPath, View,
    served::{ApiGroup, defined_as},
};
use serde::{Deserialize, Serialize};

/// A CrossVersionObjectReference.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Reference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// The target as its `scale` shows it.
pub(crate) struct Target {
    pub(crate) resource: Resource,
    pub(crate) key: Key,
    pub(crate) scale: Scale,
}

#[derive(Deserialize)]
pub(crate) struct Scale {
    #[serde(default)]
    pub(crate) metadata: ScaleMeta,
    #[serde(default)]
    pub(crate) spec: Replicas,
    #[serde(default)]
    pub(crate) status: ScaleStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ScaleMeta {
    pub(crate) uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Replicas {
    pub(crate) replicas: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ScaleStatus {
    pub(crate) replicas: i64,
    pub(crate) selector: String,
}

/// The group of a version such as `apps/v1`; the core group's has no name.
fn group_of(api_version: &str) -> Result<&str, String> {
    match api_version.split('/').collect::<Vec<_>>()[..] {
        [_] => Ok(""),
        [group, _] => Ok(group),
        _ => Err(format!("unexpected GroupVersion string: {api_version}")),
    }
}

/// The resources whose objects are of this kind, in whichever version (`RESTMapper.RESTMappings`).
pub(crate) fn resources_of(view: &View, reference: &Reference) -> Result<Vec<Resource>, String> {
    let group = group_of(&reference.api_version)?;
    let is_it = |it: &Resource| *it.group == *group && *it.kind == *reference.kind;
    let built_in = KINDS.iter().filter(|it| it.view_of.is_none() && is_it(&it.resource)).map(|it| it.resource.clone());
    let mut found: Vec<Resource> = built_in.chain(defined_as(view, group, &reference.kind)).collect();
    if found.is_empty() {
        found.extend(elsewhere(view, group).find(|it| is_it(it)));
    }
    match found.is_empty() {
        true => Err(format!("no matches for kind {:?} in group {group:?}", reference.kind)),
        false => Ok(found),
    }
}

/// What discovery says of a group that another server serves.
fn elsewhere<'a>(view: &'a View, group: &'a str) -> impl Iterator<Item = Resource> + 'a {
    let groups = view.get::<ApiGroup>(&Key::cluster(group)).into_iter();
    groups.flat_map(|it| &it.versions).flat_map(move |version| {
        version.resources.iter().map(move |it| Resource {
            group: group.to_owned().into(),
            version: version.version.clone().into(),
            kind: it.response_kind.kind.clone().into(),
            plural: it.resource.clone().into(),
            namespaced: it.scope == "Namespaced",
        })
    })
}

/// The target, why there is none, or what is to be looked at first (`scaleForResourceMappings`: the first error counts).
pub(crate) fn target(view: &View, own: &Key, to: &Reference) -> Result<Result<Target, String>, ApiPath> {
    let resources = match resources_of(view, to) {
        Ok(resources) => resources,
        Err(why) => return Ok(Err(why)),
    };
    let key = Key::new(&*own.namespace, &*to.name);
    let mut first_error = None;
    for resource in resources {
        match scale_of(view, own, &resource, &key)? {
            Ok(scale) => return Ok(Ok(Target { resource, key, scale })),
            Err(why) => first_error = first_error.or(Some(why)),
        }
    }
    Ok(Err(first_error.unwrap_or_else(|| "unrecognized resource".into())))
}

fn scale_of(view: &View, own: &Key, resource: &Resource, key: &Key) -> Result<Result<Scale, String>, ApiPath> {
    // `HorizontalController.scaleForResourceMappings` asks for the scale in a namespace, where a cluster-scoped resource is not found.
    if !resource.namespaced {
        return Ok(Err("the server could not find the requested resource".into()));
    }
    let path = ApiPath { path: format!("{}/scale", resource.path(key)), query: Vec::new() };
    match view.fetched(own, &path) {
        None => Err(path),
        Some(Err(why)) => Ok(Err(why.clone())),
        Some(Ok(body)) => Ok(serde_json::from_slice(body).map_err(|error| error.to_string())),
    }
}
