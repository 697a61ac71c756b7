//! Objects in memory, and the log of what became of them.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Code, reason and message of a Status.
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str, pub(super) String);

#[derive(Default)]
pub(super) struct Storage {
    held: Mutex<Contents>,
    changed: Notify,
}

#[derive(Default)]
struct Contents {
    revision: u64,
    /// By namespace and name.
    objects: BTreeMap<(String, String), Value>,
    /// Each change by its revision, with the namespace.
    log: BTreeMap<u64, (String, Value)>,
}

impl Contents {
    fn log(&mut self, kind: &str, namespace: &str, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.log.insert(self.revision, (namespace.to_owned(), json!({ "type": kind, "object": object })));
        object
    }
}

impl Storage {
    pub(super) fn list(&self, namespace: &str) -> Value {
        let held = self.held.lock();
        let within = |key: &(String, String)| namespace.is_empty() || key.0 == namespace;
        let items: Vec<&Value> = held.objects.iter().filter(|it| within(it.0)).map(|it| it.1).collect();
        json!({ "kind": "FlunderList", "apiVersion": "wardle.example.com/v1",
                "metadata": { "resourceVersion": held.revision.to_string() }, "items": items })
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Result<Value, Refusal> {
        let key = (namespace.to_owned(), name.to_owned());
        self.held.lock().objects.get(&key).cloned().ok_or_else(|| missing(name))
    }

    pub(super) fn create(&self, namespace: &str, mut object: Value) -> Result<Value, Refusal> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(Refusal(422, "Invalid", "metadata.name: Required value".into()));
        }
        let mut held = self.held.lock();
        let key = (namespace.to_owned(), name.clone());
        if held.objects.contains_key(&key) {
            let message = format!("flunders.wardle.example.com {name:?} already exists");
            return Err(Refusal(409, "AlreadyExists", message));
        }
        object["kind"] = json!("Flunder");
        object["apiVersion"] = json!("wardle.example.com/v1");
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{:012x}", held.revision + 1));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        let object = held.log("ADDED", namespace, object);
        held.objects.insert(key, object.clone());
        self.changed.notify_waiters();
        Ok(object)
    }

    pub(super) fn update(&self, namespace: &str, name: &str, mut object: Value) -> Result<Value, Refusal> {
        let mut held = self.held.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let before = held.objects.get(&key).ok_or_else(|| missing(name))?;
        for field in ["uid", "creationTimestamp", "namespace", "name"] {
            object["metadata"][field] = before["metadata"][field].clone();
        }
        let object = held.log("MODIFIED", namespace, object);
        held.objects.insert(key, object.clone());
        self.changed.notify_waiters();
        Ok(object)
    }

    pub(super) fn delete(&self, namespace: &str, name: &str) -> Result<Value, Refusal> {
        let mut held = self.held.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let object = held.objects.remove(&key).ok_or_else(|| missing(name))?;
        held.log("DELETED", namespace, object);
        self.changed.notify_waiters();
        Ok(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
    }

    /// The first change of a namespace's objects after a revision, when it is there.
    pub(super) async fn next(&self, namespace: &str, after: u64) -> (u64, Value) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let within = |it: &&(u64, (String, Value))| namespace.is_empty() || it.1.0 == namespace;
            let log: Vec<_> = self.held.lock().log.range(after + 1..).map(|it| (*it.0, it.1.clone())).collect();
            if let Some((revision, (_, event))) = log.iter().find(within) {
                return (*revision, event.clone());
            }
            changed.await;
        }
    }
}

fn missing(name: &str) -> Refusal {
    Refusal(404, "NotFound", format!("flunders.wardle.example.com {name:?} not found"))
}
