//! Makes the discovery documents out of the table of kinds.

use std::{cmp::Reverse, collections::BTreeMap};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use corten_kinds::{Kind, KindRef, Subresource, Verb};
use serde_json::{Value, json};

use super::priorities;
use crate::{
    aggregated::{Aggregated, AggregatedVersion},
    api_resource_discovery::{self, ResponseKind},
};

/// What discovery and OpenAPI say of a subresource, beside its verbs.
pub struct Facts<'k> {
    pub group: &'k str,
    pub version: &'k str,
    pub kind: &'k str,
    /// The type of its body in the type table; `None` where it has no JSON of its own.
    pub schema: Option<&'k str>,
}

/// Facts about a subresource whose kind is not its parent's; `None` where it is.
fn foreign(subresource: Subresource) -> Option<Facts<'static>> {
    let facts = |group, version, kind, schema| Some(Facts { group, version, kind, schema });
    match subresource {
        Subresource::Status
        | Subresource::Finalize
        | Subresource::Log
        | Subresource::Approval
        | Subresource::EphemeralContainers
        | Subresource::Resize
        | Subresource::Proxy => None,
        Subresource::Token => {
            facts("authentication.k8s.io", "v1", "TokenRequest", Some("io.k8s.api.authentication.v1.TokenRequest"))
        }
        Subresource::Scale => facts("autoscaling", "v1", "Scale", Some("io.k8s.api.autoscaling.v1.Scale")),
        Subresource::Binding => facts("", "v1", "Binding", Some("io.k8s.api.core.v1.Binding")),
        Subresource::Eviction => facts("policy", "v1", "Eviction", Some("io.k8s.api.policy.v1.Eviction")),
        Subresource::Exec => facts("", "v1", "PodExecOptions", None),
        Subresource::Attach => facts("", "v1", "PodAttachOptions", None),
        Subresource::PortForward => facts("", "v1", "PodPortForwardOptions", None),
    }
}

pub fn facts(kind: &Kind, subresource: Subresource) -> Facts<'_> {
    let own = |schema| Facts {
        group: &kind.resource.group,
        version: &kind.resource.version,
        kind: &kind.resource.kind,
        schema,
    };
    foreign(subresource).unwrap_or_else(|| match subresource {
        Subresource::Log => own(None),
        Subresource::Proxy => Facts { kind: proxy_options(kind), ..own(None) },
        _ => own(Some(kind.schema.name())),
    })
}

/// As discovery writes them.
fn verbs_of(subresource: Subresource) -> Vec<&'static str> {
    subresource.verbs().iter().map(|it| it.as_str()).collect()
}

/// What a proxy is asked with is named for what it leads to.
fn proxy_options(kind: &Kind) -> &'static str {
    match &*kind.resource.kind {
        "Node" => "NodeProxyOptions",
        "Pod" => "PodProxyOptions",
        _ => "ServiceProxyOptions",
    }
}

/// One group of the API.
pub struct Group {
    pub name: String,
    pub versions: Vec<Version>,
}

/// One version of a group, and its kinds.
pub struct Version {
    pub name: String,
    pub kinds: Vec<KindRef>,
}

/// The groups and their versions, each with its kinds, in the order in which clients should try them.
pub fn groups(kinds: impl Iterator<Item = KindRef>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for kind in kinds {
        let at = groups.iter().position(|it| it.name == kind.resource.group).unwrap_or_else(|| {
            groups.push(Group { name: kind.resource.group.to_string(), versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[at].versions;
        let at = versions.iter().position(|it| it.name == kind.resource.version).unwrap_or_else(|| {
            versions.push(Version { name: kind.resource.version.to_string(), kinds: Vec::new() });
            versions.len() - 1
        });
        versions[at].kinds.push(kind);
    }
    for group in &mut groups {
        group.versions.sort_by_key(|it| Reverse(precedence(&it.name)));
    }
    groups.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)).then_with(|| a.name.cmp(&b.name)));
    groups
}

/// The server's own group comes first of those that have a name (`apisHandler`), then the highest priority.
fn rank(group: &str) -> (bool, bool, Reverse<i64>) {
    (!group.is_empty(), group != "apiregistration.k8s.io", Reverse(priorities::of_group(group)))
}

/// One version of a group, and who says what is in it.
#[derive(Clone, Copy)]
enum Served<'a> {
    Here(&'a Version),
    Elsewhere(&'a AggregatedVersion),
}

impl Served<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Here(it) => &it.name,
            Self::Elsewhere(it) => &it.version,
        }
    }

    fn priority(&self, group: &str) -> i64 {
        match self {
            Self::Here(it) if it.kinds.iter().all(|it| matches!(it, KindRef::Custom(_))) => {
                priorities::OF_CUSTOM_VERSIONS
            }
            Self::Here(it) => priorities::of_version(group, &it.name),
            Self::Elsewhere(it) => it.version_priority,
        }
    }
}

