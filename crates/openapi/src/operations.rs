//! The operations of each kind: what can be sent where, with which parameters, and what is answered.

use corten_kinds::{Kind, Subresource, Verb};
use serde_json::Value;

use super::{
    parameters::{self, NAME, NAMESPACE, PRETTY, Parameter},
    schemas::{DELETE_OPTIONS, PATCH, STATUS, WATCH_EVENT, gvk},
};
use crate::discovery::facts;

/// What one method on one path does.
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// As `x-kubernetes-action` says it; empty for discovery.
    pub(super) action: &'static str,
    pub(super) description: String,
    /// `listCoreV1NamespacedPod`.
    pub(super) id: String,
    pub(super) tag: String,
    /// Also those of the path.
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<String>,
    /// The type of the answer; `None` for text.
    pub(super) answer: Option<String>,
    pub(super) about: Option<Value>,
    /// Of a custom resource, which no strategic merge patch fits.
    pub(super) is_custom: bool,
}

/// Every path of a kind, and what can be done there.
pub(super) fn of_kind(kind: &Kind) -> Vec<(String, Vec<Operation>)> {
    let resource = &kind.resource;
    let collection = resource.collection_pattern();
    let item = format!("{collection}/{{name}}");
    let mut paths = vec![(collection.clone(), on_collection(kind)), (item.clone(), on_item(kind))];
    if resource.namespaced && kind.allows(Verb::List) {
        let everywhere = resource.collection_path("");
        paths.push((everywhere.clone(), vec![list_everywhere(kind)]));
        if kind.allows(Verb::Watch) {
            paths.push((watched(kind, &everywhere), vec![watch(kind, "watchlist", Reach::Everywhere)]));
        }
    }
    if kind.allows(Verb::Watch) {
        paths.push((watched(kind, &collection), vec![watch(kind, "watchlist", Reach::Collection)]));
        paths.push((watched(kind, &item), vec![watch(kind, "watch", Reach::Item)]));
    }
    for subresource in kind.subresources {
        let path = format!("{item}/{}", subresource.as_str());
        if *subresource == Subresource::Proxy {
            paths.push((format!("{path}/{{path}}"), proxy(kind, true)));
            paths.push((path, proxy(kind, false)));
        } else {
            paths.push((path, on_subresource(kind, *subresource)));
        }
    }
    paths.retain(|(_, operations)| !operations.is_empty());
    paths
}

/// `rbacAuthorization`, `core`: a group in the names of operations.
pub(super) fn group_of(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group.trim_end_matches(".k8s.io") };
    let mut words = group.split('.');
    words.next().unwrap_or_default().to_owned() + &words.map(capitalized).collect::<String>()
}

pub(super) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|it| it.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// `CoreV1`.
fn version_of(kind: &Kind) -> String {
    capitalized(&group_of(&kind.resource.group)) + &capitalized(&kind.resource.version)
}

/// `NamespacedPod`.
fn object_of(kind: &Kind) -> String {
    let scope = if kind.resource.namespaced { "Namespaced" } else { "" };
    format!("{scope}{}", kind.resource.kind)
}

/// `a Pod`, `an Event`, `Endpoints`.
fn one(kind: &str) -> String {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    format!("{article} {kind}")
}

fn operation(
    kind: &Kind,
    method: &'static str,
    action: &'static str,
    description: String,
    parameters: &[Parameter],
) -> Operation {
    let resource = &kind.resource;
    let mut parameters = parameters.to_vec();
    parameters.extend(resource.namespaced.then_some(NAMESPACE));
    if action != "connect" {
        parameters.push(PRETTY);
    }
    parameters.sort_by_key(|it| it.name);
    Operation {
        method,
        action,
        description,
        id: format!("{}{}{}", verb_of(action), version_of(kind), object_of(kind)),
        tag: format!("{}_{}", group_of(&resource.group), resource.version),
        parameters,
        body: None,
        answer: Some(kind.schema.name().to_owned()),
        about: Some(gvk(&resource.group, &resource.version, &resource.kind)),
        is_custom: kind.is_custom(),
    }
}

