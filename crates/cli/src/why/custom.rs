//! The kinds that definitions in the cluster describe: read off the definitions, and by whoever may not read those, off
//! what the server says that it serves.

use std::collections::BTreeMap;

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_client::Error;
use corten_kinds::{
    Kind,
    custom::{has_condition, rows},
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    fields::{items, text},
    reader::Reader,
};

/// One row for each definition that is established: of the version that its objects are stored in, where that is served.
pub(super) async fn kinds(reader: &Reader<'_>) -> Vec<&'static Kind> {
    let definitions = match reader.try_list(&CUSTOM_RESOURCE_DEFINITIONS).await {
        Ok(definitions) => definitions,
        Err(_) => return discovered(&reader.groups().await),
    };
    definitions.iter().filter(|it| has_condition(it, "Established")).filter_map(known).collect()
}

/// What is served and is no kind of this release, of each group in the version that the server prefers.
fn discovered(groups: &[Value]) -> Vec<&'static Kind> {
    let mut rows: BTreeMap<String, Option<&'static Kind>> = BTreeMap::new();
    for group in groups {
        for version in items(group, "/versions") {
            for resource in items(version, "/resources") {
                let name = format!("{}.{}", text(resource, "/resource"), text(group, "/metadata/name"));
                let can_be_read =
                    ["get", "list"].iter().all(|verb| items(resource, "/verbs").iter().any(|it| it == verb));
                if can_be_read && corten_kinds::by_qualified(&name).is_none() {
                    rows.entry(name).or_insert_with_key(|name| known(&definition_of(name, version, resource)));
                }
            }
        }
    }
    rows.into_values().flatten().collect()
}

/// As much of the definition as discovery tells of it.
fn definition_of(name: &str, version: &Value, resource: &Value) -> Value {
    let has_status = items(resource, "/subresources").iter().any(|it| it["subresource"] == "status");
    // Servers may leave out the singular.
    let kind = text(resource, "/responseKind/kind");
    let singular = Some(text(resource, "/singularResource")).filter(|it| !it.is_empty());
    let singular = singular.map_or_else(|| kind.to_lowercase(), str::to_owned);
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    json!({
        "metadata": {"name": name, "uid": name},
        "spec": {
            "group": name.split_once('.').map(|it| it.1),
            "scope": if resource["scope"] == "Namespaced" { "Namespaced" } else { "Cluster" },
            "names": {
                "plural": resource["resource"], "singular": singular,
                "kind": kind, "shortNames": resource["shortNames"],
            },
            "versions": [{"name": version["version"], "served": true, "storage": true, "subresources": subresources}],
        },
    })
}

/// The kind that an object says it is of; none as well where it is not known what is served.
pub(super) async fn kind_served(reader: &Reader<'_>, api_version: &str, kind: &str) -> Option<&'static Kind> {
    if let Some(kind) = corten_kinds::by_kind(api_version, kind) {
        return Some(kind);
    }
    let group = api_version.split_once('/').map_or("", |it| it.0);
    let is_it = |it: &&'static Kind| it.resource.group == *group && it.resource.kind == *kind;
    match kinds(reader).await.into_iter().find(|it| is_it(it)) {
        Some(kind) => Some(kind),
        // What another API server serves has no definition.
        None => discovered(&reader.groups().await).into_iter().find(|it| is_it(it)),
    }
}

/// Does the server say what is served?
pub(super) async fn is_known(reader: &Reader<'_>) -> bool {
    !reader.groups().await.is_empty()
}

/// True where it is known that nobody serves such a kind.
pub(super) async fn is_unserved(reader: &Reader<'_>, api_version: &str, kind: &str) -> bool {
    is_known(reader).await && kind_served(reader, api_version, kind).await.is_none()
}

/// The name of the definition of a custom object.
pub(super) async fn definition_name(reader: &Reader<'_>, object: &Value) -> Option<String> {
    let kind = kind_served(reader, text(object, "/apiVersion"), text(object, "/kind")).await?;
    kind.is_custom().then(|| kind.resource.qualified())
}

/// A built-in kind by a name of it, or one that the cluster has besides.
pub(super) async fn kind_named(reader: &Reader<'_>, name: &str) -> Option<&'static Kind> {
    match corten_kinds::by_name(name) {
        Some(kind) => Some(kind),
        None => custom_kind(reader, name).await.ok().flatten(),
    }
}

/// The row of a definition as it is now, made once for the whole command, however often that asks: rows are kept to its end.
fn known(definition: &Value) -> Option<&'static Kind> {
    static KNOWN: Mutex<BTreeMap<String, Option<&'static Kind>>> = Mutex::new(BTreeMap::new());
    let metadata = &definition["metadata"];
    let version = format!("{} {} {}", metadata["name"], metadata["uid"], metadata["resourceVersion"]);
    *KNOWN.lock().entry(version).or_insert_with(|| row(definition))
}

fn row(definition: &Value) -> Option<&'static Kind> {
    let mut definition = definition.clone();
    // What the objects are called is all that is asked here: schemas take long to read.
    for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"] = Value::Null;
    }
    let rows = rows(&definition)?;
    let is_stored = rows.served.iter().find(|it| it.resource == rows.stored.resource).cloned();
    let row = is_stored.or_else(|| rows.served.first().cloned())?;
    Some(Box::leak(Box::new(row)))
}

/// The kind that a word names, in any spelling that kubectl takes: `crontab`, `ct`, `crontabs.stable.example.com`.
pub(crate) async fn custom_kind(reader: &Reader<'_>, word: &str) -> Result<Option<&'static Kind>, Error> {
    let kinds = kinds(reader).await;
    if let Some(error) = reader.unreachable() {
        return Err(Error::Transport(error));
    }
    let is_named = |kind: &Kind, name: &str| {
        kind.resource.plural == name
            || kind.singular == name
            || kind.short_names.contains(name)
            || kind.resource.kind.to_lowercase() == name
    };
    let of_group = |kind: &Kind| {
        let rest = word.split_once('.').map(|(name, rest)| {
            (name, rest.strip_prefix(&*kind.resource.version).and_then(|it| it.strip_prefix('.')).unwrap_or(rest))
        });
        rest.is_some_and(|(name, group)| group == kind.resource.group && is_named(kind, name))
    };
    let is_it = |it: &&'static Kind| is_named(it, word) || of_group(it);
    Ok(match kinds.into_iter().find(is_it) {
        Some(kind) => Some(kind),
        // What another API server serves has no definition.
        None => discovered(&reader.groups().await).into_iter().find(is_it),
    })
}
