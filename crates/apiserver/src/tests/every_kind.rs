//! Every row of the table, views too, through every verb it serves, with a minimal manifest of its own.
//!
//! `testdata/kinds/<plural>.<group>.yaml` is the manifest of a resource in all versions with the same fields; one with other
//! fields has `<plural>.<group>.<version>.yaml`. A row without a manifest fails.

use std::{fmt::Write, fs, path::Path};

use bytes::Bytes;
use corten_access::Identity;
use corten_kinds::{KINDS, Kind, Subresource, Verb};
use corten_meta::Key;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{protobuf, server};
use crate::Server;

#[tokio::test(start_paused = true)]
async fn every_row_serves_every_verb() {
    let server = server::started().await;
    for setup in ["serviceaccounts", "pods"] {
        let name = if setup == "pods" { "bound" } else { "default" };
        let mut object = manifest(setup);
        object["metadata"]["name"] = name.into();
        ask(&server, "POST", &format!("/api/v1/namespaces/default/{setup}"), &object).await;
    }
    let mut failures = String::new();
    for kind in KINDS.iter() {
        if let Err(failure) = serve(&server, kind).await {
            let resource = &kind.resource;
            writeln!(failures, "{} of {}: {failure}", resource.plural, resource.api_version())
                .expect("memory is there");
        }
    }
    server.stop().await;
    assert!(failures.is_empty(), "\n{failures}");
}

struct Answer {
    code: u16,
    value: Value,
    text: String,
}

async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", content);
    let response = server.call(who, request.body(Bytes::from(body)).expect("a request")).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Answer { code, value: serde_json::from_slice(&bytes).unwrap_or(Value::Null), text }
}

fn manifest(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/kinds/{name}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn manifest_of(kind: &Kind) -> Value {
    let resource = &kind.resource;
    if kind.view_of.as_ref().is_some_and(|it| !it.same_fields) {
        return manifest(&format!("{}.{}", resource.qualified(), resource.version));
    }
    manifest(&resource.qualified())
}

async fn serve(server: &Server, kind: &'static Kind) -> Result<(), String> {
    if kind.stored_row().is_stored() {
        return Row { server, kind }.all_verbs().await;
    }
    let collection = kind.resource.collection_path(if kind.resource.namespaced { "default" } else { "" });
    let answer = match &*kind.resource.plural {
        // Read only; without nodes nothing is measured.
        "componentstatuses" => ask(server, "GET", &collection, &Value::Null).await,
        _ if kind.resource.group == "metrics.k8s.io" => ask(server, "GET", &collection, &Value::Null).await,
        "journals" => ask(server, "GET", &format!("{collection}/pods.web.1"), &Value::Null).await,
        _ => ask(server, "POST", &collection, &manifest_of(kind)).await,
    };
    if answer.code < 300 { Ok(()) } else { Err(format!("{} {}", answer.code, answer.text)) }
}

struct Row<'a> {
    server: &'a Server,
    kind: &'static Kind,
}