/// One group with all who serve it.
pub(super) struct ServedGroup<'a> {
    name: &'a str,
    versions: Vec<Served<'a>>,
}

/// What is served here and elsewhere together, in the order in which clients should try it: the highest priority of a group's
/// APIServices counts, and within the group that of the version (`SortedByGroupAndVersion`).
pub(super) fn listed<'a>(groups: &'a [Group], aggregated: &'a Aggregated) -> Vec<ServedGroup<'a>> {
    let mut all: Vec<ServedGroup<'a>> = Vec::new();
    for group in groups {
        let here = group.versions.iter().filter(|it| !aggregated.serves(&group.name, &it.name));
        all.push(ServedGroup { name: &group.name, versions: here.map(Served::Here).collect() });
    }
    let mut raised: BTreeMap<&str, i64> = BTreeMap::new();
    for version in aggregated.iter() {
        let at = all.iter().position(|it| it.name == version.group).unwrap_or_else(|| {
            all.push(ServedGroup { name: &version.group, versions: Vec::new() });
            all.len() - 1
        });
        all[at].versions.push(Served::Elsewhere(version));
        let priority = raised.entry(&*version.group).or_default();
        *priority = version.group_priority.max(*priority);
    }
    all.retain(|it| !it.versions.is_empty());
    let is_mixed = |it: &ServedGroup<'_>| it.versions.iter().any(|it| matches!(it, Served::Elsewhere(_)));
    for group in all.iter_mut().filter(|it| is_mixed(it)) {
        let name = group.name;
        group.versions.sort_by_key(|it| Reverse((it.priority(name), precedence(it.name()))));
    }
    let rank = |it: &ServedGroup<'_>| {
        let (is_named, is_other, Reverse(own)) = rank(it.name);
        let is_here = groups.iter().any(|group| group.name == it.name);
        let own = if is_here { own } else { 0 };
        (is_named, is_other, Reverse(raised.get(it.name).map_or(own, |it| own.max(*it))))
    };
    all.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(b.name)));
    all
}

