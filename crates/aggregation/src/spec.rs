//! What an APIService says of a server.

use corten_kinds::served_here_alone;
use corten_openapi::AggregatedVersion;
use corten_webhook::{ClientConfig, Location};
use serde_json::Value;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) port: u16,
    pub(crate) config: Result<ClientConfig, String>,
}

impl Spec {
    /// `None` where this server itself serves it, and may not be replaced in that.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let spec = &object["spec"];
        let (group, version) = (text(&spec["group"]), text(&spec["version"]));
        if !spec["service"].is_object() || served_here_alone(&group) {
            return None;
        }
        let config = ClientConfig::of_json(spec).map_err(|it| it.0);
        let port = match config.as_ref().map(|it| &it.location) {
            Ok(Location::Service { port, .. }) => *port,
            _ => 443,
        };
        Some(Self {
            name: text(&object["metadata"]["name"]),
            group,
            version,
            group_priority: spec["groupPriorityMinimum"].as_i64().unwrap_or_default(),
            version_priority: spec["versionPriority"].as_i64().unwrap_or_default(),
            namespace: text(&spec["service"]["namespace"]),
            service: text(&spec["service"]["name"]),
            port,
            config,
        })
    }

    /// `/apis/GROUP/VERSION`.
    pub(crate) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }

    /// Nothing is known of it yet.
    pub(crate) fn unheard(&self) -> AggregatedVersion {
        AggregatedVersion {
            group: self.group.clone(),
            version: self.version.clone(),
            group_priority: self.group_priority,
            version_priority: self.version_priority,
            ..AggregatedVersion::default()
        }
    }
}