impl Row<'_> {
    fn namespace(&self) -> &'static str {
        if self.kind.resource.namespaced { "default" } else { "" }
    }

    fn path(&self, name: &str) -> String {
        self.kind.resource.path(&Key::new(self.namespace(), name))
    }

    fn collection(&self) -> String {
        self.kind.resource.collection_path(self.namespace())
    }

    async fn ask(&self, method: &str, path: &str, body: &Value, wanted: u16) -> Result<Answer, String> {
        let answer = ask(self.server, method, path, body).await;
        if answer.code == wanted {
            Ok(answer)
        } else {
            Err(format!("{method} {path}: {} {}", answer.code, answer.text))
        }
    }

    /// The answer is an object of this row.
    fn is_mine(&self, value: &Value, suffix: &str) -> Result<(), String> {
        let resource = &self.kind.resource;
        let (kind, version) = (format!("{}{suffix}", resource.kind), resource.api_version());
        if value["kind"] == *kind && value["apiVersion"] == *version {
            Ok(())
        } else {
            Err(format!("not a {kind} of {version}: {value}"))
        }
    }

    async fn all_verbs(&self) -> Result<(), String> {
        let object = manifest_of(self.kind);
        let created = self.ask("POST", &self.collection(), &object, 201).await?.value;
        self.is_mine(&created, "")?;
        self.keeps(&object, &created)?;
        let name = created["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.keeps_draft(&name)?;
        self.read(&name).await?;
        protobuf::same(self.server, &self.path(&name)).await?;
        protobuf::same(self.server, &format!("{}?limit=500", self.collection())).await?;
        self.change(&name).await?;
        self.subresources(&name).await?;
        self.delete(&name).await?;
        if self.kind.allows(Verb::DeleteCollection) {
            self.delete_all(&object).await?;
        }
        Ok(())
    }

    /// Whatever the author said is in the answer.
    fn keeps(&self, said: &Value, answer: &Value) -> Result<(), String> {
        // Written only: what it says is found in `data`.
        let lost = lost("", said, answer).filter(|it| !it.starts_with(".stringData"));
        lost.map_or(Ok(()), |path| Err(format!("the answer lost {path}: {answer}")))
    }

    /// What the next write takes for the object is what would be read out of its bytes.
    fn keeps_draft(&self, name: &str) -> Result<(), String> {
        let cache = self.server.cache(self.kind.stored_row());
        let stored = cache.get(self.namespace(), name).ok_or("the cache lacks it")?;
        let (draft, is_whole) = self.server.caches().draft(cache, &stored);
        if is_whole && *draft == stored.draft() { Ok(()) } else { Err(format!("its draft is {draft}")) }
    }

    async fn read(&self, name: &str) -> Result<(), String> {
        let got = self.ask("GET", &self.path(name), &Value::Null, 200).await?.value;
        self.is_mine(&got, "")?;
        let selector = format!("?fieldSelector=metadata.name%3D{name}");
        let list = self.ask("GET", &format!("{}{selector}", self.collection()), &Value::Null, 200).await?.value;
        self.is_mine(&list, "List")?;
        let mut listed = list["items"][0].clone();
        listed["kind"] = got["kind"].clone();
        listed["apiVersion"] = got["apiVersion"].clone();
        if listed != got {
            return Err(format!("listed is {listed}, got is {got}"));
        }
        let revision: u64 =
            got["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).unwrap_or_default();
        // The state as it is, and the event that made it so.
        for start in [String::new(), format!("&resourceVersion={}", revision - 1)] {
            let watch = format!("{}{selector}&watch=true&timeoutSeconds=1{start}", self.collection());
            let events = self.ask("GET", &watch, &Value::Null, 200).await?.text;
            let event: Value = serde_json::from_str(events.lines().next().unwrap_or_default()).unwrap_or_default();
            if event["type"] != "ADDED" || event["object"] != got {
                return Err(format!("watched is {events}"));
            }
        }
        Ok(())
    }

    async fn change(&self, name: &str) -> Result<(), String> {
        let mut object = self.ask("GET", &self.path(name), &Value::Null, 200).await?.value;
        object["metadata"]["labels"]["changed"] = "by-update".into();
        let updated = self.ask("PUT", &self.path(name), &object, 200).await?.value;
        self.is_mine(&updated, "")?;
        let patch = json!({ "metadata": { "labels": { "changed": "by-patch" } } });
        let patched = self.ask("PATCH", &self.path(name), &patch, 200).await?.value;
        self.is_mine(&patched, "")?;
        if updated["metadata"]["labels"]["changed"] != "by-update"
            || patched["metadata"]["labels"]["changed"] != "by-patch"
        {
            return Err(format!("the change did not last: {patched}"));
        }
        self.keeps_draft(name)
    }

    async fn subresources(&self, name: &str) -> Result<(), String> {
        use Subresource as Sub;
        for subresource in self.kind.subresources {
            let path = format!("{}/{}", self.path(name), subresource.as_str());
            match subresource {
                Sub::Status => {
                    let object = self.ask("GET", &path, &Value::Null, 200).await?.value;
                    self.is_mine(&object, "")?;
                    let updated = self.ask("PUT", &path, &object, 200).await?.value;
                    self.is_mine(&updated, "")?;
                    let patch = json!({ "metadata": { "annotations": { "changed": "by-status" } } });
                    self.is_mine(&self.ask("PATCH", &path, &patch, 200).await?.value, "")?;
                    self.keeps_draft(name)?;
                }
                Sub::Scale => {
                    let scale = self.ask("GET", &path, &Value::Null, 200).await?.value;
                    self.ask("PUT", &path, &scale, 200).await?;
                }
                Sub::Approval | Sub::EphemeralContainers | Sub::Resize => {
                    self.is_mine(&self.ask("GET", &path, &Value::Null, 200).await?.value, "")?;
                }
                Sub::Token => {
                    self.ask("POST", &path, &json!({ "spec": {} }), 201).await?;
                }
                // Answered by the namespace loop, the scheduler, a node: each has a test of its own.
                Sub::Finalize
                | Sub::Binding
                | Sub::Eviction
                | Sub::Log
                | Sub::Exec
                | Sub::Attach
                | Sub::PortForward
                | Sub::Proxy => {}
            }
        }
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), String> {
        self.ask("DELETE", &format!("{}?gracePeriodSeconds=0", self.path(name)), &Value::Null, 200).await?;
        let left = ask(self.server, "GET", &self.path(name), &Value::Null).await;
        if left.code == 200 && left.value["metadata"]["deletionTimestamp"].is_null() {
            return Err("a deleted object is still there".into());
        }
        if left.code == 200 && left.value["metadata"]["finalizers"].is_array() {
            let patch = json!({ "metadata": { "finalizers": null } });
            self.ask("PATCH", &self.path(name), &patch, 200).await?;
        }
        Ok(())
    }

    /// Only what the selector matches: the server's own objects stay.
    async fn delete_all(&self, object: &Value) -> Result<(), String> {
        let mut object = object.clone();
        object["metadata"]["labels"]["doomed"] = "true".into();
        self.ask("POST", &self.collection(), &object, 201).await?;
        let doomed = format!("{}?labelSelector=doomed%3Dtrue", self.collection());
        let gone = self.ask("DELETE", &format!("{doomed}&gracePeriodSeconds=0"), &Value::Null, 200).await?.value;
        self.is_mine(&gone, "List")?;
        let list = self.ask("GET", &doomed, &Value::Null, 200).await?.value;
        let left = list["items"].as_array().into_iter().flatten();
        for object in left {
            if object["metadata"]["deletionTimestamp"].is_null() {
                return Err(format!("a deleted object is still there: {object}"));
            }
            let patch = json!({ "metadata": { "finalizers": null } });
            self.ask("PATCH", &self.path(object["metadata"]["name"].as_str().unwrap_or_default()), &patch, 200).await?;
        }
        Ok(())
    }
}

/// Where `answer` does not have what `said` has.
fn lost(path: &str, said: &Value, answer: &Value) -> Option<String> {
    match (said, answer) {
        (Value::Object(said), _) => {
            said.iter().find_map(|(name, value)| lost(&format!("{path}.{name}"), value, &answer[name]))
        }
        (Value::Array(said), Value::Array(answer)) if said.len() == answer.len() => {
            let mut items = said.iter().zip(answer).enumerate();
            items.find_map(|(at, (said, answer))| lost(&format!("{path}[{at}]"), said, answer))
        }
        _ if said == answer => None,
        _ => Some(path.to_owned()),
    }
}