/// Which of two versions clients should prefer: stable ones before beta before alpha, of each the newest; `v2beta1` is
/// `(2, 2, 1)`.
fn precedence(version: &str) -> (u8, u32, u32) {
    let text = version.trim_start_matches('v');
    let number = |it: &str| it.parse().unwrap_or_default();
    for (stage, name) in [(2, "beta"), (1, "alpha")] {
        if let Some((major, minor)) = text.split_once(name) {
            return (stage, number(major), number(minor));
        }
    }
    (3, number(text), 0)
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The documents of the form every client knows, by path.
pub(super) fn plain(groups: &[ServedGroup<'_>]) -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    let mut named = Vec::new();
    for ServedGroup { name: group, versions } in groups {
        for version in versions {
            // Elsewhere, they are asked there.
            let Served::Here(Version { name, kinds }) = version else { continue };
            let path = kinds[0].resource.group_path();
            documents.push((path, resource_list(&group_version(group, name), kinds)));
        }
        if group.is_empty() {
            let versions: Vec<&str> = versions.iter().map(Served::name).collect();
            let document = json!({ "kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [] });
            documents.push(("/api".into(), document));
            continue;
        }
        let one = |it: &Served<'_>| json!({ "groupVersion": group_version(group, it.name()), "version": it.name() });
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

/// `/`: where there is something.
pub(super) fn root<'a>(documents: impl Iterator<Item = &'a str>) -> Value {
    let others = [
        "/.well-known/openid-configuration",
        "/healthz",
        "/livez",
        "/metrics",
        "/metrics/slis",
        "/metrics/state",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ];
    let mut paths: Vec<&str> = documents.chain(others).collect();
    paths.sort_unstable();
    json!({ "paths": paths })
}

fn resource_list(group_version: &str, kinds: &[KindRef]) -> Value {
    let mut resources = Vec::new();
    for kind in kinds {
        let resource = &kind.resource;
        let verbs: Vec<&str> = kind.discovered_verbs().iter().map(|it| it.as_str()).collect();
        let mut entry = json!({
            "name": resource.plural,
            "singularName": kind.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs,
        });
        for (field, list) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
            if !list.is_empty() {
                entry[field] = list.iter().collect();
            }
        }
        if kind.allows(Verb::Create) && kind.allows(Verb::List) {
            entry["storageVersionHash"] = json!(storage_version_hash(kind));
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
            entry["verbs"] = json!(verbs_of(*subresource));
            resources.push(entry);
        }
    }
    resources.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources })
}

/// Tells clients whether objects are stored in another form than before. Made as by `discovery.StorageVersionHash`.
fn storage_version_hash(kind: &Kind) -> String {
    let stored = kind.view_of.as_ref().map_or(&kind.resource, |it| &it.stored);
    let text = format!("{}/{}/{}", stored.group, stored.version, stored.kind);
    BASE64.encode(&digest(&SHA256, text.as_bytes()).as_ref()[..8])
}

/// Everything of the chosen groups in one document.
pub(super) fn aggregated(groups: &[ServedGroup<'_>], version: &str, chosen: impl Fn(&str) -> bool) -> Value {
    let of_version = |served: &Served<'_>| match served {
        Served::Here(Version { name, kinds }) => {
            let resources: Vec<Value> = kinds.iter().map(|it| aggregated_resource(it)).collect();
            json!({ "version": name, "resources": resources, "freshness": "Current" })
        }
        Served::Elsewhere(it) => {
            let freshness = if it.is_current { "Current" } else { "Stale" };
            json!({ "version": it.version, "resources": it.resources.0, "freshness": freshness })
        }
    };
    let of_group = |ServedGroup { name, versions }: &ServedGroup<'_>| {
        let versions: Vec<Value> = versions.iter().map(of_version).collect();
        json!({ "metadata": { "name": name }, "versions": versions })
    };
    let items: Vec<Value> = groups.iter().filter(|it| chosen(it.name)).map(of_group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let owned = |it: &str| it.to_owned();
    let response_kind = |group: &str, version: &str, kind: &str| {
        Some(ResponseKind { group: owned(group), version: owned(version), kind: owned(kind) })
    };
    let subresource = |it: &Subresource| {
        let facts = facts(kind, *it);
        api_resource_discovery::Subresource {
            subresource: owned(it.as_str()),
            response_kind: response_kind(facts.group, facts.version, facts.kind),
            verbs: verbs_of(*it).into_iter().map(owned).collect(),
        }
    };
    let resource = &kind.resource;
    let entry = api_resource_discovery::Resource {
        resource: owned(&resource.plural),
        response_kind: response_kind(&resource.group, &resource.version, &resource.kind),
        scope: owned(if resource.namespaced { "Namespaced" } else { "Cluster" }),
        singular_resource: owned(&kind.singular),
        verbs: kind.discovered_verbs().iter().map(|it| owned(it.as_str())).collect(),
        short_names: kind.short_names.iter().map(|it| it.to_string()).collect(),
        categories: kind.categories.iter().map(|it| it.to_string()).collect(),
        subresources: kind.subresources.iter().map(subresource).collect(),
    };
    entry.written()
}
