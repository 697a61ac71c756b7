//! Writes the documents, piece by piece through a compressor, so that none is ever whole in memory.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    sync::LazyLock,
};

use aws_lc_rs::digest::{self, SHA512};
use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use prost::Message;
use serde_json::{Map, Value, json};

use super::{
    gnostic,
    paths::{self, Paths},
    schemas::{Dialect, Schemas},
};
use crate::discovery::groups;

/// The group and version that all documents are about.
const CORE: &[(&str, &str)] = &[("", "v1")];

/// One document, compressed, and the hash of its plain text.
pub(super) struct Document {
    pub(super) compressed: Bytes,
    pub(super) hash: String,
}

impl Document {
    pub(super) fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        GzDecoder::new(&*self.compressed).read_to_end(&mut plain).expect("we compressed it ourselves");
        plain
    }
}

/// Compresses and hashes what is written.
struct Writer {
    compressor: GzEncoder<Vec<u8>>,
    hash: digest::Context,
}

impl Writer {
    fn new() -> Self {
        let compressor = GzEncoder::new(Vec::new(), Compression::default());
        Self { compressor, hash: digest::Context::new(&SHA512) }
    }

    fn write(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        self.compressor.write_all(piece).expect("memory takes every write");
    }

    fn write_members(&mut self, members: impl IntoIterator<Item = (String, String)>) {
        self.write(b"{");
        for (n, (name, value)) in members.into_iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            self.write(format!("{comma}{}:{value}", Value::String(name)).as_bytes());
        }
        self.write(b"}");
    }

    fn finish(self) -> Document {
        let mut compressed = self.compressor.finish().expect("memory takes every write");
        compressed.shrink_to_fit();
        let hash = self.hash.finish().as_ref().iter().map(|it| format!("{it:02X}")).collect();
        Document { compressed: compressed.into(), hash }
    }
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": "v1.37.0" })
}

/// Version 3: a document per group and version and for each list of them, and the list of them.
pub(super) struct V3Documents {
    /// By `api/v1`, `apis/apps/v1`, `apis/apps`.
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) index: Document,
}

pub(super) static V3: LazyLock<V3Documents> = LazyLock::new(|| {
    let mut schemas = Schemas::new(Dialect::V3);
    let mut documents = BTreeMap::new();
    for (name, paths) in paths::of_no_group() {
        documents.insert(name.to_owned(), v3(&mut schemas, &paths, CORE));
    }
    for group in groups() {
        let name = group.name;
        if !name.is_empty() {
            documents.insert(format!("apis/{name}"), v3(&mut schemas, &paths::of_group(name), CORE));
        }
        for version in group.versions {
            let path = version.kinds[0].resource.group_path();
            // As upstream: options and events are those of the first group, and of the document's own.
            let about = if name.is_empty() { CORE.to_vec() } else { vec![CORE[0], (name, version.name)] };
            let document = v3(&mut schemas, &paths::of_version(&version.kinds), &about);
            documents.insert(path.trim_start_matches('/').to_owned(), document);
        }
    }
    let mut index = Map::new();
    for (path, document) in &documents {
        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
        index.insert(path.clone(), json!({ "serverRelativeURL": url }));
    }
    let mut writer = Writer::new();
    writer.write(json!({ "paths": index }).to_string().as_bytes());
    V3Documents { documents, index: writer.finish() }
});

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

fn v2() -> V2 {
    let mut all = Paths::new();
    let mut about = Vec::new();
    for (_, paths) in paths::of_no_group() {
        all.extend(paths);
    }
    for group in groups() {
        if !group.name.is_empty() {
            all.extend(paths::of_group(group.name));
        }
        for version in group.versions {
            about.push((group.name, version.name));
            all.extend(paths::of_version(&version.kinds));
        }
    }
    let mut schemas = Schemas::new(Dialect::V2);
    let definitions = schemas.needed(paths::roots(&all), &about);
    V2 { schemas, paths: all, definitions }
}

pub(super) static V2_JSON: LazyLock<Document> = LazyLock::new(|| {
    let V2 { schemas, paths, definitions } = v2();
    let mut writer = Writer::new();
    writer.write(format!("{{\"swagger\":\"2.0\",\"info\":{},\"paths\":", info()).as_bytes());
    writer.write_members(items(&schemas, Dialect::V2, &paths));
    writer.write(b",\"definitions\":");
    writer.write_members(definitions);
    let security = json!({ "BearerToken": bearer_token() });
    writer.write(format!(",\"securityDefinitions\":{security},\"security\":[{{\"BearerToken\":[]}}]}}").as_bytes());
    writer.finish()
});

/// Protobuf lets one message come in parts that are merged, so each path and definition is written by itself.
pub(super) static V2_PROTOBUF: LazyLock<Document> = LazyLock::new(|| {
    let V2 { schemas, paths, definitions } = v2();
    let mut writer = Writer::new();
    let info = gnostic::Info { title: "Kubernetes".into(), version: "v1.37.0".into() };
    let head = gnostic::Document { swagger: "2.0".into(), info: Some(info), ..gnostic::Document::default() };
    writer.write(&head.encode_to_vec());
    for (name, operations) in &paths {
        let item = paths::item(&schemas, Dialect::V2, operations);
        let paths = gnostic::Paths { path: vec![gnostic::path(name, &item)] };
        writer.write(&gnostic::Document { paths: Some(paths), ..gnostic::Document::default() }.encode_to_vec());
    }
    for (name, text) in &definitions {
        let schema: Value = serde_json::from_str(text).expect("we wrote it as JSON");
        let definitions = Some(gnostic::named_schemas([(name, &schema)]));
        writer.write(&gnostic::Document { definitions, ..gnostic::Document::default() }.encode_to_vec());
    }
    writer.finish()
});
