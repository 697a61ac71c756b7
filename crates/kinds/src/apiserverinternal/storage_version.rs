//! In which version the API servers store a resource, where they are several.

use std::collections::BTreeMap;

use corten_api::resources::STORAGE_VERSIONS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::read::items;
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: STORAGE_VERSIONS,
    singular: "storageversion",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.apiserverinternal.v1alpha1.StorageVersion",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("CommonEncodingVersion", "The version all servers store.", |object, _| {
            let common = object.pointer("/status/commonEncodingVersion").and_then(Value::as_str);
            json!(common.unwrap_or("<unset>"))
        }),
        column("StorageVersions", "What each server stores.", |object, _| {
            let servers = items(object, "/status/storageVersions").iter();
            let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
            let shown: Vec<String> =
                servers.map(|it| format!("{}={}", text(it, "apiServerID"), text(it, "encodingVersion"))).collect();
            json!(if shown.is_empty() { "<unset>".to_owned() } else { shown.join(",") })
        }),
        AGE,
    ],
    policy: &StorageVersion,
};

struct StorageVersion;

impl Policy for StorageVersion {
    fn name_violations(&self, name: &str) -> Vec<String> {
        let Some((group, resource)) = name.rsplit_once('.') else {
            return vec!["name must be in the form of <group>.<resource>".to_owned()];
        };
        let groups = field::dns1123_subdomain(group).into_iter().map(|it| format!("the group segment {it}"));
        groups
            .chain(field::dns1035_label(resource).into_iter().map(|it| format!("the resource segment {it}")))
            .collect()
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |version| {
            let status = version.at("status");
            status.list("storageVersions").for_each(server);
            common(status);
            conditions(status.at("conditions"));
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn server(server: Cursor<'_>) {
    server.at("apiServerID").follows(field::dns1123_subdomain);
    let (encoding, decodable) = (server.at("encodingVersion"), server.at("decodableVersions"));
    for version in std::iter::once(encoding).chain(decodable.each()) {
        let reasons = api_version(version.str());
        if !reasons.is_empty() {
            version.invalid_as(version.str(), &reasons.join(","));
        }
    }
    if !decodable.items().iter().any(|it| it == encoding.value()) {
        decodable.invalid(&format!("decodableVersions must include encodingVersion {}", encoding.str()));
    }
}

/// `[group/]version`.
fn api_version(text: &str) -> Vec<String> {
    let (group, version) = text.split_once('/').map_or((None, text), |(group, version)| (Some(group), version));
    let mut reasons = Vec::new();
    match group {
        Some("") => reasons.push("group part: must be non-empty".to_owned()),
        Some(group) => {
            reasons.extend(field::dns1123_subdomain(group).into_iter().map(|it| format!("group part: {it}")))
        }
        None => {}
    }
    if version.is_empty() {
        reasons.push("version part: must be non-empty".to_owned());
    } else {
        reasons.extend(field::dns1035_label(version).into_iter().map(|it| format!("version part: {it}")));
    }
    reasons
}

/// The version the servers agree on is what the status says.
fn common(status: Cursor<'_>) {
    let said = status.at("commonEncodingVersion");
    let mut versions = status.list("storageVersions").map(|it| it.at("encodingVersion").str());
    let first = versions.next();
    let agreed = first.filter(|it| versions.all(|other| other == *it));
    match (agreed, said.exists()) {
        (None, true) => said.invalid(
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet",
        ),
        (Some(agreed), false) => said.invalid(&format!("the common encoding version is {agreed}")),
        (Some(agreed), true) if agreed != said.str() => {
            said.invalid(&format!("the actual common encoding version is {agreed}"));
        }
        _ => {}
    }
}

fn conditions(conditions: Cursor<'_>) {
    let mut seen = BTreeMap::new();
    for (at, condition) in conditions.each().enumerate() {
        let kind = condition.at("type");
        let first = *seen.entry(kind.str()).or_insert(at);
        if first < at {
            kind.invalid(&format!("the type of the condition is not unique, it also appears in conditions[{first}]"));
        }
        kind.follows(field::qualified_name);
        condition.at("status").follows(field::qualified_name);
        for (name, detail) in [("reason", "reason cannot be empty"), ("message", "message cannot be empty")] {
            if condition.at(name).is_empty() {
                condition.at(name).missing(detail);
            }
        }
    }
}
