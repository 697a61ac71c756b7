//! What a node may do, all of it: `system:node:a` plays every verb of every kind against its own objects, those of node `b`,
//! and those of nobody, and what is not refused is a line of `testdata/node_repertoire.txt`. `UPDATE=1` writes it anew.
//!
//! An object `a` belongs to node `a`: it is the Node, on it, named by its Pod, or made for it. Every write is a dry run.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use bytes::Bytes;
use corten_access::Identity;
use corten_api::resources::{LEASES, NODES, POD_CERTIFICATE_REQUESTS, PODS, SERVICE_ACCOUNTS};
use corten_kinds::{KINDS, Kind, Subresource, Verb};
use corten_meta::{Key, Resource};
use corten_routes::{RequestInfo, Route};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

/// The asking node's, another node's, nobody's.
const NAMES: [&str; 3] = ["a", "b", "c"];
const HEAD: &str = "\
# What system:node:a is not refused: of its own objects, of another node's, of nobody's. Whatever is not here is 403.
";

/// One request. Those of the three names that have the same label make a line of the table.
struct Attempt {
    label: String,
    method: &'static str,
    path: String,
    body: Value,
}

impl Attempt {
    fn leads_somewhere(&self) -> bool {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let info = RequestInfo::read(&corten_kinds::Kinds::default(), self.method, path, Some(query))
            .expect("a path that can be read");
        !matches!(info.route, Route::NoSuchPath(_))
    }
}

async fn send(
    server: &Server,
    who: Identity,
    attempt: &Attempt,
    path: &str,
) -> http::Response<corten_cacher::body::Body> {
    let content = if attempt.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if attempt.body.is_null() { String::new() } else { attempt.body.to_string() };
    let request = http::Request::builder().method(attempt.method).uri(path).header("Content-Type", content);
    server.call(who, request.body(Bytes::from(body)).expect("a request")).await
}

async fn by_node(server: &Server, attempt: &Attempt, path: &str) -> http::Response<corten_cacher::body::Body> {
    let node = Identity::new("system:node:a", &["system:nodes", "system:authenticated"]);
    send(server, node, attempt, path).await
}

/// Of what is read all of it: an answer of the same code may hold another's objects.
async fn answer(server: &Server, attempt: &Attempt, path: &str) -> (u16, Bytes) {
    let response = by_node(server, attempt, path).await;
    let code = response.status().as_u16();
    if attempt.method != "GET" {
        return (code, Bytes::new());
    }
    (code, response.into_body().collect().await.expect("a whole body").to_bytes())
}

