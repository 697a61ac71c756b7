//! What other API servers say they serve, as far as it was heard: read into known fields, so that nothing else of it gets into
//! this server's own documents.

mod chosen;
mod converted;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    api_resource_discovery::{Resource, ResponseKind, Subresource},
    written::{Document, Writer},
};
use chosen::{chosen, n_values_at_most};

/// Which groups and versions other servers serve, in the place of what is here.
#[derive(Default)]
pub struct Aggregated(BTreeMap<(String, String), AggregatedVersion>);

/// One group and version.
#[derive(Clone, Default)]
pub struct AggregatedVersion {
    pub group: String,
    pub version: String,
    /// `groupPriorityMinimum` and `versionPriority` of the APIService.
    pub group_priority: i64,
    pub version_priority: i64,
    /// Does it answer now? Else what is here was heard before (`freshness: Stale`).
    pub is_current: bool,
    pub resources: Arc<Resources>,
    pub v3: Option<Arc<Description>>,
    pub v2: Option<Arc<Swagger>>,
}

impl Aggregated {
    pub fn of(versions: impl IntoIterator<Item = AggregatedVersion>) -> Self {
        Self(versions.into_iter().map(|it| ((it.group.clone(), it.version.clone()), it)).collect())
    }

    pub fn serves(&self, group: &str, version: &str) -> bool {
        // Most clusters have none, and each request asks.
        !self.0.is_empty() && self.0.contains_key(&(group.to_owned(), version.to_owned()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &AggregatedVersion> {
        self.0.values()
    }

    pub(crate) fn v3(&self, path: &str) -> Option<&Document> {
        let (group, version) = path.strip_prefix("apis/")?.split_once('/')?;
        self.0.get(&(group.to_owned(), version.to_owned()))?.v3.as_ref().map(|it| &it.0)
    }
}

impl AggregatedVersion {
    /// `apis/GROUP/VERSION`.
    pub fn path(&self) -> String {
        format!("apis/{}/{}", self.group, self.version)
    }
}

/// The resources of a group and version, as aggregated discovery writes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resources(pub(crate) Vec<Value>);

#[derive(Deserialize)]
struct GroupList {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    metadata: Name,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

/// The older form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    group_version: String,
    #[serde(default)]
    resources: Vec<DiscoveredResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

impl Resources {
    /// From an `APIGroupDiscoveryList`. `None` where the group and version is not in it.
    ///
    /// # Errors
    /// It is none.
    pub fn of_discovery(json: &[u8], group: &str, version: &str) -> Result<Option<Self>, serde_json::Error> {
        let list: GroupList = serde_json::from_slice(json)?;
        let found = list.items.into_iter().filter(|it| it.metadata.name == group).flat_map(|it| it.versions);
        let found = found.into_iter().find(|it| it.version == version);
        let n = found.iter().flat_map(|it| &it.resources).map(|it| 1 + it.subresources.len()).sum();
        refuse_many(n)?;
        Ok(found.map(|it| Self(it.resources.iter().map(Resource::written).collect())))
    }

    /// From an `APIResourceList`, which other servers answer at `/apis/GROUP/VERSION`.
    ///
    /// # Errors
    /// It is none.
    pub fn of_list(json: &[u8]) -> Result<Self, serde_json::Error> {
        let list: ResourceList = serde_json::from_slice(json)?;
        refuse_many(list.resources.len())?;
        let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
        let kind = |it: &DiscoveredResource| {
            let or = |own: &str, outer: &str| if own.is_empty() { outer.to_owned() } else { own.to_owned() };
            ResponseKind { group: or(&it.group, group), version: or(&it.version, version), kind: it.kind.clone() }
        };
        let mut resources: Vec<Resource> = Vec::new();
        for listed in list.resources.iter().filter(|it| !it.name.contains('/')) {
            resources.push(Resource {
                resource: listed.name.clone(),
                response_kind: Some(kind(listed)),
                scope: if listed.namespaced { "Namespaced" } else { "Cluster" }.into(),
                singular_resource: listed.singular_name.clone(),
                verbs: listed.verbs.clone(),
                short_names: listed.short_names.clone(),
                categories: listed.categories.clone(),
                subresources: Vec::new(),
            });
        }
        for listed in &list.resources {
            let Some((parent, name)) = listed.name.split_once('/') else { continue };
            let parent = resources.iter_mut().find(|it| it.resource == parent);
            let below = || Subresource {
                subresource: name.to_owned(),
                response_kind: Some(kind(listed)),
                verbs: listed.verbs.clone(),
            };
            if let Some(parent) = parent {
                parent.subresources.push(below());
            }
        }
        Ok(Self(resources.iter().map(Resource::written).collect()))
    }
}

fn refuse_many(n: usize) -> Result<(), serde_json::Error> {
    if n <= RESOURCES_MAX {
        return Ok(());
    }
    Err(serde::de::Error::custom(format!("it lists {n} resources, and at most {RESOURCES_MAX} are read")))
}

/// A document of OpenAPI v3, kept compressed.
pub struct Description(Document);

impl Description {
    /// # Errors
    /// It is no such document.
    pub fn of(json: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(json).map_err(|it| it.to_string())?;
        if !members(text, "openapi")?.iter().any(|it| it.0 == "openapi") {
            return Err("it has no field `openapi`".into());
        }
        let this = Self::written(json);
        // As it is it can be passed on; to be written otherwise it would be in memory, value by value.
        if n_values_at_most(text) > VALUES_MAX {
            this.0.has_no_protobuf();
        }
        Ok(this)
    }

    /// What a server that has OpenAPI v2 alone would say.
    pub fn of_swagger(swagger: &Swagger) -> Self {
        Self::written(converted::document(swagger).to_string().as_bytes())
    }

    fn written(json: &[u8]) -> Self {
        let mut writer = Writer::new();
        writer.write(json);
        Self(writer.finish())
    }
}

/// What a document of OpenAPI v2 says of one group and version, by path and by name.
#[derive(Default)]
pub struct Swagger {
    info: Value,
    pub(crate) paths: BTreeMap<String, Value>,
    pub(crate) definitions: BTreeMap<String, Value>,
}

const DEFINITIONS: &str = "#/definitions/";
/// More definitions, or paths of one group and version, than any server has; what is read here is read beside requests.
const MEMBERS_MAX: usize = 10_000;
/// Of one group and version, all levels together: each costs some hundred bytes as long as it is read, or merged.
const VALUES_MAX: usize = 200_000;
/// Of one group and version, with what is below them.
const RESOURCES_MAX: usize = 2_000;

impl Swagger {
    /// The paths below `prefix` (`/apis/GROUP/VERSION/`), and the definitions that they lead to. Nothing else of the document is
    /// ever in memory but as its text.
    ///
    /// # Errors
    /// It is no such document, or more of it belongs to the group and version than any server has.
    pub fn of(json: &[u8], prefix: &str) -> Result<Self, String> {
        let text = std::str::from_utf8(json).map_err(|it| it.to_string())?;
        let mut document: HashMap<String, &RawValue> = members(text, "")?.into_iter().collect();
        if document.get("swagger").is_none_or(|it| it.get() != "\"2.0\"") {
            return Err("it is no document of OpenAPI 2.0".into());
        }
        let mut part = |name: &str| document.remove(name).map_or("{}", RawValue::get);
        let (paths_of_all, definitions_of_all, info) = (part("paths"), part("definitions"), part("info"));
        let mut n_values = 0;
        let mut read = |text: &str| {
            n_values += n_values_at_most(text);
            if n_values > VALUES_MAX {
                return Err(format!("more than {VALUES_MAX} values belong to it"));
            }
            let read = corten_meta::depth::read_answer(text.as_bytes()).map_err(|it| it.to_string())?;
            if read.is_whole { Ok(read.value) } else { Err("it is nested too deeply".to_owned()) }
        };
        let mut open = BTreeSet::new();
        let mut paths = BTreeMap::new();
        for (path, text) in members(paths_of_all, prefix)? {
            let path_item = read(text.get())?;
            references(&path_item, &mut open);
            paths.insert(path, path_item);
        }
        let mut all: HashMap<String, &RawValue> = members(definitions_of_all, "")?.into_iter().collect();
        let mut definitions = BTreeMap::new();
        while let Some(name) = open.pop_first() {
            if let Some(text) = all.remove(&name) {
                let definition = read(text.get())?;
                references(&definition, &mut open);
                definitions.insert(name, definition);
            }
        }
        Ok(Self { info: read(info)?, paths, definitions })
    }
}

fn members<'t>(text: &'t str, prefix: &str) -> Result<Vec<(String, &'t RawValue)>, String> {
    chosen(text, prefix, MEMBERS_MAX).map_err(|it| it.to_string())
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix(DEFINITIONS)) {
                found.insert(name.to_owned());
            }
            map.values().for_each(|it| references(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
