//! Admission webhooks: what they are asked, what becomes of their answers, and what a bad one cannot do.

mod answers;
mod deciding;
mod extended;
pub(super) mod hook;
mod mutating;
mod selection;

use std::sync::Arc;

use corten_access::Identity;
use corten_cacher::body::whole;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::server;
use crate::Server;

const MUTATING: &str = "mutatingwebhookconfigurations";
pub(super) const VALIDATING: &str = "validatingwebhookconfigurations";
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server for which every Pod's address is this machine.
pub(super) async fn started() -> Server {
    started_with(server::config()).await
}

pub(super) async fn started_with(mut config: crate::Config) -> Server {
    config.webhook_dial = Some(Arc::new(|mut address| {
        address.set_ip([127, 0, 0, 1].into());
        Box::pin(TcpStream::connect(address))
    }));
    Server::start(config).await.expect("a server")
}

pub(super) struct Answered {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answered {
    pub(super) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

pub(super) async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Answered {
    ask_as(server, method, path, "application/json", body).await
}

pub(super) async fn ask_as(server: &Server, method: &str, path: &str, media_type: &str, body: &Value) -> Answered {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let request = request.header("user-agent", "tester/1");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = server.answer(request.body(whole(body)).expect("a request"), None, Some(who)).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    Answered { code: parts.status.as_u16(), headers: parts.headers, body }
}

/// A webhook of ConfigMaps, with these fields in place of the usual ones.
fn webhook(name: &str, client_config: &Value, fields: &Value) -> Value {
    let mut webhook = json!({
        "name": name, "clientConfig": client_config, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "rules": [{ "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] }],
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        webhook[field] = value.clone();
    }
    webhook
}

/// Puts a configuration in place, in place of what was.
pub(super) async fn configure(server: &Server, plural: &str, name: &str, webhooks: &[Value]) {
    let collection = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    ask(server, "DELETE", &format!("{collection}/{name}"), &Value::Null).await;
    let object = json!({ "metadata": { "name": name }, "webhooks": webhooks });
    let answered = ask(server, "POST", &collection, &object).await;
    assert_eq!(answered.code, 201, "{}", answered.body);
    assert_eq!(answered.headers.get("warning"), None);
}

async fn create(server: &Server, name: &str) -> Answered {
    ask(server, "POST", CONFIGMAPS, &json!({ "metadata": { "name": name } })).await
}
