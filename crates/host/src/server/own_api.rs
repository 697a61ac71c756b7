//! The part of Kubernetes's API that a node can answer by itself, for root of its machine: its Node and its Pods as they are, their logs and
//! shells, and the journals of its loops. kubectl and `corten why` work with it while no control plane answers.
//!
//! Who shows the node's own certificate and comes from the machine itself is answered here, and nobody else.

use std::collections::BTreeSet;

use corten_api::version::VERSION;
use corten_meta::Status;
use http::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{
    Body, OwnList, PlainTextError, access::Caller, containers, json_body, logs, query, routes::Call, streams, text,
};

/// Both ends are of one machine where they have one address.
pub(super) fn is_from_here(stream: &TcpStream) -> bool {
    let ends = stream.peer_addr().ok().zip(stream.local_addr().ok());
    ends.is_some_and(|(peer, own)| peer.ip() == own.ip() || peer.ip().is_loopback())
}

pub(super) fn is_node(node: &str, caller: &Caller) -> bool {
    caller.user == format!("system:node:{node}") && caller.groups.iter().any(|it| it == "system:nodes")
}

/// Is it a path of the API, and none of the kubelet's own?
pub(super) fn is_of_api(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("api" | "apis" | "readyz" | "version"))
}

/// What a path asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Ready,
    Version,
    /// The versions of the core group.
    Versions,
    Groups,
    /// What is served of a group.
    Resources,
    JournalResources,
    Nodes,
    Node(String),
    Namespaces,
    Namespace(String),
    /// Of a namespace, or of all.
    Pods(String),
    Pod(String, String),
    Subresource(String, String, String),
    Journals,
    Journal(String, String),
    Nothing,
}

fn wanted(path: &str) -> Wanted {
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let own = |it: &&str| (**it).to_owned();
    match &parts[..] {
        ["readyz"] => Wanted::Ready,
        ["version"] => Wanted::Version,
        ["api"] => Wanted::Versions,
        ["apis"] => Wanted::Groups,
        ["api", "v1"] => Wanted::Resources,
        ["apis", "corten.dev", "v1"] => Wanted::JournalResources,
        ["api", "v1", "nodes"] => Wanted::Nodes,
        ["api", "v1", "nodes", name] => Wanted::Node(own(name)),
        ["api", "v1", "namespaces"] => Wanted::Namespaces,
        ["api", "v1", "namespaces", name] => Wanted::Namespace(own(name)),
        ["api", "v1", "pods"] => Wanted::Pods(String::new()),
        ["api", "v1", "namespaces", namespace, "pods"] => Wanted::Pods(own(namespace)),
        ["api", "v1", "namespaces", namespace, "pods", name] => Wanted::Pod(own(namespace), own(name)),
        ["api", "v1", "namespaces", namespace, "pods", name, subresource] => {
            Wanted::Subresource(own(namespace), own(name), own(subresource))
        }
        ["apis", "corten.dev", "v1", "journals"] | ["apis", "corten.dev", "v1", "namespaces", _, "journals"] => {
            Wanted::Journals
        }
        ["apis", "corten.dev", "v1", "namespaces", namespace, "journals", name] => {
            Wanted::Journal(own(namespace), own(name))
        }
        _ => Wanted::Nothing,
    }
}

