//! The operations of each kind as OpenAPI paths: what can be sent where, with which parameters.

use corten_kinds::{Kind, Subresource, Verb};
use serde_json::{Map, Value, json};

use super::schemas::{DELETE_OPTIONS, Dialect, PATCH, STATUS, gvk};
use crate::discovery::facts;

/// A parameter: its name and type. All are optional queries but those of the path.
type Parameter = (&'static str, &'static str);

const PRETTY: Parameter = ("pretty", "string");
const LIST: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: &[Parameter] = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const DELETE: &[Parameter] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const DELETE_COLLECTION: &[Parameter] = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
];
const LOG: &[Parameter] = &[
    ("container", "string"),
    ("follow", "boolean"),
    ("limitBytes", "integer"),
    ("previous", "boolean"),
    ("sinceSeconds", "integer"),
    ("sinceTime", "string"),
    ("tailLines", "integer"),
    ("timestamps", "boolean"),
];
const EXEC: &[Parameter] = &[
    ("command", "string"),
    ("container", "string"),
    ("stderr", "boolean"),
    ("stdin", "boolean"),
    ("stdout", "boolean"),
    ("tty", "boolean"),
];
const ATTACH: &[Parameter] =
    &[("container", "string"), ("stderr", "boolean"), ("stdin", "boolean"), ("stdout", "boolean"), ("tty", "boolean")];
const PORT_FORWARD: &[Parameter] = &[("ports", "integer")];

const PATCH_TYPES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];

/// What one method on one path does.
struct Operation {
    method: &'static str,
    /// As `x-kubernetes-action` says it.
    action: &'static str,
    /// The verb of the operation's id: `listCoreV1NamespacedPod`.
    id: String,
    parameters: &'static [Parameter],
    body: Option<String>,
    /// The type of the answer; `None` for text.
    answer: Option<String>,
    about: Value,
}

/// Every path of these kinds with its item, as `dialect` writes it.
pub(super) fn all(dialect: Dialect, kinds: &[&'static Kind]) -> Vec<(String, Value)> {
    let mut paths: Vec<(String, Value)> = kinds.iter().flat_map(|it| of_kind(dialect, it)).collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    paths
}

fn of_kind(dialect: Dialect, kind: &'static Kind) -> Vec<(String, Value)> {
    let resource = &kind.resource;
    let namespace = if resource.namespaced { "{namespace}" } else { "" };
    let collection = resource.collection_path(namespace);
    let item = format!("{collection}/{{name}}");
    let mut paths = Vec::new();
    let mut add = |path: String, operations: Vec<Operation>| {
        if !operations.is_empty() {
            let item = path_item(dialect, kind, &path, &operations);
            paths.push((path, item));
        }
    };
    add(collection, on_collection(kind));
    add(item.clone(), on_item(kind));
    if resource.namespaced && kind.allows(Verb::List) {
        let mut everywhere = operation(kind, "get", "list", LIST);
        everywhere.id = format!("list{}{}ForAllNamespaces", version_of(kind), resource.kind);
        everywhere.answer = Some(format!("{}List", kind.schema));
        add(resource.collection_path(""), vec![everywhere]);
    }
    for subresource in kind.subresources {
        add(format!("{item}/{}", subresource.as_str()), on_subresource(kind, *subresource));
    }
    paths
}

/// `RbacAuthorization`, `Core`.
fn group_of(kind: &Kind) -> String {
    let group = &*kind.resource.group;
    let group = if group.is_empty() { "core" } else { group.trim_end_matches(".k8s.io") };
    group.split('.').map(capitalized).collect()
}

/// `CoreV1`.
fn version_of(kind: &Kind) -> String {
    format!("{}{}", group_of(kind), capitalized(&kind.resource.version))
}

/// `NamespacedPod`.
fn object_of(kind: &Kind) -> String {
    let scope = if kind.resource.namespaced { "Namespaced" } else { "" };
    format!("{scope}{}", kind.resource.kind)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|it| it.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn operation(
    kind: &'static Kind,
    method: &'static str,
    action: &'static str,
    parameters: &'static [Parameter],
) -> Operation {
    let resource = &kind.resource;
    Operation {
        method,
        action,
        id: format!("{}{}{}", verb_of(action), version_of(kind), object_of(kind)),
        parameters,
        body: None,
        answer: Some(kind.schema.to_owned()),
        about: gvk(&resource.group, &resource.version, &resource.kind),
    }
}

fn verb_of(action: &'static str) -> &'static str {
    match action {
        "get" => "read",
        "post" => "create",
        "put" => "replace",
        other => other,
    }
}

fn on_collection(kind: &'static Kind) -> Vec<Operation> {
    let mut operations = Vec::new();
    if kind.allows(Verb::List) {
        let list = operation(kind, "get", "list", LIST);
        operations.push(Operation { answer: Some(format!("{}List", kind.schema)), ..list });
    }
    if kind.allows(Verb::Create) {
        let create = operation(kind, "post", "post", WRITE);
        operations.push(Operation { body: Some(kind.schema.to_owned()), ..create });
    }
    if kind.allows(Verb::DeleteCollection) {
        let mut delete = operation(kind, "delete", "deletecollection", DELETE_COLLECTION);
        delete.id = format!("delete{}Collection{}", version_of(kind), object_of(kind));
        operations.push(Operation { body: Some(DELETE_OPTIONS.into()), answer: Some(STATUS.into()), ..delete });
    }
    operations
}

fn on_item(kind: &'static Kind) -> Vec<Operation> {
    let mut operations = Vec::new();
    if kind.allows(Verb::Get) {
        operations.push(operation(kind, "get", "get", &[]));
    }
    if kind.allows(Verb::Update) {
        let replace = operation(kind, "put", "put", WRITE);
        operations.push(Operation { body: Some(kind.schema.to_owned()), ..replace });
    }
    if kind.allows(Verb::Delete) {
        let delete = operation(kind, "delete", "delete", DELETE);
        operations.push(Operation { body: Some(DELETE_OPTIONS.into()), answer: Some(STATUS.into()), ..delete });
    }
    if kind.allows(Verb::Patch) {
        let patch = operation(kind, "patch", "patch", WRITE);
        operations.push(Operation { body: Some(PATCH.into()), ..patch });
    }
    operations
}

fn on_subresource(kind: &'static Kind, subresource: Subresource) -> Vec<Operation> {
    let facts = facts(kind, subresource);
    let connects = matches!(subresource, Subresource::Exec | Subresource::Attach | Subresource::PortForward);
    let schema = facts.schema.map(str::to_owned);
    let one = |verb: &&'static str| {
        let (method, action, parameters, body): (_, _, &'static [Parameter], _) = match *verb {
            "get" => ("get", "get", &[], None),
            "create" => ("post", "post", WRITE, schema.clone()),
            "update" => ("put", "put", WRITE, schema.clone()),
            _ => ("patch", "patch", WRITE, Some(PATCH.to_owned())),
        };
        let parameters = match subresource {
            Subresource::Log => LOG,
            Subresource::Exec => EXEC,
            Subresource::Attach => ATTACH,
            Subresource::PortForward => PORT_FORWARD,
            _ => parameters,
        };
        let action = if connects { "connect" } else { action };
        let mut operation = operation(kind, method, action, parameters);
        let (verb, method) = if connects { ("connect", capitalized(method)) } else { (verb_of(action), String::new()) };
        let below = capitalized(subresource.as_str());
        operation.id = format!("{verb}{}{method}{}{below}", version_of(kind), object_of(kind));
        operation.about = gvk(facts.group, facts.version, facts.kind);
        Operation { body, answer: schema.clone(), ..operation }
    };
    facts.verbs.iter().map(one).collect()
}

fn path_item(dialect: Dialect, kind: &Kind, path: &str, operations: &[Operation]) -> Value {
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method.to_owned(), written(dialect, kind, operation));
    }
    let mut parameters: Vec<Value> = ["name", "namespace"]
        .iter()
        .filter(|it| path.contains(&format!("{{{it}}}")))
        .map(|it| parameter(dialect, it, "string", "path"))
        .collect();
    parameters.push(parameter(dialect, PRETTY.0, PRETTY.1, "query"));
    item.insert("parameters".into(), Value::Array(parameters));
    Value::Object(item)
}

