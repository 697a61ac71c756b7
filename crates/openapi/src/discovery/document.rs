//! Makes the discovery documents out of the table of kinds.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use corten_kinds::{Kind, KindRef, Subresource, Verb};
use serde_json::{Value, json};

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

/// `apiVersionPriorities`: the order in which clients look for a kind of which several groups have one. Others come after,
/// by name.
const ORDER: [&str; 22] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "resource.k8s.io",
];

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
        group.versions.sort_by_key(|it| std::cmp::Reverse(precedence(&it.name)));
    }
    let rank = |it: &Group| ORDER.iter().position(|name| *name == it.name).unwrap_or(ORDER.len());
    groups.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name)));
    groups
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
pub(super) fn plain(groups: &[Group]) -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    let mut named = Vec::new();
    for Group { name: group, versions } in groups {
        for Version { name, kinds } in versions {
            let path = kinds[0].resource.group_path();
            documents.push((path, resource_list(&group_version(group, name), kinds)));
        }
        if group.is_empty() {
            let versions: Vec<&str> = versions.iter().map(|it| &*it.name).collect();
            let document = json!({ "kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [] });
            documents.push(("/api".into(), document));
            continue;
        }
        let one = |it: &Version| json!({ "groupVersion": group_version(group, &it.name), "version": it.name });
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
        let verbs: Vec<&str> = kind.verbs.iter().map(|it| it.as_str()).collect();
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
pub(super) fn aggregated(groups: &[Group], version: &str, chosen: impl Fn(&str) -> bool) -> Value {
    let of_version = |Version { name, kinds }: &Version| {
        let resources: Vec<Value> = kinds.iter().map(|it| aggregated_resource(it)).collect();
        json!({ "version": name, "resources": resources, "freshness": "Current" })
    };
    let of_group = |Group { name, versions }: &Group| {
        let versions: Vec<Value> = versions.iter().map(of_version).collect();
        json!({ "metadata": { "name": name, "creationTimestamp": null }, "versions": versions })
    };
    let items: Vec<Value> = groups.iter().filter(|it| chosen(&it.name)).map(of_group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let resource = &kind.resource;
    let verbs: Vec<&str> = kind.verbs.iter().map(|it| it.as_str()).collect();
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": resource.group, "version": resource.version, "kind": resource.kind },
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs,
    });
    for (field, list) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !list.is_empty() {
            entry[field] = list.iter().collect();
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
                "verbs": verbs_of(*it),
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}