pub(super) async fn answer(mut call: Call) -> Result<Response<Body>, PlainTextError> {
    let wanted = wanted(call.request.uri().path());
    let is_stream = matches!(&wanted, Wanted::Subresource(_, _, it) if it != "log");
    if call.request.method() != Method::GET && !is_stream {
        let message = "the node itself can be read only: its API server does not answer, or was not asked";
        return Ok(refusal(&Status::failure(405, "MethodNotAllowed", message)));
    }
    if query(call.query()).iter().any(|it| it.0 == "watch" && it.1 != "false" && it.1 != "0") {
        return Ok(refusal(&Status::failure(405, "MethodNotAllowed", "the node itself cannot be watched")));
    }
    let own = call.server.cluster().own().await.map_err(PlainTextError::internal)?;
    let fields = fields(call.query());
    let found = match wanted {
        Wanted::Ready => return Ok(Response::new(text("ok"))),
        Wanted::Version => Some(json!({ "major": "1", "minor": minor(), "gitVersion": VERSION, "platform": "linux" })),
        Wanted::Versions => Some(json!({ "kind": "APIVersions", "versions": ["v1"] })),
        Wanted::Groups => Some(groups()),
        Wanted::Resources => Some(resources()),
        Wanted::JournalResources => Some(journal_resources()),
        Wanted::Nodes => Some(list("NodeList", "v1", own.node.into_iter().filter(|it| fields.match_all(it)).collect())),
        Wanted::Node(name) => own.node.filter(|it| it["metadata"]["name"] == name).map(|it| typed(it, "Node")),
        Wanted::Namespaces => Some(list("NamespaceList", "v1", namespaces(&own))),
        Wanted::Namespace(name) => namespaces(&own).into_iter().find(|it| it["metadata"]["name"] == name),
        Wanted::Pods(namespace) => {
            let is_in = |it: &Value| namespace.is_empty() || it["metadata"]["namespace"] == namespace;
            let mut pods: Vec<Value> = own.pods.into_iter().filter(|it| is_in(it) && fields.match_all(it)).collect();
            // As the API server lists them.
            pods.sort_by_cached_key(|it| ["namespace", "name"].map(|field| it["metadata"][field].to_string()));
            Some(list("PodList", "v1", pods))
        }
        Wanted::Pod(namespace, name) => pod(own, &namespace, &name).map(|it| typed(it, "Pod")),
        Wanted::Subresource(namespace, name, subresource) => match pod(own, &namespace, &name) {
            Some(pod) => return of_pod(call, (namespace, name), &pod, &subresource).await,
            None => None,
        },
        Wanted::Journals => {
            let waiting = call.server.journals().waiting();
            let items = waiting["items"].as_array().cloned().unwrap_or_default();
            Some(list("JournalList", "corten.dev/v1", items))
        }
        Wanted::Journal(namespace, name) => {
            call.names = vec![namespace, name];
            return containers::journal(call).await;
        }
        Wanted::Nothing => None,
    };
    Ok(found
        .map_or_else(|| refusal(&Status::failure(404, "NotFound", not_here(call.server.node()))), |it| json_body(&it)))
}

fn not_here(node: &str) -> String {
    format!("node {node} has no such object: it knows its own Pods, itself, and what its loops wait for")
}

async fn of_pod(
    mut call: Call,
    (namespace, name): (String, String),
    pod: &Value,
    subresource: &str,
) -> Result<Response<Body>, PlainTextError> {
    let asked = query(call.query()).into_iter().find(|it| it.0 == "container" && !it.1.is_empty()).map(|it| it.1);
    let first = || pod["spec"]["containers"][0]["name"].as_str().unwrap_or_default().to_owned();
    let container = asked.unwrap_or_else(first);
    call.names = match subresource {
        "portforward" => vec![namespace, name],
        _ => vec![namespace, name, container],
    };
    match subresource {
        "log" => logs::answer(call).await,
        "exec" => streams::exec(call).await,
        "attach" => streams::attach(call).await,
        "portforward" => streams::port_forward(call).await,
        _ => Ok(refusal(&Status::failure(404, "NotFound", not_here(call.server.node())))),
    }
}

fn pod(own: OwnList, namespace: &str, name: &str) -> Option<Value> {
    let is_it = |it: &Value| it["metadata"]["namespace"] == namespace && it["metadata"]["name"] == name;
    own.pods.into_iter().find(is_it)
}

/// Those that Pods are in, and the usual one. Of others it is not known whether they are there.
fn namespaces(own: &OwnList) -> Vec<Value> {
    let names = own.pods.iter().filter_map(|it| it["metadata"]["namespace"].as_str());
    let names: BTreeSet<&str> = names.chain(["default"]).collect();
    let one = |name: &str| {
        json!({
            "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": name }, "status": { "phase": "Active" },
        })
    };
    names.into_iter().map(one).collect()
}

/// Fields that a list's objects must have, by their paths.
struct Fields(Vec<(String, String, bool)>);

fn fields(text: &str) -> Fields {
    let selector = query(text).into_iter().find(|it| it.0 == "fieldSelector").map(|it| it.1).unwrap_or_default();
    let one = |it: &str| {
        let (path, value, is_equal) = match it.split_once("!=") {
            Some((path, value)) => (path, value, false),
            None => it.split_once('=').map(|(path, value)| (path, value.trim_start_matches('='), true))?,
        };
        Some((format!("/{}", path.replace('.', "/")), value.to_owned(), is_equal))
    };
    Fields(selector.split(',').filter_map(one).collect())
}