async fn by_admin(server: &Server, method: &'static str, path: &str, body: Value) -> (u16, Value) {
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let attempt = Attempt { label: String::new(), method, path: path.to_owned(), body };
    let response = send(server, admin, &attempt, path).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// What the three names stand for, in the order in which it can be made.
async fn furnish(server: &Server) {
    let make = async |collection: &str, object: Value| {
        let (code, answer) = by_admin(server, "POST", collection, object).await;
        assert_eq!(code, 201, "{collection}: {answer}");
    };
    let core = |plural: &str| format!("/api/v1/namespaces/default/{plural}");
    make(&core("serviceaccounts"), json!({ "metadata": { "name": "default" } })).await;
    let device = json!([{ "name": "g", "exactly": { "deviceClassName": "g.example.com" } }]);
    for name in NAMES {
        let meta = json!({ "name": name });
        make("/api/v1/nodes", json!({ "metadata": meta })).await;
        for plural in ["serviceaccounts", "secrets", "configmaps"] {
            make(&core(plural), json!({ "metadata": meta })).await;
        }
        let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        make(&core("persistentvolumeclaims"), json!({ "metadata": meta, "spec": claim })).await;
        let claim_ref = json!({ "namespace": "default", "name": name });
        let volume = json!({
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/d" },
            "claimRef": claim_ref,
        });
        make("/api/v1/persistentvolumes", json!({ "metadata": meta, "spec": volume })).await;
        let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
        make(claims, json!({ "metadata": meta, "spec": { "devices": { "requests": device } } })).await;
        let spec = json!({ "attacher": "x.example.com", "nodeName": name, "source": { "persistentVolumeName": name } });
        make("/apis/storage.k8s.io/v1/volumeattachments", json!({ "metadata": meta, "spec": spec })).await;
        let drivers = json!({ "drivers": [{ "name": "x.example.com", "nodeID": name }] });
        make("/apis/storage.k8s.io/v1/csinodes", json!({ "metadata": meta, "spec": drivers })).await;
        let slice = json!({
            "driver": "g.example.com", "nodeName": name, "devices": [{ "name": "g-0" }],
            "pool": { "name": name, "generation": 1, "resourceSliceCount": 1 },
        });
        make("/apis/resource.k8s.io/v1/resourceslices", json!({ "metadata": meta, "spec": slice })).await;
        make(&LEASES.collection_path("kube-node-lease"), json!({ "metadata": meta, "spec": {} })).await;
        make(&core("pods"), pod(name)).await;
        request_certificate(server, name).await;
    }
}

/// A PKCS #10 request for a key that nobody needs.
const STUB: &str = "MIG6MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIufeXJBoqvQDJ03bAyTr5uYEp8EQpyThQ1GibkGg484yYrm+XMC2sh6mRU+s5x/VBb2upN+6aXtl8/wH+yTSyOgADAKBggqhkjOPQQDAgNIADBFAiEAlO8ferbS3fnpJLRIKPHmzjTlBKLA9ejFzittW5t1srkCIDxlwvsuZia4WHZSR+3kIT3SRlwa0REjjvNFKfAoPuPW";

async fn request_certificate(server: &Server, name: &str) {
    let uid = async |resource: &Resource, namespace: &str| {
        by_admin(server, "GET", &resource.path(&Key::new(namespace, name)), Value::Null).await.1["metadata"]["uid"]
            .clone()
    };
    let spec = json!({
        "signerName": "example.com/s",
        "podName": name,
        "podUID": uid(&PODS, "default").await,
        "serviceAccountName": name,
        "serviceAccountUID": uid(&SERVICE_ACCOUNTS, "default").await,
        "nodeName": name,
        "nodeUID": uid(&NODES, "").await,
        "stubPKCS10Request": STUB,
    });
    let collection = POD_CERTIFICATE_REQUESTS.collection_path("default");
    let (code, answer) =
        by_admin(server, "POST", &collection, json!({ "metadata": { "name": name }, "spec": spec })).await;
    assert_eq!(code, 201, "{answer}");
}

/// It names all that can be named. That of nobody is on no node.
fn pod(name: &str) -> Value {
    let mut pod = json!({
        "metadata": { "name": name },
        "spec": {
            "serviceAccountName": name,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "c", "image": "i", "resources": { "claims": [{ "name": "r" }] } }],
            "resourceClaims": [{ "name": "r", "resourceClaimName": name }],
            "volumes": [
                { "name": "s", "secret": { "secretName": name } },
                { "name": "m", "configMap": { "name": name } },
                { "name": "v", "persistentVolumeClaim": { "claimName": name } },
            ],
        },
    });
    if name != "c" {
        pod["spec"]["nodeName"] = json!(name);
    }
    pod
}

/// A static Pod's mirror on the node of this name.
fn mirror(name: &str, uid: &Value) -> Value {
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": true });
    json!({
        "metadata": {
            "name": format!("mirror-{name}"),
            "annotations": { "kubernetes.io/config.mirror": "x" },
            "ownerReferences": [owner],
        },
        "spec": { "nodeName": name, "containers": [{ "name": "c", "image": "i" }] },
    })
}

/// Everything that can be asked of one kind about one name.
struct Repertoire<'a> {
    server: &'a Server,
    kind: &'static Kind,
    name: &'a str,
    attempts: Vec<Attempt>,
}

