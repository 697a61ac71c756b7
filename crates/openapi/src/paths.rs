//! Operations as the items of paths, in the dialect of version 2 or 3.

use std::collections::BTreeMap;

use corten_kinds::KindRef;
use serde_json::{Map, Value, json};

use super::{
    operations::{self, Operation, capitalized, group_of},
    parameters::Parameter,
    schemas::{Dialect, Schemas, VERSION},
};

const GROUP: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup";
const GROUPS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList";
const RESOURCES: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
const VERSIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions";

/// The one operation whose answer has a media type of its own.
const KEY_SET: &str = "getServiceAccountIssuerOpenIDKeyset";

const OBJECT_TYPES: &[&str] = &["application/json", "application/yaml"];
/// The last is for types of the table alone.
const PATCH_TYPES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// What can be done at some paths.
pub(super) type Paths = BTreeMap<String, Vec<Operation>>;

/// Every path of these kinds, all of one group and version.
pub(super) fn of_version(kinds: &[KindRef]) -> Paths {
    let resource = &kinds[0].resource;
    let (group, version) = (group_of(&resource.group), &resource.version);
    let id = format!("get{}{}APIResources", capitalized(&group), capitalized(version));
    let path = format!("{}/", resource.group_path());
    let list = discovery("get available resources", id, format!("{group}_{version}"), RESOURCES);
    let mut paths = Paths::from([(path, vec![list])]);
    paths.extend(kinds.iter().flat_map(|it| operations::of_kind(it)));
    paths
}

/// `/apis/apps/`.
pub(super) fn of_group(name: &str) -> Paths {
    let group = group_of(name);
    let id = format!("get{}APIGroup", capitalized(&group));
    Paths::from([(format!("/apis/{name}/"), vec![discovery("get information of a group", id, group, GROUP)])])
}

/// Paths of no group, and the name of the document that each is in.
pub(super) fn of_no_group() -> [(&'static str, Paths); 5] {
    let one = |path: &str, description: &str, id: &str, tag: &str, answer: Option<&str>| {
        let operation = discovery(description, id.into(), tag.into(), answer.unwrap_or_default());
        let answer = answer.map(str::to_owned);
        Paths::from([(path.to_owned(), vec![Operation { answer, ..operation }])])
    };
    [
        (
            ".well-known/openid-configuration",
            one(
                "/.well-known/openid-configuration/",
                "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
                "getServiceAccountIssuerOpenIDConfiguration",
                "WellKnown",
                None,
            ),
        ),
        ("api", one("/api/", "get available API versions", "getCoreAPIVersions", "core", Some(VERSIONS))),
        ("apis", one("/apis/", "get available API versions", "getAPIVersions", "apis", Some(GROUPS))),
        (
            "openid/v1/jwks",
            one(
                "/openid/v1/jwks/",
                "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
                KEY_SET,
                "openid",
                None,
            ),
        ),
        (
            "version",
            one("/version/", "get the version information for this server", "getCodeVersion", "version", Some(VERSION)),
        ),
    ]
}

fn discovery(description: &str, id: String, tag: String, answer: &str) -> Operation {
    Operation {
        method: "get",
        action: "",
        description: description.to_owned(),
        id,
        tag,
        parameters: Vec::new(),
        body: None,
        answer: Some(answer.to_owned()),
        about: None,
        is_custom: false,
    }
}

/// The types that bodies and answers have.
pub(super) fn roots(paths: &Paths) -> Vec<String> {
    let operations = paths.values().flatten();
    operations.flat_map(|it| [&it.body, &it.answer]).flatten().cloned().collect()
}

/// One path's item. What every operation there understands is said once.
pub(super) fn item(schemas: &Schemas, dialect: Dialect, operations: &[Operation]) -> Value {
    let everywhere = |wanted: &&Parameter| operations.iter().all(|it| it.parameters.contains(*wanted));
    let shared: Vec<&Parameter> = operations[0].parameters.iter().filter(everywhere).collect();
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method.to_owned(), written(schemas, dialect, operation, &shared));
    }
    if !shared.is_empty() {
        let shared: Vec<Value> = shared.into_iter().map(|it| it.written(schemas, dialect)).collect();
        item.insert("parameters".into(), Value::Array(shared));
    }
    Value::Object(item)
}

