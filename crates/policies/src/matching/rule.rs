//! `RuleWithOperations`, and that with names of objects.

use corten_validation::read::items;
use serde_json::Value;

use super::request::{GroupVersionResource, Operation, Request};

#[derive(Debug)]
pub(super) struct Rule {
    operations: Vec<Operation>,
    groups: Names,
    versions: Names,
    /// Resource and subresource; `*` is any.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Of objects. Empty: all.
    names: Vec<String>,
}

/// Operations on a resource of a group: `None` is any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interest<'a> {
    pub(super) operations: &'a [Operation],
    pub(super) group: Option<&'a str>,
    pub(super) plural: Option<&'a str>,
}

#[derive(Debug)]
enum Names {
    All,
    These(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Any,
    Cluster,
    Namespaced,
}

impl Rule {
    pub(super) fn read(rule: &Value) -> Self {
        let operations = Names::read(rule, "/operations");
        Self {
            operations: Operation::ALL.into_iter().filter(|it| operations.has(it.as_str())).collect(),
            groups: Names::read(rule, "/apiGroups"),
            versions: Names::read(rule, "/apiVersions"),
            resources: texts(rule, "/resources").map(split).collect(),
            scope: match rule["scope"].as_str() {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::Any,
            },
            names: texts(rule, "/resourceNames").map(str::to_owned).collect(),
        }
    }

    /// Each group with each resource.
    pub(super) fn interests(&self) -> impl Iterator<Item = Interest<'_>> {
        let plurals = || self.resources.iter().map(|it| Some(&*it.0).filter(|it| *it != "*"));
        self.groups.each().flat_map(move |group| {
            plurals().map(move |plural| Interest { operations: &self.operations, group, plural })
        })
    }

    /// As if the request were for `place`.
    pub(super) fn matches(&self, request: &Request<'_>, place: &GroupVersionResource<'_>) -> bool {
        let is = |pattern: &str, it: &str| pattern == "*" || pattern == it;
        self.operations.contains(&request.operation)
            && self.groups.has(place.group)
            && self.versions.has(place.version)
            && self.resources.iter().any(|(plural, sub)| is(plural, place.plural) && is(sub, request.subresource))
            && self.has_scope(request, place)
            && (self.names.is_empty() || self.names.iter().any(|it| it == request.name))
    }

    /// A Namespace is of the cluster, though upstream says that it is in itself.
    fn has_scope(&self, request: &Request<'_>, place: &GroupVersionResource<'_>) -> bool {
        let namespaces = GroupVersionResource { group: "", version: "v1", plural: "namespaces" };
        let is_of_cluster = *place == namespaces || request.namespace.is_empty();
        match self.scope {
            Scope::Any => true,
            Scope::Cluster => is_of_cluster,
            Scope::Namespaced => !is_of_cluster,
        }
    }
}

impl Names {
    fn read(rule: &Value, pointer: &str) -> Self {
        if texts(rule, pointer).any(|it| it == "*") {
            return Self::All;
        }
        Self::These(texts(rule, pointer).map(str::to_owned).collect())
    }

    /// `None` is every name.
    fn each(&self) -> impl Iterator<Item = Option<&str>> {
        let (all, these) = match self {
            Self::All => (Some(None), &[][..]),
            Self::These(names) => (None, &names[..]),
        };
        all.into_iter().chain(these.iter().map(|it| Some(&**it)))
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.iter().any(|it| it == name),
        }
    }
}

fn split(resource: &str) -> (String, String) {
    let (plural, sub) = resource.split_once('/').unwrap_or((resource, ""));
    (plural.to_owned(), sub.to_owned())
}

fn texts<'v>(rule: &'v Value, pointer: &str) -> impl Iterator<Item = &'v str> {
    items(rule, pointer).iter().filter_map(Value::as_str)
}