impl Repertoire<'_> {
    fn namespace(&self) -> &'static str {
        match &self.kind.resource {
            it if *it == LEASES => "kube-node-lease",
            it if it.namespaced => "default",
            _ => "",
        }
    }

    fn object(&self) -> String {
        self.kind.resource.path(&Key::new(self.namespace(), self.name))
    }

    fn add(&mut self, verb: &str, subresource: &str, method: &'static str, path: String, body: Value) {
        let resource = self.kind.resource.qualified();
        let resource = if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
        let is_write = method != "GET";
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = if is_write { format!("{path}{sign}dryRun=All") } else { path };
        self.attempts.push(Attempt { label: format!("{resource:<52} {verb}"), method, path, body });
    }

    fn reads(&mut self) {
        let (object, collection) = (self.object(), self.kind.resource.collection_path(self.namespace()));
        self.add("get", "", "GET", object, Value::Null);
        let of_name = format!("fieldSelector=metadata.name%3D{}", self.name);
        for (verb, watch) in [("list", ""), ("watch", "&watch=true&timeoutSeconds=1")] {
            self.add(&format!("{verb} by name"), "", "GET", format!("{collection}?{of_name}{watch}"), Value::Null);
            self.add(verb, "", "GET", format!("{collection}?limit=1{watch}"), Value::Null);
            if self.kind.resource.namespaced {
                let everywhere = self.kind.resource.collection_path("");
                self.add(&format!("{verb} everywhere"), "", "GET", format!("{everywhere}?limit=1{watch}"), Value::Null);
            }
            if self.kind.selectable_fields.contains("spec.nodeName") {
                let of_node = format!("fieldSelector=spec.nodeName%3D{}", self.name);
                let everywhere = self.kind.resource.collection_path("");
                self.add(&format!("{verb} by node"), "", "GET", format!("{everywhere}?{of_node}{watch}"), Value::Null);
            }
        }
        let base =
            self.kind.resource.collection_path("").rsplit_once('/').map(|it| it.0.to_owned()).unwrap_or_default();
        let legacy = self.object().replacen(&base, &format!("{base}/watch"), 1);
        self.add("watch by its old path", "", "GET", format!("{legacy}?timeoutSeconds=1"), Value::Null);
    }

    async fn writes(&mut self) {
        let (object, collection) = (self.object(), self.kind.resource.collection_path(self.namespace()));
        let (code, stored) = by_admin(self.server, "GET", &object, Value::Null).await;
        let body = if code == 200 { stored } else { json!({ "metadata": { "name": self.name } }) };
        let mut new = body.clone();
        new["metadata"] = json!({ "name": self.name });
        self.add("create", "", "POST", collection.clone(), new);
        if self.kind.resource == PODS {
            let node = by_admin(self.server, "GET", &NODES.path(&Key::cluster(self.name)), Value::Null).await.1;
            let mirror = mirror(self.name, &node["metadata"]["uid"]);
            self.add("create as mirror", "", "POST", collection.clone(), mirror);
        }
        let patch = json!({ "metadata": { "annotations": { "by": "node" } } });
        self.add("update", "", "PUT", object.clone(), body.clone());
        self.add("patch", "", "PATCH", object.clone(), patch.clone());
        self.add("delete", "", "DELETE", object.clone(), Value::Null);
        self.add("deletecollection", "", "DELETE", collection.clone(), Value::Null);
        if self.kind.selectable_fields.contains("spec.nodeName") {
            let of_node = format!("{collection}?fieldSelector=spec.nodeName%3D{}", self.name);
            self.add("deletecollection by node", "", "DELETE", of_node, Value::Null);
        }
        for subresource in self.kind.subresources {
            let name = subresource.as_str();
            let path = format!("{object}/{name}");
            self.add("get", name, "GET", path.clone(), Value::Null);
            self.add("create", name, "POST", path.clone(), self.sent_to(*subresource, &body));
            self.add("update", name, "PUT", path.clone(), body.clone());
            self.add("patch", name, "PATCH", path.clone(), patch.clone());
            self.add("delete", name, "DELETE", path, Value::Null);
        }
    }

    fn sent_to(&self, subresource: Subresource, object: &Value) -> Value {
        let meta = json!({ "name": self.name });
        match subresource {
            Subresource::Eviction => json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta }),
            Subresource::Binding => json!({ "metadata": meta, "target": { "kind": "Node", "name": "a" } }),
            Subresource::Token => {
                let pod = self.server.caches().get(&PODS).and_then(|it| it.get("default", self.name));
                let uid = pod.map(|it| it.uid().to_owned()).unwrap_or_default();
                let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": uid });
                json!({ "spec": { "boundObjectRef": bound } })
            }
            _ => object.clone(),
        }
    }
}