fn verb_of(action: &'static str) -> &'static str {
    match action {
        "get" => "read",
        "post" => "create",
        "put" => "replace",
        "watchlist" => "watch",
        other => other,
    }
}

fn list_of(kind: &Kind) -> Option<String> {
    Some(format!("{}List", kind.schema.name()))
}

fn on_collection(kind: &Kind) -> Vec<Operation> {
    let name = &kind.resource.kind;
    let mut operations = Vec::new();
    if kind.allows(Verb::List) {
        let how = if kind.allows(Verb::Watch) { "list or watch" } else { "list" };
        let description = format!("{how} objects of kind {name}");
        let list = operation(kind, "get", "list", description, parameters::LIST);
        operations.push(Operation { answer: list_of(kind), ..list });
    }
    if kind.allows(Verb::Create) {
        let create = operation(kind, "post", "post", format!("create {}", one(name)), parameters::WRITE);
        operations.push(Operation { body: Some(kind.schema.name().to_owned()), ..create });
    }
    if kind.allows(Verb::DeleteCollection) {
        let both = [parameters::DELETE_COLLECTION, parameters::DELETE].concat();
        let mut delete = operation(kind, "delete", "deletecollection", format!("delete collection of {name}"), &both);
        delete.id = format!("delete{}Collection{}", version_of(kind), object_of(kind));
        operations.push(Operation { body: Some(DELETE_OPTIONS.into()), answer: Some(STATUS.into()), ..delete });
    }
    operations
}

fn list_everywhere(kind: &Kind) -> Operation {
    let name = &kind.resource.kind;
    let mut list = operation(kind, "get", "list", format!("list or watch objects of kind {name}"), parameters::LIST);
    list.parameters.retain(|it| *it != NAMESPACE);
    list.id = format!("list{}{name}ForAllNamespaces", version_of(kind));
    Operation { answer: list_of(kind), ..list }
}

/// How much a watch of the old kind sees.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Item,
    Collection,
    Everywhere,
}

/// `/api/v1/watch/pods`: the old way to ask for a watch.
fn watched(kind: &Kind, path: &str) -> String {
    let group = kind.resource.group_path();
    format!("{group}/watch{}", path.strip_prefix(&group).unwrap_or_default())
}

fn watch(kind: &Kind, action: &'static str, reach: Reach) -> Operation {
    let name = &kind.resource.kind;
    let description = if reach == Reach::Item {
        format!(
            "watch changes to an object of kind {name}. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."
        )
    } else {
        format!(
            "watch individual changes to a list of {name}. deprecated: use the 'watch' parameter with a list operation instead."
        )
    };
    let mut watch = operation(kind, "get", action, description, parameters::LIST);
    match reach {
        Reach::Item => watch.parameters.push(NAME),
        Reach::Collection => watch.id += "List",
        Reach::Everywhere => {
            watch.parameters.retain(|it| *it != NAMESPACE);
            watch.id = format!("watch{}{name}ListForAllNamespaces", version_of(kind));
        }
    }
    watch.parameters.sort_by_key(|it| it.name);
    Operation { answer: Some(WATCH_EVENT.into()), ..watch }
}

/// The parameters of an operation on one object.
fn named(more: &[Parameter]) -> Vec<Parameter> {
    [more, &[NAME]].concat()
}

