//! Makes the discovery documents out of the table of kinds.

use corten_kinds::{KINDS, Kind, Subresource};
use serde_json::{Value, json};

/// What discovery, RBAC and OpenAPI say of a subresource.
pub(crate) struct Facts {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) verbs: &'static [&'static str],
    /// The type of its body in the type table; `None` where it has no JSON of its own.
    pub(crate) schema: Option<&'static str>,
}

/// Facts about a subresource whose kind is not its parent's; `None` where it is.
fn foreign(subresource: Subresource) -> Option<Facts> {
    let facts = |group, version, kind, verbs, schema| Some(Facts { group, version, kind, verbs, schema });
    match subresource {
        Subresource::Status | Subresource::Finalize | Subresource::Log => None,
        Subresource::Scale => {
            facts("autoscaling", "v1", "Scale", &["get", "patch", "update"], Some("io.k8s.api.autoscaling.v1.Scale"))
        }
        Subresource::Binding => facts("", "v1", "Binding", &["create"], Some("io.k8s.api.core.v1.Binding")),
        Subresource::Eviction => facts("policy", "v1", "Eviction", &["create"], Some("io.k8s.api.policy.v1.Eviction")),
        Subresource::Exec => facts("", "v1", "PodExecOptions", &["create", "get"], None),
        Subresource::Attach => facts("", "v1", "PodAttachOptions", &["create", "get"], None),
        Subresource::PortForward => facts("", "v1", "PodPortForwardOptions", &["create", "get"], None),
    }
}

pub(crate) fn facts(kind: &'static Kind, subresource: Subresource) -> Facts {
    let own = |verbs, schema| Facts {
        group: &kind.resource.group,
        version: &kind.resource.version,
        kind: &kind.resource.kind,
        verbs,
        schema,
    };
    foreign(subresource).unwrap_or_else(|| match subresource {
        Subresource::Log => own(&["get"], None),
        Subresource::Finalize => own(&["update"], Some(kind.schema)),
        _ => own(&["get", "patch", "update"], Some(kind.schema)),
    })
}

/// One group of the API.
pub(crate) struct Group {
    name: &'static str,
    pub(crate) versions: Vec<Version>,
}

/// One version of a group, and its kinds.
pub(crate) struct Version {
    name: &'static str,
    pub(crate) kinds: Vec<&'static Kind>,
}

/// The groups and their versions, each with its kinds, in the table's order.
pub(crate) fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for kind in KINDS {
        if groups.last().is_none_or(|it| it.name != kind.resource.group) {
            groups.push(Group { name: &kind.resource.group, versions: Vec::new() });
        }
        let versions = &mut groups.last_mut().expect("just pushed").versions;
        if versions.last().is_none_or(|it| it.name != kind.resource.version) {
            versions.push(Version { name: &kind.resource.version, kinds: Vec::new() });
        }
        versions.last_mut().expect("just pushed").kinds.push(kind);
    }
    groups
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The documents of the form every client knows, by path.
pub(super) fn plain() -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    let mut named = Vec::new();
    for Group { name: group, versions } in groups() {
        for Version { name, kinds } in &versions {
            let path = kinds[0].resource.group_path();
            documents.push((path, resource_list(&group_version(group, name), kinds)));
        }
        if group.is_empty() {
            let versions: Vec<&str> = versions.iter().map(|it| it.name).collect();
            let document = json!({ "kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [] });
            documents.push(("/api".into(), document));
            continue;
        }
        let one = |it: &Version| json!({ "groupVersion": group_version(group, it.name), "version": it.name });
        let versions: Vec<Value> = versions.iter().map(one).collect();
        let body = json!({ "name": group, "versions": versions, "preferredVersion": versions[0] });
        let mut document = json!({ "kind": "APIGroup", "apiVersion": "v1" });
        document.as_object_mut().expect("made as an object").extend(body.as_object().expect("made as one").clone());
        documents.push((format!("/apis/{group}"), document));
        named.push(body);
    }
    documents.push(("/apis".into(), json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": named })));
    documents
}

fn resource_list(group_version: &str, kinds: &[&'static Kind]) -> Value {
    let mut resources = Vec::new();
    for kind in kinds {
        let resource = &kind.resource;
        let verbs: Vec<&str> = kind.verbs.iter().map(|it| it.as_str()).collect();
        let mut entry = json!({
            "name": resource.plural,
            "singularName": kind.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs,
        });
        for (field, list) in [("shortNames", kind.short_names), ("categories", kind.categories)] {
            if !list.is_empty() {
                entry[field] = json!(list);
            }
        }
        resources.push(entry);
        for subresource in kind.subresources {
            let facts = facts(kind, *subresource);
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, subresource.as_str()),
                "singularName": "",
                "namespaced": resource.namespaced,
            });
            if (facts.group, facts.version) != (&*resource.group, &*resource.version) {
                entry["group"] = json!(facts.group);
                entry["version"] = json!(facts.version);
            }
            entry["kind"] = json!(facts.kind);
            entry["verbs"] = json!(facts.verbs);
            resources.push(entry);
        }
    }
    resources.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources })
}

/// Everything of the chosen groups in one document.
pub(super) fn aggregated(version: &str, chosen: impl Fn(&str) -> bool) -> Value {
    let of_version = |Version { name, kinds }: Version| {
        let resources: Vec<Value> = kinds.into_iter().map(aggregated_resource).collect();
        json!({ "version": name, "resources": resources, "freshness": "Current" })
    };
    let of_group = |Group { name, versions }: Group| {
        let versions: Vec<Value> = versions.into_iter().map(of_version).collect();
        json!({ "metadata": { "name": name, "creationTimestamp": null }, "versions": versions })
    };
    let items: Vec<Value> = groups().into_iter().filter(|it| chosen(it.name)).map(of_group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &'static Kind) -> Value {
    let resource = &kind.resource;
    let verbs: Vec<&str> = kind.verbs.iter().map(|it| it.as_str()).collect();
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": resource.group, "version": resource.version, "kind": resource.kind },
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs,
    });
    for (field, list) in [("shortNames", kind.short_names), ("categories", kind.categories)] {
        if !list.is_empty() {
            entry[field] = json!(list);
        }
    }
    let subresources: Vec<Value> = kind
        .subresources
        .iter()
        .map(|it| {
            let facts = facts(kind, *it);
            json!({
                "subresource": it.as_str(),
                "responseKind": { "group": facts.group, "version": facts.version, "kind": facts.kind },
                "verbs": facts.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}
