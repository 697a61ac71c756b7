//! A resource as aggregated discovery has it (`APIResourceDiscovery`): this server writes its own, and reads and writes those of others.

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    pub(crate) resource: String,
    pub(crate) response_kind: Option<ResponseKind>,
    #[serde(default)]
    pub(crate) scope: String,
    #[serde(default)]
    pub(crate) singular_resource: String,
    #[serde(default)]
    pub(crate) verbs: Vec<String>,
    #[serde(default)]
    pub(crate) short_names: Vec<String>,
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    #[serde(default)]
    pub(crate) subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subresource {
    pub(crate) subresource: String,
    pub(crate) response_kind: Option<ResponseKind>,
    #[serde(default)]
    pub(crate) verbs: Vec<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResponseKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl ResponseKind {
    fn written(&self) -> Value {
        json!({ "group": self.group, "version": self.version, "kind": self.kind })
    }
}

impl Resource {
    pub(crate) fn written(&self) -> Value {
        let mut entry = json!({
            "resource": self.resource,
            "responseKind": self.response_kind.clone().unwrap_or_default().written(),
            "scope": if self.scope == "Cluster" { "Cluster" } else { "Namespaced" },
            "singularResource": self.singular_resource,
            "verbs": self.verbs,
        });
        for (field, list) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !list.is_empty() {
                entry[field] = json!(list);
            }
        }
        let below = |it: &Subresource| {
            let kind = it.response_kind.clone().unwrap_or_default().written();
            json!({ "subresource": it.subresource, "responseKind": kind, "verbs": it.verbs })
        };
        if !self.subresources.is_empty() {
            entry["subresources"] = self.subresources.iter().map(below).collect();
        }
        entry
    }
}
