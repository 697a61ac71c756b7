//! What is secret stands in no refusal, in no audit record that keeps only metadata, and in no journal: a marker is sent in
//! every place where a secret may stand, and looked for in all that is said of it.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_access::Identity;
use corten_store::backend::memory::Memory;
use http::Request;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::json;

use super::server;
use crate::{Server, Sink};

const MARKER: &str = "m4rk3r-of-a-secret";

#[derive(Default)]
struct RecordingSink(Mutex<Vec<u8>>);

impl Sink for RecordingSink {
    fn record(&self, line: Vec<u8>) {
        self.0.lock().extend(line);
    }

    fn dropped(&self) -> u64 {
        0
    }
}

fn tells(text: &str) -> bool {
    // Encoded text begins anew every three bytes: the middle is the same wherever the marker begins.
    let encoded = |pad: &str| {
        let text = STANDARD.encode(format!("{pad}{MARKER}"));
        text[4 * pad.len().div_ceil(3)..text.len() - 4].to_owned()
    };
    text.contains(MARKER) || ["", "x", "xx"].iter().any(|pad| text.contains(&encoded(pad)))
}

/// One request: method, path, content type, body.
type Sent = (&'static str, &'static str, &'static str, String);

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SECRET: &str = "/api/v1/namespaces/default/secrets/s";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Everything here is refused.
fn refused() -> Vec<Sent> {
    let encoded = STANDARD.encode(MARKER);
    let dockers = |content: String| {
        let data = STANDARD.encode(content);
        json!({ "metadata": { "name": "d" }, "type": "kubernetes.io/dockerconfigjson", "data": { ".dockerconfigjson": data } })
            .to_string()
    };
    let s = |data: &str| format!(r#"{{"metadata":{{"name":"x"}},{data}}}"#);
    let op = |op: &str| format!(r#"[{{"op":"{op}","path":"/data/k","value":"{MARKER}"}}]"#);
    let mut all: Vec<Sent> = vec![
        ("POST", SECRETS, JSON, s(&format!(r#""data":{{"k":"{MARKER}!"}}"#))),
        ("POST", SECRETS, JSON, s(&format!(r#""data":{{"k":["{MARKER}"]}}"#))),
        ("POST", SECRETS, JSON, s(&format!(r#""data":"{MARKER}""#))),
        ("POST", SECRETS, JSON, s(&format!(r#""data":["{MARKER}"]"#))),
        ("POST", SECRETS, JSON, s(&format!(r#""stringData":{{"k":{{"a":"{MARKER}"}}}}"#))),
        ("POST", SECRETS, JSON, s(&format!(r#""stringData":"{MARKER}""#))),
        ("POST", SECRETS, JSON, s(&format!(r#""stringData":{{"a b":"{MARKER}"}}"#))),
        ("POST", SECRETS, JSON, s(&format!(r#""data":{{"a b":"{encoded}"}}"#))),
        ("POST", SECRETS, JSON, s(&format!(r#""stringData":{{"k":"{MARKER}"}},"type":"kubernetes.io/tls""#))),
        ("POST", SECRETS, JSON, s(&format!(r#""stringData":{{"k":"{MARKER}"}},"type":"kubernetes.io/ssh-auth""#))),
        ("POST", SECRETS, JSON, s(&format!(r#""stringData":{{"k":"{MARKER}"}},"immutable":"yes""#))),
        ("POST", SECRETS, JSON, format!(r#"{{"metadata":{{"name":"x"}},"stringData":{{"k":"{MARKER}"#)),
        ("POST", SECRETS, JSON, format!(r#""{MARKER}""#)),
        ("POST", SECRETS, JSON, format!(r#"["{MARKER}"]"#)),
        ("POST", SECRETS, JSON, MARKER.into()),
        ("POST", SECRETS, JSON, dockers(format!(r#""{MARKER}""#))),
        ("POST", SECRETS, JSON, dockers(format!(r#"["{MARKER}"]"#))),
        ("POST", SECRETS, JSON, dockers(MARKER.into())),
        ("POST", SECRETS, JSON, dockers(format!(r#"{{"auths":{{"a":"{MARKER}"}}"#))),
        ("POST", SECRETS, JSON, dockers(format!(r#"{{"auths":"{MARKER}"}} {MARKER}"#))),
        ("POST", SECRETS, YAML, format!("metadata: {{name: x}}\nstringData:\n  k: {MARKER}\n bad: [\n")),
        ("POST", SECRETS, YAML, format!("metadata: {{name: x}}\nstringData:\n  k: \"{MARKER}\n")),
        ("POST", SECRETS, YAML, format!("metadata: {{name: x}}\nstringData:\n  k: *{MARKER}\n")),
        ("POST", SECRETS, YAML, format!("metadata: {{name: x}}\ndata:\n  k: {MARKER}!\n")),
        ("POST", SECRETS, YAML, format!("metadata: {{name: x}}\nstringData:\n  k: !!int {MARKER}\n")),
        ("POST", SECRETS, YAML, format!("stringData: {{k: {MARKER}, k: {MARKER}}}\nmetadata: {{name: x\n")),
        ("POST", SECRETS, YAML, format!("{MARKER}: {MARKER}: {MARKER}\n")),
        ("POST", SECRETS, YAML, MARKER.into()),
        ("POST", SECRETS, "application/vnd.kubernetes.protobuf", format!("k8s\0{MARKER}")),
        ("POST", SECRETS, "text/plain", MARKER.into()),
        (
            "PUT",
            SECRET,
            JSON,
            format!(r#"{{"metadata":{{"name":"s"}},"type":"other","stringData":{{"k":"{MARKER}"}}}}"#),
        ),
        ("PATCH", SECRET, PATCH, op("test")),
        ("PATCH", SECRET, PATCH, op("put")),
        ("PATCH", SECRET, PATCH, format!(r#"{{"data":"{MARKER}"}}"#)),
        (
            "PATCH",
            SECRET,
            PATCH,
            format!(r#"[{{"op":"add","path":"/data/k/{MARKER}/x","value":"{MARKER}"}}]"#)
                .replace(&format!("/{MARKER}"), "/a"),
        ),
        ("PATCH", SECRET, PATCH, format!(r#"[{{"op":"add","path":"/data","value":"{MARKER}"}}]"#)),
        ("PATCH", SECRET, PATCH, format!(r#"[{{"op":"replace","path":"","value":"{MARKER}"}}]"#)),
        ("PATCH", SECRET, PATCH, format!(r#"["{MARKER}"]"#)),
        ("PATCH", SECRET, MERGE, format!(r#"{{"data":"{MARKER}"}}"#)),
        ("PATCH", SECRET, MERGE, format!(r#"{{"data":{{"k":"{MARKER}!"}}}}"#)),
        ("PATCH", SECRET, MERGE, format!(r#"{{"data":{{"k":"{MARKER}"#)),
        ("PATCH", SECRET, MERGE, format!(r#""{MARKER}""#)),
        ("PATCH", SECRET, MERGE, format!(r#"{{"type":"other","stringData":{{"k":"{MARKER}"}}}}"#)),
        ("PATCH", SECRET, STRATEGIC, format!(r#"{{"data":"{MARKER}"}}"#)),
        ("PATCH", SECRET, STRATEGIC, format!(r#"{{"data":{{"k":["{MARKER}"]}}}}"#)),
        ("PATCH", SECRET, STRATEGIC, format!(r#"{{"data":{{"$patch":"{MARKER}"}}}}"#)),
        ("PATCH", "/api/v1/namespaces/default/secrets/s?fieldManager=m", APPLY, format!("data: {{k: {MARKER}!}}\n")),
        (
            "PATCH",
            "/api/v1/namespaces/default/secrets/s?fieldManager=m",
            APPLY,
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: eA==}\n".into(),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default/secrets/s?fieldManager=m",
            APPLY,
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\ndata:\n  k: {MARKER}\n x: [\n"),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default/secrets/s?fieldManager=m",
            APPLY,
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\ndata: {{k: [{MARKER}]}}\n"),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default/secrets/s?fieldManager=m",
            APPLY,
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\ndata: {{k: {encoded}, k: [{encoded}}}\n"),
        ),
        (
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            JSON,
            format!(r#"{{"spec":{{"token":["{MARKER}"]}}}}"#),
        ),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", JSON, format!(r#"{{"spec":"{MARKER}"}}"#)),
        (
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            JSON,
            format!(r#"{{"spec":{{"token":"{MARKER}","audiences":"x"}}}}"#),
        ),
    ];
    let strict = |query: &'static str| {
        ("POST", query, JSON, s(&format!(r#""stringData":{{"k":"{MARKER}","k":"{MARKER}"}},"dat":{{"k":"{MARKER}"}}"#)))
    };
    all.push(strict("/api/v1/namespaces/default/secrets?fieldValidation=Strict"));
    all
}

struct World {
    server: Server,
    records: Arc<RecordingSink>,
}

impl World {
    async fn start() -> Self {
        let records = Arc::new(RecordingSink::default());
        let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]";
        let guard =
            crate::Guard { audit_policy: crate::AuditPolicy::parse(policy).expect("a policy"), ..Default::default() };
        let config = crate::Config { audit: Some(records.clone()), guard, ..server::over(Arc::new(Memory::new())) };
        let server = Server::start(config).await.expect("a server over an empty store starts");
        let this = Self { server, records };
        let body =
            json!({ "metadata": { "name": "s" }, "stringData": { "k": MARKER }, "immutable": false }).to_string();
        assert_eq!(this.send(&("POST", SECRETS, JSON, body)).await.0, 201);
        this
    }

    /// The code, and all that is said: headers and body.
    async fn send(&self, (method, path, content_type, body): &Sent) -> (u16, String) {
        let request = Request::builder().method(*method).uri(*path).header("content-type", *content_type);
        let request = request.body(corten_cacher::body::whole(body.clone())).expect("a request");
        let who = Identity::new("root", &["system:masters"]);
        let response = self.server.answer(request, None, Some(who)).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        (parts.status.as_u16(), format!("{:?} {}", parts.headers, String::from_utf8_lossy(&body)))
    }
}

#[tokio::test(start_paused = true)]
async fn no_refusal_and_no_record_shows_what_is_secret() {
    let world = World::start().await;
    let mut found = Vec::new();
    for sent in refused() {
        let (code, said) = world.send(&sent).await;
        if code < 400 || tells(&said) {
            found.push(format!("{code} {sent:?}\n  {said}"));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    let records = String::from_utf8_lossy(&world.records.0.lock()).into_owned();
    assert!(records.contains("\"level\":\"Metadata\"") && !tells(&records));
    world.server.stop().await;
}

/// Warnings are read by people, and kept by their tools.
#[tokio::test(start_paused = true)]
async fn no_warning_shows_what_is_secret() {
    let world = World::start().await;
    let twice = format!(
        r#"{{"metadata":{{"name":"w"}},"stringData":{{"k":"{MARKER}","k":"{MARKER}"}},"dat":{{"k":"{MARKER}"}}}}"#
    );
    let (code, said) = world.send(&("POST", SECRETS, JSON, twice)).await;
    let (head, _) = said.split_once("} ").expect("headers come first");
    assert_eq!(code, 201, "{said}");
    assert!(head.contains("unknown field") && head.contains("duplicate field") && !tells(head), "{head}");
    world.server.stop().await;
}
