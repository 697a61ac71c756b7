//! Writes the documents, piece by piece through a compressor, so that none is ever whole in memory.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    sync::LazyLock,
};

use aws_lc_rs::digest::{self, SHA512};
use bytes::Bytes;
use corten_kinds::{KINDS, Kind};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use prost::Message;
use serde_json::{Map, Value, json};

use super::{gnostic, paths, schemas::Dialect};
use crate::discovery::groups;

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

    fn write_members(&mut self, members: impl IntoIterator<Item = (String, Value)>) {
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

/// Version 3: a document per group and version, and the list of them.
pub(super) struct V3Documents {
    /// By `api/v1`, `apis/apps/v1`.
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) index: Document,
}

pub(super) static V3: LazyLock<V3Documents> = LazyLock::new(|| {
    let mut documents = BTreeMap::new();
    for version in groups().into_iter().flat_map(|it| it.versions) {
        let path = version.kinds[0].resource.group_path();
        documents.insert(path.trim_start_matches('/').to_owned(), v3(&version.kinds));
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

fn v3(kinds: &[&'static Kind]) -> Document {
    let mut writer = Writer::new();
    writer.write(format!("{{\"openapi\":\"3.0.0\",\"info\":{},\"paths\":", info()).as_bytes());
    writer.write_members(paths::all(Dialect::V3, kinds));
    writer.write(b",\"components\":{\"schemas\":");
    writer.write_members(Dialect::V3.all(kinds));
    writer.write(b"}}");
    writer.finish()
}

fn every_kind() -> Vec<&'static Kind> {
    KINDS.iter().collect()
}

pub(super) static V2_JSON: LazyLock<Document> = LazyLock::new(|| {
    let kinds = every_kind();
    let mut writer = Writer::new();
    writer.write(format!("{{\"swagger\":\"2.0\",\"info\":{},\"paths\":", info()).as_bytes());
    writer.write_members(paths::all(Dialect::V2, &kinds));
    writer.write(b",\"definitions\":");
    writer.write_members(Dialect::V2.all(&kinds));
    writer.write(b"}");
    writer.finish()
});

/// Protobuf lets one message come in parts that are merged, so each path and definition is written by itself.
pub(super) static V2_PROTOBUF: LazyLock<Document> = LazyLock::new(|| {
    let kinds = every_kind();
    let mut writer = Writer::new();
    let info = gnostic::Info { title: "Kubernetes".into(), version: "v1.37.0".into() };
    let head = gnostic::Document { swagger: "2.0".into(), info: Some(info), ..gnostic::Document::default() };
    writer.write(&head.encode_to_vec());
    for (name, value) in paths::all(Dialect::V2, &kinds) {
        let paths = gnostic::Paths { path: vec![gnostic::path(&name, &value)] };
        writer.write(&gnostic::Document { paths: Some(paths), ..gnostic::Document::default() }.encode_to_vec());
    }
    for (name, value) in Dialect::V2.all(&kinds) {
        let definitions = Some(gnostic::named_schemas([(&name, &value)]));
        writer.write(&gnostic::Document { definitions, ..gnostic::Document::default() }.encode_to_vec());
    }
    writer.finish()
});