async fn attempts<'a>(server: &'a Server, kind: &'static Kind, name: &'a str) -> Vec<Attempt> {
    let mut of = Repertoire { server, kind, name, attempts: Vec::new() };
    of.reads();
    of.writes().await;
    // What a kind does not know is 405 for whoever gets as far, and a path that it has not is 404 for all: no right.
    let knows = |it: &Attempt| !it.label.ends_with("collection") || kind.allows(Verb::DeleteCollection);
    of.attempts.retain(|it| knows(it) && it.leads_somewhere());
    of.attempts
}

/// One row for each resource of the table, whatever the number of its versions.
fn kinds() -> impl Iterator<Item = &'static Kind> {
    let mut seen = BTreeSet::new();
    KINDS.iter().filter(move |it| seen.insert(it.resource.qualified()))
}

#[tokio::test(start_paused = true)]
async fn a_node_may_do_what_the_table_says() {
    let server = server::started().await;
    furnish(&server).await;
    let mut table = HEAD.to_owned();
    for kind in kinds() {
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for name in NAMES {
            for attempt in attempts(&server, kind, name).await {
                let code = by_node(&server, &attempt, &attempt.path).await.status().as_u16();
                let cell = if matches!(code, 403 | 405) { "-" } else { "yes" };
                match lines.iter_mut().find(|it| it.0 == attempt.label) {
                    Some(line) => line.1.push(cell),
                    None => lines.push((attempt.label, vec![cell])),
                }
            }
        }
        for (label, cells) in lines.iter().filter(|it| it.1.contains(&"yes")) {
            let cells: String = cells.iter().map(|it| format!("  {it:<3}")).collect();
            writeln!(table, "{label:<76}{}", cells.trim_end()).expect("writing to memory does not fail");
        }
    }
    server.stop().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/node_repertoire.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &table).expect("the table can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differs = |one: &str, other: &str| {
        one.lines().filter(|it| !other.contains(it)).fold(String::new(), |all, it| all + it + "\n")
    };
    assert!(table == expected, "new:\n{}gone:\n{}", differs(&table, &expected), differs(&expected, &table));
}

/// The first letter of every name, percent-encoded.
fn encoded(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let segments = path.split('/').skip(1).enumerate().map(|(at, it)| match it.as_bytes().first() {
        // `api` and `apis` say which way to go on: they are what they are.
        Some(first) if at > 0 => format!("/%{first:02X}{}", &it[1..]),
        _ => format!("/{it}"),
    });
    format!("{}?{query}", segments.collect::<String>())
}

#[tokio::test(start_paused = true)]
async fn another_spelling_opens_nothing() {
    assert_eq!(encoded("/api/v1/pods/a?x=1"), "/api/%761/%70ods/%61?x=1");
    let server = server::started().await;
    furnish(&server).await;
    let mut differing = String::new();
    for kind in kinds() {
        for name in NAMES {
            for attempt in attempts(&server, kind, name).await {
                let spelled = encoded(&attempt.path);
                let (plain, other) =
                    (answer(&server, &attempt, &attempt.path).await, answer(&server, &attempt, &spelled).await);
                if plain != other {
                    writeln!(differing, "{spelled}\n  {plain:?}\n  {other:?}").expect("memory is there");
                }
            }
        }
    }
    server.stop().await;
    assert!(differing.is_empty(), "\n{differing}");
}
