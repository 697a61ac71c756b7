//! Keeps an APIService for each group and version that this server itself serves (`autoRegisterController`, `crdRegistrationController`):
//! the built-in ones, and those of custom resources as they come and go. One that names another server is left alone; when it is deleted,
//! its place is taken again.

use std::collections::BTreeSet;

use corten_api::resources::API_SERVICES;
use corten_kinds::{KINDS, KindRef, Kinds};
use corten_meta::{Key, Resource, Status};
use corten_openapi::discovery::priorities;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use corten_cacher::watch_cache::Caches;

use crate::host::Host;

static API_SERVICES_AT: Resource = API_SERVICES;
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Groups of custom resources (`crdRegistrationController`).
const CUSTOM_GROUP_PRIORITY: i64 = 1000;

/// Makes the objects what they should be now.
///
/// # Errors
/// What a write is refused with.
pub(crate) async fn keep(caches: &Caches, host: &dyn Host) -> Result<(), Status> {
    let Some(cache) = caches.get(&API_SERVICES_AT) else { return Ok(()) };
    let snapshot = cache.snapshot();
    let wanted = wanted(&host.kinds());
    let names: BTreeSet<&str> = wanted.iter().map(name).collect();
    let stored = |name: &str| snapshot.get("", name).map(|it| it.parse());
    let mut writes: Vec<(Method, String, Value)> =
        wanted.iter().filter_map(|it| write(it.clone(), stored(name(it)))).collect();
    for object in snapshot.iter().filter(|it| !names.contains(it.name())) {
        if object.labels().get(AUTOMANAGED).is_some_and(|it| it == "true") {
            writes.push((Method::DELETE, API_SERVICES_AT.path(&Key::cluster(object.name())), json!({})));
        }
    }
    let sent = writes.into_iter().map(|(method, path, object)| async move {
        match host.send(method, path, object).await {
            // Somebody was faster: what is there then is looked at next.
            Err(status) if matches!(status.code, 404 | 409) => Ok(()),
            other => other,
        }
    });
    // Where one is refused, the others are sent all the same.
    join_all(sent).await.into_iter().collect()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// What makes `stored` what is wanted; `None` where it is so, or is somebody's own.
fn write(wanted: Value, stored: Option<Value>) -> Option<(Method, String, Value)> {
    let Some(mut stored) = stored else {
        return Some((Method::POST, API_SERVICES_AT.collection_path(""), wanted));
    };
    if stored["metadata"]["labels"][AUTOMANAGED] != "true" || wanted["metadata"]["labels"][AUTOMANAGED] != "true" {
        return None;
    }
    if stored["spec"] == wanted["spec"] {
        return None;
    }
    stored["spec"] = wanted["spec"].clone();
    let path = API_SERVICES_AT.path(&Key::cluster(name(&stored)));
    Some((Method::PUT, path, stored))
}

fn wanted(kinds: &Kinds) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut seen = BTreeSet::new();
    for kind in KINDS.iter() {
        let (group, version) = (&*kind.resource.group, &*kind.resource.version);
        if seen.insert((group.to_owned(), version.to_owned())) {
            let priorities = (priorities::of_group(group), priorities::of_version(group, version));
            objects.push(object(group, version, priorities, "onstart"));
        }
    }
    for kind in kinds.custom() {
        let KindRef::Custom(kind) = kind else { continue };
        let (group, version) = (kind.resource.group.to_string(), kind.resource.version.to_string());
        if seen.insert((group.clone(), version.clone())) {
            let priorities = (CUSTOM_GROUP_PRIORITY, priorities::OF_CUSTOM_VERSIONS);
            objects.push(object(&group, &version, priorities, "true"));
        }
    }
    objects
}

fn object(group: &str, version: &str, (of_group, of_version): (i64, i64), managed: &str) -> Value {
    let mut spec = json!({ "version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version });
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    json!({
        "apiVersion": API_SERVICES_AT.api_version(),
        "kind": API_SERVICES_AT.kind,
        "metadata": { "name": format!("{version}.{group}"), "labels": { AUTOMANAGED: managed } },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_somebodys_own_is_left_alone() {
        let wanted = object("a.example", "v1", (1000, 100), "true");
        assert_eq!(write(wanted.clone(), None).map(|it| it.0), Some(Method::POST));
        assert_eq!(write(wanted.clone(), Some(wanted.clone())), None);
        let mut others = wanted.clone();
        others["spec"]["service"] = json!({ "name": "s", "namespace": "n" });
        assert_eq!(write(wanted.clone(), Some(others.clone())).map(|it| it.0), Some(Method::PUT));
        others["metadata"]["labels"] = json!({});
        assert_eq!(write(wanted, Some(others)), None);
    }
}