fn parameter(dialect: Dialect, name: &str, kind: &str, place: &str) -> Value {
    let mut parameter = json!({ "name": name, "in": place });
    if place == "path" {
        parameter["required"] = json!(true);
    }
    match dialect {
        Dialect::V2 => {
            parameter["type"] = json!(kind);
            parameter["uniqueItems"] = json!(true);
        }
        Dialect::V3 => parameter["schema"] = json!({ "type": kind, "uniqueItems": true }),
    }
    parameter
}

fn written(dialect: Dialect, kind: &Kind, operation: &Operation) -> Value {
    let mut parameters: Vec<Value> =
        operation.parameters.iter().map(|(name, kind)| parameter(dialect, name, kind, "query")).collect();
    if operation.action == "patch" {
        parameters.push(parameter(dialect, "force", "boolean", "query"));
    }
    let consumes: &[&str] = if operation.action == "patch" { &PATCH_TYPES } else { &["*/*"] };
    let schema = |name: &String| dialect.reference(name);
    let group = group_of(kind);
    let tag = format!("{}{}_{}", group[..1].to_lowercase(), &group[1..], kind.resource.version);
    let mut written = json!({ "tags": [tag], "operationId": operation.id });
    match dialect {
        Dialect::V2 => {
            if let Some(body) = &operation.body {
                parameters.push(json!({ "name": "body", "in": "body", "required": operation.action != "delete" && operation.action != "deletecollection", "schema": schema(body) }));
            }
            let answer = operation.answer.as_ref().map_or_else(|| json!({ "type": "string" }), schema);
            written["consumes"] = json!(consumes);
            written["produces"] = json!(["application/json"]);
            written["responses"] = json!({ "200": { "description": "OK", "schema": answer } });
        }
        Dialect::V3 => {
            if let Some(body) = &operation.body {
                let content: Map<String, Value> =
                    consumes.iter().map(|it| ((*it).to_owned(), json!({ "schema": schema(body) }))).collect();
                written["requestBody"] = json!({ "content": content });
            }
            let content = match &operation.answer {
                Some(answer) => json!({ "application/json": { "schema": schema(answer) } }),
                None => json!({ "text/plain": { "schema": { "type": "string" } } }),
            };
            written["responses"] = json!({ "200": { "description": "OK", "content": content } });
        }
    }
    written["parameters"] = Value::Array(parameters);
    written["x-kubernetes-action"] = json!(operation.action);
    written["x-kubernetes-group-version-kind"] = operation.about.clone();
    written
}
