//! What is in the documents.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock, OnceLock},
};

use corten_kinds::{Kind, Kinds};
use prost::Message;
use serde_json::{Value, json};

use super::{
    gnostic::v2 as gnostic,
    merged,
    paths::{self, Paths},
    schemas::{Dialect, Schemas},
};
use crate::{
    aggregated::Aggregated,
    discovery::{Discovery, Version, groups},
    written::{Document, Writer, made},
};

/// The group and version that all documents are about.
const CORE: &[(&str, &str)] = &[("", "v1")];

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": "v1.37.0" })
}

/// Version 3 of what is built in: a document per group and version and for each list of them.
pub(super) struct V3Documents {
    /// By `api/v1`, `apis/apps/v1`, `apis/apps`.
    pub(super) documents: BTreeMap<String, Document>,
}

pub(super) static V3: LazyLock<V3Documents> = LazyLock::new(|| {
    let kinds = Kinds::default();
    let mut schemas = Schemas::new(Dialect::V3, kinds.iter());
    let mut documents = BTreeMap::new();
    for (name, paths) in paths::of_no_group() {
        documents.insert(name.to_owned(), v3(&mut schemas, &paths, CORE));
    }
    for group in groups(kinds.iter()) {
        if !group.name.is_empty() {
            documents.insert(format!("apis/{}", group.name), v3(&mut schemas, &paths::of_group(&group.name), CORE));
        }
        for version in group.versions {
            documents.insert(path_of(&version), of_version(&mut schemas, &group.name, &version));
        }
    }
    V3Documents { documents }
});

/// `apis/apps/v1`.
fn path_of(version: &Version) -> String {
    version.kinds[0].resource.group_path().trim_start_matches('/').to_owned()
}

fn of_version(schemas: &mut Schemas, group: &str, version: &Version) -> Document {
    // Options and events are those of the first group, and of the document's own.
    let about = if group.is_empty() { CORE.to_vec() } else { vec![CORE[0], (group, &*version.name)] };
    v3(schemas, &paths::of_version(&version.kinds), &about)
}

/// The documents of what is served at one moment, each made when it is first asked for.
#[derive(Default)]
pub struct Documents {
    kinds: Arc<Kinds>,
    aggregated: Arc<Aggregated>,
    discovery: OnceLock<Discovery>,
    /// Of the groups of custom resources, by the path below `/openapi/v3`.
    custom: BTreeMap<String, Arc<CustomDocument>>,
    index: OnceLock<Document>,
    v2_json: OnceLock<Document>,
    v2_protobuf: OnceLock<Document>,
}

/// One group and version, or the list of a group's versions.
struct CustomDocument {
    group: String,
    version: Option<Version>,
    document: OnceLock<Document>,
}

impl Documents {
    /// What `before` has made already and is still true is kept.
    pub fn of(kinds: Arc<Kinds>, aggregated: Arc<Aggregated>, before: &Self) -> Self {
        let mut custom = BTreeMap::new();
        for group in groups(kinds.custom()) {
            let path = format!("apis/{}", group.name);
            // A built-in group may get more kinds, but not in a version that it has.
            if !V3.documents.contains_key(&path) {
                custom.insert(path, CustomDocument::new(&group.name, None));
            }
            for version in group.versions {
                let path = path_of(&version);
                if !V3.documents.contains_key(&path) {
                    custom.insert(path, CustomDocument::new(&group.name, Some(version)));
                }
            }
        }
        for (path, document) in &mut custom {
            if let Some(known) = before.custom.get(path).filter(|it| it.is_about(document)) {
                *document = known.clone();
            }
        }
        Self { kinds, aggregated, custom, ..Self::default() }
    }

    pub fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    /// What other servers serve.
    pub fn aggregated(&self) -> &Arc<Aggregated> {
        &self.aggregated
    }

    pub fn discovery(&self) -> &Discovery {
        made(&self.discovery, || Discovery::of(&self.kinds, &self.aggregated))
    }

    pub(super) fn v3(&self, path: &str) -> Option<&Document> {
        self.aggregated
            .v3(path)
            .or_else(|| V3.documents.get(path))
            .or_else(|| self.custom.get(path).map(|it| it.document()))
    }

    pub(super) fn index(&self) -> &Document {
        made(&self.index, || {
            let custom = self.custom.iter().map(|(path, it)| (path, it.document()));
            let mut documents: BTreeMap<String, &Document> =
                V3.documents.iter().chain(custom).map(|(path, it)| (path.clone(), it)).collect();
            for version in self.aggregated.iter() {
                let path = version.path();
                match self.aggregated.v3(&path) {
                    Some(document) => documents.insert(path, document),
                    None => documents.remove(&path),
                };
            }
            let mut index = BTreeMap::new();
            for (path, document) in documents {
                let url = format!("/openapi/v3/{path}?hash={}", document.hash);
                index.insert(path, json!({ "serverRelativeURL": url }));
            }
            let mut writer = Writer::new();
            writer.write(json!({ "paths": index }).to_string().as_bytes());
            writer.finish()
        })
    }

    pub(super) fn v2_json(&self) -> &Document {
        made(&self.v2_json, || v2_json(&self.kinds, &self.aggregated))
    }

    pub(super) fn v2_protobuf(&self) -> &Document {
        made(&self.v2_protobuf, || v2_protobuf(&self.kinds, &self.aggregated))
    }
}

impl CustomDocument {
    fn new(group: &str, version: Option<Version>) -> Arc<Self> {
        Arc::new(Self { group: group.to_owned(), version, document: OnceLock::new() })
    }