fn written(schemas: &Schemas, dialect: Dialect, operation: &Operation, shared: &[&Parameter]) -> Value {
    let own = operation.parameters.iter().filter(|it| !shared.contains(it));
    let mut parameters: Vec<Value> = own.map(|it| it.written(schemas, dialect)).collect();
    let consumes: &[&str] = match operation.action {
        "patch" if operation.is_custom => &PATCH_TYPES[..PATCH_TYPES.len() - 1],
        "patch" => PATCH_TYPES,
        _ => &["*/*"],
    };
    let mut written = json!({ "description": operation.description, "operationId": operation.id });
    let schema = operation.body.as_ref().map(|it| dialect.reference(it));
    let required = !matches!(operation.action, "delete" | "deletecollection");
    match (dialect, schema) {
        (Dialect::V2, schema) => {
            written["consumes"] = json!(consumes);
            written["produces"] = json!(produces(operation));
            written["schemes"] = json!(["https"]);
            if let Some(schema) = schema {
                let mut body = json!({ "name": "body", "in": "body", "schema": schema });
                if required {
                    body["required"] = json!(true);
                }
                parameters.insert(0, body);
            }
        }
        (Dialect::V3, Some(schema)) => {
            let content: Map<String, Value> =
                consumes.iter().map(|it| ((*it).to_owned(), json!({ "schema": schema }))).collect();
            written["requestBody"] = json!({ "content": content });
            if required {
                written["requestBody"]["required"] = json!(true);
            }
        }
        (Dialect::V3, None) => {}
    }
    if !parameters.is_empty() {
        written["parameters"] = Value::Array(parameters);
    }
    written["responses"] = responses(dialect, operation);
    written["tags"] = json!([operation.tag]);
    if !operation.action.is_empty() {
        written["x-kubernetes-action"] = json!(operation.action);
    }
    if let Some(about) = &operation.about {
        written["x-kubernetes-group-version-kind"] = about.clone();
    }
    written
}

fn produces(operation: &Operation) -> Vec<&'static str> {
    match (&operation.answer, operation.action) {
        (None, "connect") => vec!["*/*"],
        (None, "") if operation.id == KEY_SET => vec!["application/jwk-set+json"],
        (None, "") => vec!["application/json"],
        (None, _) => [OBJECT_TYPES, &["text/plain"]].concat(),
        (_, "list" | "watch" | "watchlist") => {
            vec!["application/json", "application/json;stream=watch", "application/yaml"]
        }
        (Some(of), _) if of == VERSION => vec!["application/json"],
        _ => OBJECT_TYPES.to_vec(),
    }
}

fn responses(dialect: Dialect, operation: &Operation) -> Value {
    let good: &[(&str, &str)] = match operation.action {
        "post" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
        "put" | "patch" => &[("200", "OK"), ("201", "Created")],
        "delete" => &[("200", "OK"), ("202", "Accepted")],
        _ => &[("200", "OK")],
    };
    let schema = operation.answer.as_ref().map_or_else(|| json!({ "type": "string" }), |it| dialect.reference(it));
    let mut responses = Map::new();
    for (code, description) in good {
        let mut response = json!({ "description": description });
        match dialect {
            Dialect::V2 => response["schema"] = schema.clone(),
            Dialect::V3 => {
                let content: Map<String, Value> =
                    produces(operation).into_iter().map(|it| (it.to_owned(), json!({ "schema": schema }))).collect();
                response["content"] = Value::Object(content);
            }
        }
        responses.insert((*code).to_owned(), response);
    }
    responses.insert("401".into(), json!({ "description": "Unauthorized" }));
    Value::Object(responses)
}
