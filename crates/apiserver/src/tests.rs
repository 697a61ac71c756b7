//! HTTP scripts against an in-process server: a request, `----`, and what its answer must be; `====` between them.
//!
//! ```text
//! # Why this step.
//! POST /api/v1/namespaces/default/configmaps
//! Content-Type: application/json
//! As: jane,system:authenticated     who asks, with groups; without it an administrator; `As: wire` is for the headers to say
//!
//! {"metadata":{"name":"a"}}
//! ----
//! 201
//! .metadata.name = "a"          a field, as JSON
//! .metadata.generation absent
//! ~ some text                   the body holds it; `!~`: it does not
//! header Warning: some text     a header holds it
//! set rv = .metadata.resourceVersion    for ${rv} later
//! ```

mod admission_policies;
mod aggregation;
mod answers;
mod attacks;
mod audit;
mod availability;
mod bombs;
mod browsers;
mod cluster_network;
mod contention;
mod conversion;
mod custom_resources;
mod depth;
mod encryption;
mod every_kind;
mod fairness;
mod faults;
mod fence;
mod frames;
mod framing;
mod future;
mod hang_ups;
mod head;
mod host_ports;
mod https;
mod indented;
mod lag;
pub(crate) mod metrics;
mod node_authorizer;
mod node_journals;
mod node_repertoire;
mod node_room;
mod numbers;
mod openapi;
mod progress;
mod protobuf;
mod proxied;
mod quota;
mod restart;
mod routes;
mod secrets;
pub(crate) mod server;
mod services;
mod shared;
mod shared_store;
mod tokens;
mod tunnels;
mod unread;
mod webhooks;
mod wide;
mod withdrawn;

use std::{collections::BTreeMap, fmt::Write};

use corten_access::Identity;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::Server;

const SCRIPTS: &[(&str, &str)] = &[
    ("accept", include_str!("../testdata/http/accept.txt")),
    ("access", include_str!("../testdata/http/access.txt")),
    ("admission", include_str!("../testdata/http/admission.txt")),
    ("admission_policies", include_str!("../testdata/http/admission_policies.txt")),
    ("admission_of_input", include_str!("../testdata/http/bad_input.txt")),
    ("api_services", include_str!("../testdata/http/api_services.txt")),
    ("apply", include_str!("../testdata/http/apply.txt")),
    ("apply_in_parts", include_str!("../testdata/http/apply_in_parts.txt")),
    ("apply_in_versions", include_str!("../testdata/http/apply_in_versions.txt")),
    ("create_and_read", include_str!("../testdata/http/create_and_read.txt")),
    ("custom_resources", include_str!("../testdata/http/custom_resources.txt")),
    ("delete", include_str!("../testdata/http/delete.txt")),
    ("device_admin_access", include_str!("../testdata/http/device_admin_access.txt")),
    ("discovery", include_str!("../testdata/http/discovery.txt")),
    ("host_ports", include_str!("../testdata/http/host_ports.txt")),
    ("impersonation", include_str!("../testdata/http/impersonation.txt")),
    ("journals", include_str!("../testdata/http/journals.txt")),
    ("limit_ranger", include_str!("../testdata/http/limit_ranger.txt")),
    ("pod_certificate_requests", include_str!("../testdata/http/pod_certificate_requests.txt")),
    ("policy_params", include_str!("../testdata/http/policy_params.txt")),
    ("policy_writes", include_str!("../testdata/http/policy_writes.txt")),
    ("quota", include_str!("../testdata/http/quota.txt")),
    ("pod_security", include_str!("../testdata/http/pod_security.txt")),
    ("classes", include_str!("../testdata/http/classes.txt")),
    ("escalation", include_str!("../testdata/http/escalation.txt")),
    ("eviction", include_str!("../testdata/http/eviction.txt")),
    ("declared_features", include_str!("../testdata/http/declared_features.txt")),
    ("pod_parts", include_str!("../testdata/http/pod_parts.txt")),
    ("strict_bodies", include_str!("../testdata/http/strict_bodies.txt")),
    ("list", include_str!("../testdata/http/list.txt")),
    ("node_addresses", include_str!("../testdata/http/node_addresses.txt")),
    ("nodes", include_str!("../testdata/http/nodes.txt")),
    ("patch", include_str!("../testdata/http/patch.txt")),
    ("patch_status", include_str!("../testdata/http/patch_status.txt")),
    ("reviews", include_str!("../testdata/http/reviews.txt")),
    ("services", include_str!("../testdata/http/services.txt")),
    ("signing_requests", include_str!("../testdata/http/signing_requests.txt")),
    ("strategies", include_str!("../testdata/http/strategies.txt")),
    ("subresources", include_str!("../testdata/http/subresources.txt")),
    ("system", include_str!("../testdata/http/system.txt")),
    ("table", include_str!("../testdata/http/table.txt")),
    ("tokens", include_str!("../testdata/http/tokens.txt")),
    ("update", include_str!("../testdata/http/update.txt")),
    ("versions", include_str!("../testdata/http/versions.txt")),
    ("watch", include_str!("../testdata/http/watch.txt")),
    ("webhook_configurations", include_str!("../testdata/http/webhook_configurations.txt")),
];