    /// Is it of the same rows?
    fn is_about(&self, other: &Self) -> bool {
        let rows = |it: &Self| -> Vec<*const Kind> {
            it.version.iter().flat_map(|it| &it.kinds).map(|it| std::ptr::from_ref(&**it)).collect()
        };
        rows(self) == rows(other)
    }

    fn document(&self) -> &Document {
        made(&self.document, || match &self.version {
            Some(version) => {
                let mut schemas = Schemas::new(Dialect::V3, version.kinds.iter().cloned());
                of_version(&mut schemas, &self.group, version)
            }
            None => {
                let mut schemas = Schemas::new(Dialect::V3, std::iter::empty());
                v3(&mut schemas, &paths::of_group(&self.group), CORE)
            }
        })
    }
}

fn v3(schemas: &mut Schemas, paths: &Paths, about: &[(&str, &str)]) -> Document {
    let needed = schemas.needed(paths::roots(paths), about);
    let mut writer = Writer::new();
    writer.write(format!("{{\"openapi\":\"3.0.0\",\"info\":{},\"paths\":", info()).as_bytes());
    writer.write_members(items(schemas, Dialect::V3, paths));
    writer.write(b",\"components\":{\"schemas\":");
    writer.write_members(needed);
    let security = json!({ "BearerToken": bearer_token() });
    writer.write(format!(",\"securitySchemes\":{security}}}}}").as_bytes());
    writer.finish()
}

fn bearer_token() -> Value {
    json!({ "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header" })
}

fn items(schemas: &Schemas, dialect: Dialect, paths: &Paths) -> impl Iterator<Item = (String, String)> {
    paths.iter().map(move |(path, operations)| (path.clone(), paths::item(schemas, dialect, operations).to_string()))
}

/// Everything there is, in one document.
struct V2 {
    schemas: Schemas,
    paths: Paths,
    definitions: BTreeMap<String, String>,
}

fn v2(kinds: &Kinds) -> V2 {
    let mut all = Paths::new();
    let mut about: Vec<(String, String)> = Vec::new();
    for (_, paths) in paths::of_no_group() {
        all.extend(paths);
    }
    for group in groups(kinds.iter()) {
        if !group.name.is_empty() {
            all.extend(paths::of_group(&group.name));
        }
        for version in group.versions {
            about.push((group.name.clone(), version.name.clone()));
            all.extend(paths::of_version(&version.kinds));
        }
    }
    let mut schemas = Schemas::new(Dialect::V2, kinds.iter());
    let about: Vec<(&str, &str)> = about.iter().map(|(group, version)| (&**group, &**version)).collect();
    let definitions = schemas.needed(paths::roots(&all), &about);
    V2 { schemas, paths: all, definitions }
}

fn v2_json(kinds: &Kinds, aggregated: &Aggregated) -> Document {
    let V2 { schemas, paths, definitions } = v2(kinds);
    let others = merged::Others::of(aggregated, &definitions);
    let mut writer = Writer::new();
    writer.write(format!("{{\"swagger\":\"2.0\",\"info\":{},\"paths\":", info()).as_bytes());
    let own = paths.iter().filter(|it| !others.have(it.0));
    let own = own.map(|(path, it)| (path.clone(), paths::item(&schemas, Dialect::V2, it).to_string()));
    writer.write_members(own.chain(others.paths.iter().map(|(path, it)| (path.clone(), it.to_string()))));
    writer.write(b",\"definitions\":");
    let named = others.definitions.iter().map(|(name, it)| (name.clone(), it.to_string()));
    writer.write_members(definitions.into_iter().chain(named));
    let security = json!({ "BearerToken": bearer_token() });
    writer.write(format!(",\"securityDefinitions\":{security},\"security\":[{{\"BearerToken\":[]}}]}}").as_bytes());
    writer.finish()
}

/// Protobuf lets one message come in parts that are merged, so each path and definition is written by itself.
fn v2_protobuf(kinds: &Kinds, aggregated: &Aggregated) -> Document {
    let V2 { schemas, paths, definitions } = v2(kinds);
    let others = merged::Others::of(aggregated, &definitions);
    let mut writer = Writer::new();
    let info = gnostic::Info { title: "Kubernetes".into(), version: "v1.37.0".into() };
    let head = gnostic::Document { swagger: "2.0".into(), info: Some(info), ..gnostic::Document::default() };
    writer.write(&head.encode_to_vec());
    let own = paths.iter().filter(|it| !others.have(it.0));
    let own = own.map(|(name, it)| (name, Cow::Owned(paths::item(&schemas, Dialect::V2, it))));
    for (name, item) in own.chain(others.paths.iter().map(|(name, it)| (name, Cow::Borrowed(it)))) {
        let paths = gnostic::Paths { path: vec![gnostic::path(name, &item)] };
        writer.write(&gnostic::Document { paths: Some(paths), ..gnostic::Document::default() }.encode_to_vec());
    }
    let own = definitions.iter();
    let own = own.map(|(name, it)| (name, serde_json::from_str::<Value>(it).expect("we wrote it as JSON")));
    for (name, schema) in own.chain(others.definitions.iter().map(|(name, it)| (name, it.clone()))) {
        let definitions = Some(gnostic::named_schemas([(name, &schema)]));
        writer.write(&gnostic::Document { definitions, ..gnostic::Document::default() }.encode_to_vec());
    }
    writer.finish()
}