impl Fields {
    fn match_all(&self, object: &Value) -> bool {
        let has = |path: &str, value: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default() == value;
        self.0.iter().all(|(path, value, is_equal)| has(path, value) == *is_equal)
    }
}

fn minor() -> &'static str {
    VERSION.trim_start_matches('v').split('.').nth(1).unwrap_or_default()
}

fn list(kind: &str, version: &str, items: Vec<Value>) -> Value {
    json!({ "kind": kind, "apiVersion": version, "metadata": { "resourceVersion": "" }, "items": items })
}

fn typed(mut object: Value, kind: &str) -> Value {
    (object["kind"], object["apiVersion"]) = (kind.into(), "v1".into());
    object
}

fn groups() -> Value {
    let version = json!({ "groupVersion": "corten.dev/v1", "version": "v1" });
    let group = json!({ "name": "corten.dev", "versions": [version.clone()], "preferredVersion": version });
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group] })
}

fn resources() -> Value {
    let one = |name: &str, kind: &str, namespaced: bool, verbs: &[&str]| {
        let singular = if name.contains('/') { String::new() } else { kind.to_lowercase() };
        json!({ "name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs })
    };
    let mut pods = one("pods", "Pod", true, &["get", "list"]);
    pods["shortNames"] = json!(["po"]);
    let resources = [
        one("namespaces", "Namespace", false, &["get", "list"]),
        one("nodes", "Node", false, &["get", "list"]),
        pods,
        one("pods/log", "Pod", true, &["get"]),
        one("pods/attach", "PodAttachOptions", true, &["create", "get"]),
        one("pods/exec", "PodExecOptions", true, &["create", "get"]),
        one("pods/portforward", "PodPortForwardOptions", true, &["create", "get"]),
    ];
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": resources })
}

fn journal_resources() -> Value {
    let journals = json!({
        "name": "journals", "singularName": "journal", "namespaced": true, "kind": "Journal", "verbs": ["get", "list"],
    });
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "corten.dev/v1", "resources": [journals] })
}

/// As kubectl reads refusals.
fn refusal(status: &Status) -> Response<Body> {
    let mut response = json_body(&serde_json::to_value(status).unwrap_or_default());
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_api_is_understood_and_others_are_nothing() {
        let two = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let (namespace, name) = two("shop", "web-1");
        for (path, expected) in [
            ("/api/v1/pods", Wanted::Pods(String::new())),
            ("/api/v1/namespaces/shop/pods", Wanted::Pods(namespace.clone())),
            ("/api/v1/namespaces/shop/pods/web-1", Wanted::Pod(namespace.clone(), name.clone())),
            ("/api/v1/namespaces/shop/pods/web-1/log", Wanted::Subresource(namespace.clone(), name, "log".into())),
            ("/api/v1/nodes/two", Wanted::Node("two".into())),
            (
                "/apis/corten.dev/v1/namespaces/shop/journals/pods.web-1",
                Wanted::Journal(namespace, "pods.web-1".into()),
            ),
            ("/api/v1/namespaces/shop/secrets/key", Wanted::Nothing),
            ("/containerLogs/a/b/c", Wanted::Nothing),
        ] {
            assert_eq!(wanted(path), expected, "{path}");
        }
    }

    #[test]
    fn only_the_node_itself_is_meant() {
        let caller =
            |user: &str, group: &str| Caller { user: user.into(), groups: vec![group.to_owned()], ..Caller::default() };
        assert!(is_node("two", &caller("system:node:two", "system:nodes")));
        assert!(!is_node("two", &caller("system:node:one", "system:nodes")));
        assert!(!is_node("two", &caller("system:node:two", "system:authenticated")));
    }

    #[test]
    fn fields_are_compared_by_their_paths() {
        let pod =
            json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "two" }, "status": { "phase": "Running" } });
        for (text, expected) in [
            ("", true),
            ("fieldSelector=spec.nodeName%3Dtwo", true),
            ("fieldSelector=spec.nodeName%3Dtwo%2Cstatus.phase!%3DRunning", false),
            ("fieldSelector=metadata.name%3D%3Db", false),
        ] {
            assert_eq!(fields(text).match_all(&pod), expected, "{text}");
        }
    }
}