/// What the server does beside its answers is waited for by asking again, on a clock that stands still meanwhile.
const TRIES: usize = 200;
const BETWEEN_TRIES: std::time::Duration = std::time::Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn scripts() {
    let mut failures = String::new();
    // `SCRIPT=patch_status cargo test -p corten-apiserver tests::scripts` plays that one alone.
    let wanted = std::env::var("SCRIPT").unwrap_or_default();
    assert!(SCRIPTS.iter().any(|it| it.0.contains(&wanted)), "no script is called {wanted}");
    for (name, text) in SCRIPTS.iter().filter(|it| it.0.contains(&wanted)) {
        let server = server::started().await;
        if let Err(failure) = run(&server, text).await {
            writeln!(failures, "{name}: {failure}").expect("writing to memory does not fail");
        }
        server.stop().await;
    }
    assert!(failures.is_empty(), "\n{failures}");
}

async fn run(server: &Server, script: &str) -> Result<(), String> {
    let mut known = BTreeMap::new();
    for (at, step) in script.split("====\n").enumerate() {
        let (request, expected) = step.split_once("----\n").ok_or_else(|| format!("step {at} has no ----"))?;
        let (request, expected) = (filled(request, &known), filled(expected, &known));
        let mut n_tries = if request.contains("\nAgain: until it holds\n") { TRIES } else { 1 };
        while let Err(failure) = step_holds(server, &request, &expected, &mut known).await {
            n_tries -= 1;
            if n_tries == 0 {
                return Err(format!("step {at}{failure}"));
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }
    Ok(())
}

async fn step_holds(
    server: &Server,
    request: &str,
    expected: &str,
    known: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let answer = send(server, request).await.map_err(|it| format!(": {it}"))?;
    for line in expected.lines().filter(|it| !it.trim().is_empty()) {
        check(line, &answer, known)
            .map_err(|it| format!("\n{}\n  {it}\n  answer: {} {}\n", request.trim(), answer.code, answer.text))?;
    }
    Ok(())
}

fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

struct Answer {
    code: u16,
    headers: http::HeaderMap,
    text: String,
    value: Value,
}

async fn send(server: &Server, request: &str) -> Result<Answer, String> {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let mut lines = head.lines().filter(|it| !it.starts_with('#') && !it.trim().is_empty());
    let (method, uri) = lines.next().and_then(|it| it.split_once(' ')).ok_or("no request line")?;
    let mut builder = http::Request::builder().method(method).uri(uri);
    let mut who = Some(Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]));
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or_else(|| format!("no header: {line}"))?;
        if name == "Again" {
            continue;
        }
        if name == "As" {
            let names: Vec<&str> = value.split(',').collect();
            who = (names[0] != "wire").then(|| Identity::new(names[0], &names[1..]));
            continue;
        }
        builder = builder.header(name, value);
    }
    let body = corten_cacher::body::whole(body.trim_end_matches('\n').to_owned());
    let request = builder.body(body).map_err(|it| it.to_string())?;
    let response = server.answer(request, None, who).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(|it| it.to_string())?.to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, text, value })
}

fn check(line: &str, answer: &Answer, known: &mut BTreeMap<String, String>) -> Result<(), String> {
    let holds = if let Ok(code) = line.parse::<u16>() {
        answer.code == code
    } else if let Some(text) = line.strip_prefix("~ ") {
        answer.text.contains(text)
    } else if let Some(text) = line.strip_prefix("!~ ") {
        !answer.text.contains(text)
    } else if let Some(header) = line.strip_prefix("header ") {
        let (name, text) = header.split_once(": ").ok_or("a header check needs a colon")?;
        answer.headers.get_all(name).iter().any(|it| it.to_str().is_ok_and(|it| it.contains(text)))
    } else if let Some(assignment) = line.strip_prefix("set ") {
        let (name, path) = assignment.split_once(" = ").ok_or("a set needs ` = `")?;
        let value = at(&answer.value, path).ok_or_else(|| format!("nothing at {path}"))?;
        known.insert(name.into(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        true
    } else if let Some(path) = line.strip_suffix(" absent") {
        at(&answer.value, path).is_none()
    } else if let Some((path, json)) = line.split_once(" ~= ") {
        let part: String = serde_json::from_str(json).map_err(|it| format!("{line}: {it}"))?;
        at(&answer.value, path).and_then(Value::as_str).is_some_and(|it| it.contains(&part))
    } else if let Some((path, json)) = line.split_once(" = ") {
        let expected: Value = serde_json::from_str(json).map_err(|it| format!("{line}: {it}"))?;
        at(&answer.value, path) == Some(&expected)
    } else {
        return Err(format!("cannot read the expectation {line:?}"));
    };
    if holds { Ok(()) } else { Err(format!("expected: {line}")) }
}

/// `.items[0].metadata.name`; a key with dots in brackets: `.metadata.labels[a.b/c]`.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = value;
    let mut rest = path;
    while !rest.is_empty() {
        let (key, after) = if let Some(inner) = rest.strip_prefix('[') {
            inner.split_once(']')?
        } else {
            let inner = rest.strip_prefix('.')?;
            inner.split_at(inner.find(['.', '[']).unwrap_or(inner.len()))
        };
        value = match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
            _ => value.get(key)?,
        };
        rest = after;
    }
    Some(value)
}
