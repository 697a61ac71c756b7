//! What the documents say beyond the type table: descriptions, defaults, names of types with a form of their own.
//!
//! `cargo xtask codegen` takes them from the schemas of `k8s-openapi`. They are unpacked while documents are written, and
//! then let go.

use std::{collections::BTreeMap, io::Read};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value};

const PACKED: &[u8] = include_bytes!("notes.json.gz");

/// By the type's name.
pub(super) struct Notes(BTreeMap<String, TypeNote>);

#[derive(Default, Deserialize)]
pub(super) struct TypeNote {
    #[serde(rename = "d", default)]
    pub(super) description: String,
    #[serde(rename = "u", default)]
    pub(super) unions: Option<Value>,
    /// Fields that are required, beside those of the type table.
    #[serde(rename = "q", default)]
    pub(super) required: Vec<String>,
    #[serde(rename = "f", default)]
    fields: BTreeMap<String, FieldNote>,
}

#[derive(Default, Deserialize)]
pub(super) struct FieldNote {
    #[serde(rename = "d", default)]
    pub(super) description: String,
    #[serde(rename = "v", default)]
    pub(super) default: Option<Value>,
    /// The name of the type, where the type table knows it only as any JSON.
    #[serde(rename = "r", default)]
    pub(super) own_form: Option<String>,
    /// Its default makes it optional, though the type table has it as required.
    #[serde(rename = "o", default)]
    pub(super) is_optional: bool,
    #[serde(rename = "x", default)]
    pub(super) extensions: Map<String, Value>,
    /// Nobody says how this list merges.
    #[serde(rename = "p", default)]
    pub(super) is_plain_list: bool,
}

impl Notes {
    pub(super) fn read() -> Self {
        let mut plain = Vec::new();
        GzDecoder::new(PACKED).read_to_end(&mut plain).expect("codegen compressed it");
        Self(serde_json::from_slice(&plain).expect("codegen wrote it"))
    }

    pub(super) fn of(&self, name: &str) -> Option<&TypeNote> {
        self.0.get(name)
    }
}

impl TypeNote {
    pub(super) fn field(&self, name: &str) -> Option<&FieldNote> {
        self.fields.get(name)
    }
}