fn on_item(kind: &Kind) -> Vec<Operation> {
    let name = &kind.resource.kind;
    let schema = || Some(kind.schema.name().to_owned());
    let mut operations = Vec::new();
    if kind.allows(Verb::Get) {
        operations.push(operation(kind, "get", "get", format!("read the specified {name}"), &named(&[])));
    }
    if kind.allows(Verb::Update) {
        let description = format!("replace the specified {name}");
        let replace = operation(kind, "put", "put", description, &named(parameters::WRITE));
        operations.push(Operation { body: schema(), ..replace });
    }
    if kind.allows(Verb::Delete) {
        let delete = operation(kind, "delete", "delete", format!("delete {}", one(name)), &named(parameters::DELETE));
        let answer = if corten_kinds::returns_deleted_object(&kind.resource) { schema() } else { Some(STATUS.into()) };
        operations.push(Operation { body: Some(DELETE_OPTIONS.into()), answer, ..delete });
    }
    if kind.allows(Verb::Patch) {
        operations.push(patch(kind, format!("partially update the specified {name}")));
    }
    operations
}

fn patch(kind: &Kind, description: String) -> Operation {
    let parameters = named(&[parameters::WRITE, &[parameters::FORCE]].concat());
    let patch = operation(kind, "patch", "patch", description, &parameters);
    Operation { body: Some(PATCH.to_owned()), ..patch }
}

fn on_subresource(kind: &Kind, subresource: Subresource) -> Vec<Operation> {
    let facts = facts(kind, subresource);
    let (below, of) = (subresource.as_str(), &kind.resource.kind);
    let schema = || facts.schema.map(str::to_owned);
    let connects = matches!(subresource, Subresource::Exec | Subresource::Attach | Subresource::PortForward);
    let one_verb = |verb: Verb| {
        let mut operation = match verb {
            _ if connects => return connect(kind, subresource, if verb == Verb::Get { "get" } else { "post" }),
            Verb::Get => {
                let parameters = if subresource == Subresource::Log { parameters::LOG } else { &[] };
                operation(kind, "get", "get", format!("read {below} of the specified {of}"), &named(parameters))
            }
            Verb::Create => {
                let description = format!("create {below} of {}", one(of));
                let create = operation(kind, "post", "post", description, &named(parameters::WRITE));
                Operation { body: schema(), ..create }
            }
            Verb::Update => {
                let description = format!("replace {below} of the specified {of}");
                let replace = operation(kind, "put", "put", description, &named(parameters::WRITE));
                Operation { body: schema(), ..replace }
            }
            _ => patch(kind, format!("partially update {below} of the specified {of}")),
        };
        operation.id += &capitalized(below);
        operation.about = Some(gvk(facts.group, facts.version, facts.kind));
        Operation { answer: schema(), ..operation }
    };
    subresource.verbs().iter().copied().map(one_verb).collect()
}

/// What goes through to a Pod, a Service or a node; every method can be meant for it.
fn proxy(kind: &Kind, with_path: bool) -> Vec<Operation> {
    let methods = ["delete", "get", "head", "options", "patch", "post", "put"];
    let mut operations: Vec<Operation> = methods.into_iter().map(|it| connect(kind, Subresource::Proxy, it)).collect();
    for operation in operations.iter_mut().filter(|_| with_path) {
        operation.id += "WithPath";
        let at = operation.parameters.iter().position(|it| *it == parameters::PROXY[0]).unwrap_or_default();
        operation.parameters.insert(at, parameters::PATH);
    }
    operations
}

fn connect(kind: &Kind, subresource: Subresource, method: &'static str) -> Operation {
    let facts = facts(kind, subresource);
    let parameters = match subresource {
        Subresource::Exec => parameters::EXEC,
        Subresource::Attach => parameters::ATTACH,
        Subresource::Proxy => parameters::PROXY,
        _ => parameters::PORT_FORWARD,
    };
    let below = subresource.as_str();
    let description = format!("connect {} requests to {below} of {}", method.to_uppercase(), kind.resource.kind);
    let mut connect = operation(kind, method, "connect", description, &named(parameters));
    connect.id = format!("connect{}{}{}{}", version_of(kind), capitalized(method), object_of(kind), capitalized(below));
    connect.about = Some(gvk(facts.group, facts.version, facts.kind));
    Operation { answer: None, ..connect }
}
