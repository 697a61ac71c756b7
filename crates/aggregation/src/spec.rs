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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_another_server_serves_and_may_serve_is_passed_on() {
        let of = |group: &str, service: Value| {
            let name = format!("v1.{group}");
            let spec = json!({ "group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 5, "service": service });
            Spec::of(&json!({ "metadata": { "name": name }, "spec": spec }))
        };
        let service = || json!({ "namespace": "other", "name": "server" });
        let found = of("wardle.example.com", service()).expect("it is another's");
        assert_eq!(
            (&*found.name, &*found.path(), found.port),
            ("v1.wardle.example.com", "/apis/wardle.example.com/v1", 443)
        );
        assert_eq!((found.group_priority, found.version_priority, found.config.is_ok()), (10, 5, true));
        let other_port = json!({ "namespace": "other", "name": "server", "port": 8443 });
        assert_eq!(of("wardle.example.com", other_port).map(|it| it.port), Some(8443));
        assert!(of("metrics.k8s.io", service()).is_some(), "that can be another's");
        for (group, service) in [("wardle.example.com", Value::Null), ("apps", service()), ("", service())] {
            assert!(of(group, service).is_none(), "{group}");
        }
    }
}
