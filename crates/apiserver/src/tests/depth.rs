//! No way leads an object beyond the depth and the size that everybody can read; and one that an earlier release has let through can still
//! be read, watched, replaced and deleted.
//!
//! All of it on a thread with a small stack: what recurses without a bound ends the process.

mod definitions;

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use bytes::Bytes;
use corten_access::Identity;
use corten_meta::depth::{DEPTH_MAX, EXCEEDED, LEVELS_MAX, fits, of_text};
use corten_store::{Operation, Store, Txn, backend::memory::Memory};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

/// A quarter of what the program's threads have, though an unoptimized build has frames many times larger.
const STACK_BYTES: usize = 2 << 20;
/// YAML takes more for each level.
const YAML_STACK_BYTES: usize = 8 << 20;
const AROUND_THE_BOUND: RangeInclusive<usize> = LEVELS_MAX - 3..=LEVELS_MAX + 2;
/// As deep as objects of earlier releases may be.
const DEEPEST: usize = 65_536;
const DEEP: [usize; 2] = [DEPTH_MAX, DEEPEST];

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const YAML: &str = "application/yaml";

fn on_a_small_stack(bytes: usize, test: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(test);
    });
    thread.expect("a thread starts").join().expect("the test holds");
}

/// A kind with a place whose content users shape as they like.
#[derive(Clone, Copy)]
struct UserShapedField {
    collection: &'static str,
    api_version: &'static str,
    kind: &'static str,
    name: &'static str,
    /// Where in the store its objects stand.
    prefix: &'static str,
    pointer: &'static str,
    object: fn(Value) -> Value,
    /// One more level around a value.
    open: &'static str,
    close: &'static str,
    innermost: &'static str,
    /// As deep as such objects are tried.
    deepest: usize,
}

const PLACES: [UserShapedField; 3] = [
    UserShapedField {
        collection: "/apis/resource.k8s.io/v1/deviceclasses",
        api_version: "resource.k8s.io/v1",
        kind: "DeviceClass",
        name: "a",
        prefix: "/registry/deviceclasses/",
        pointer: "/spec/config/0/opaque/parameters",
        object: |it| json!({ "spec": { "config": [{ "opaque": { "driver": "a.example.com", "parameters": it } }] } }),
        open: r#"{"a":"#,
        close: "}",
        innermost: r#"{"a":1}"#,
        deepest: DEEPEST,
    },
    UserShapedField {
        collection: DEFINITIONS,
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        name: "widgets.example.com",
        prefix: "/registry/apiextensions.k8s.io/customresourcedefinitions/",
        pointer: "/spec/versions/0/schema/openAPIV3Schema/not",
        object: |it| definition(&json!({ "type": "object", "not": it })),
        open: r#"{"not":"#,
        close: "}",
        innermost: r#"{"pattern":"x"}"#,
        deepest: DEEPEST,
    },
    // What objects are checked, pruned and defaulted by.
    UserShapedField {
        collection: DEFINITIONS,
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        name: "widgets.example.com",
        prefix: "/registry/apiextensions.k8s.io/customresourcedefinitions/",
        pointer: "/spec/versions/0/schema/openAPIV3Schema/properties/deep",
        object: |it| definition(&json!({ "type": "object", "properties": { "deep": it } })),
        open: r#"{"type":"array","items":"#,
        close: "}",
        innermost: r#"{"type":"string"}"#,
        deepest: 300,
    },
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(schema: &Value) -> Value {
    json!({ "spec": {
        "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] } })
}

impl UserShapedField {
    fn deep(&self) -> [usize; 2] {
        [DEPTH_MAX, self.deepest]
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// How many lists and maps the place lies in.
    fn around(&self) -> usize {
        self.pointer.split('/').count() - 1
    }

    /// Content that makes an object of so many levels.
    fn content(&self, levels: usize) -> String {
        let n = levels - self.around() - of_text(self.innermost.as_bytes());
        format!("{}{}{}", self.open.repeat(n), self.innermost, self.close.repeat(n))
    }

    fn with(&self, content: &str) -> String {
        const MARK: &str = "CONTENT";
        let mut object = (self.object)(MARK.into());
        object["kind"] = self.kind.into();
        object["apiVersion"] = self.api_version.into();
        object["metadata"] = json!({ "name": self.name });
        object.to_string().replace(&format!("{MARK:?}"), content)
    }

    /// The object, but for what a merge patch leaves out.
    fn of(&self, levels: usize) -> String {
        self.with(&self.content(levels))
    }
}

struct Answer {
    code: u16,
    text: String,
}

impl Answer {
    fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {:.300}", self.text))
    }
}

async fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = http::Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
    let response = server.call(who, request.body(body.into()).expect("a request")).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    Answer { code, text: String::from_utf8_lossy(&bytes).into_owned() }
}

/// Waits until the object is gone: a definition goes when its objects have.
async fn goes(server: &Server, place: &UserShapedField) {
    let caches = server.caches();
    let is_gone =
        || caches.iter().find(|it| it.prefix() == place.prefix).filter(|it| it.snapshot().is_empty()).map(drop);
    caches.until(is_gone).await;
    assert_eq!(send(server, "GET", &place.path(), JSON, "").await.code, 404);
}

async fn send(server: &Server, method: &str, path: &str, media_type: &str, body: impl Into<Bytes>) -> Answer {
    ask(server, method, path, &[("content-type", media_type)], body).await
}

/// A PUT of an object as it was read: some kinds are replaced only by who says what stands there.
async fn replace(server: &Server, path: &str, object: &str) -> Answer {
    const FIELD: &str = r#""resourceVersion":""#;
    let there = send(server, "GET", path, JSON, "").await.text;
    let revision = there.split_once(FIELD).and_then(|it| it.1.split('"').next()).unwrap_or_default();
    let head = format!(r#""metadata":{{{FIELD}{revision}","#);
    send(server, "PUT", path, JSON, object.replacen(r#""metadata":{"#, &head, 1)).await
}

/// What came of a write that would make an object of so many levels with a body of so many.
fn is_bounded(answer: &Answer, way: &str, object_levels: usize, body_levels: usize) {
    let is_within = object_levels.max(body_levels) < DEPTH_MAX;
    let what = format!("{way}, {object_levels} levels: {} {:.300}", answer.code, answer.text);
    assert_eq!(answer.code < 300, is_within, "{what}");
    if is_within {
        assert!(fits(&answer.value(), LEVELS_MAX), "{what}");
    } else {
        let status = answer.value();
        assert!(status["kind"] == "Status" && matches!(answer.code, 400 | 422), "{what}");
        let said = format!("{} {}", status["message"], status["details"]["causes"]);
        assert!(said.contains(EXCEEDED) || said.contains("Depth"), "{what}");
    }
}

#[test]
fn no_write_goes_beyond_the_bound() {
    on_a_small_stack(STACK_BYTES, async {
        let server = server::started().await;
        for place in PLACES {
            for levels in AROUND_THE_BOUND {
                for dry_run in ["dryRun=All&fieldManager=me", "fieldManager=me"] {
                    writes(&server, &place, levels, dry_run).await;
                }
            }
        }
        server.stop().await;
    });
}

async fn writes(server: &Server, place: &UserShapedField, levels: usize, query: &str) {
    let (path, object) = (format!("{}?{query}", place.path()), place.of(levels));
    let created = send(server, "POST", &format!("{}?{query}", place.collection), JSON, object.clone()).await;
    is_bounded(&created, "create", levels, levels);
    send(server, "POST", place.collection, JSON, place.with(place.innermost)).await;
    is_bounded(&replace(server, &path, &object).await, "update", levels, levels);
    is_bounded(&send(server, "PATCH", &path, MERGE_PATCH, object.clone()).await, "merge", levels, levels);
    is_bounded(&send(server, "PATCH", &path, STRATEGIC_PATCH, object.clone()).await, "strategic", levels, levels);
    let applied = send(server, "PATCH", &format!("{path}&force=true"), APPLY, object.clone()).await;
    is_bounded(&applied, "apply", levels, levels);
    let content = place.content(levels);
    for op in ["add", "replace"] {
        let patch = format!(r#"[{{"op":{op:?},"path":{:?},"value":{content}}}]"#, place.pointer);
        is_bounded(
            &send(server, "PATCH", &path, JSON_PATCH, patch.clone()).await,
            op,
            levels,
            of_text(patch.as_bytes()),
        );
    }
    let (at, plain) = (place.pointer, place.innermost);
    for op in ["copy", "move"] {
        // Two levels further down than where it was; and what is valid in the end.
        let near = place.content(levels - 3);
        let patch = format!(
            r#"[{{"op":"add","path":"{at}","value":{{"b":{{"c":{{}}}},"d":{near}}}}},
                {{"op":{op:?},"from":"{at}/d","path":"{at}/b/c/e"}},{{"op":"replace","path":"{at}","value":{plain}}}]"#
        );
        is_bounded(
            &send(server, "PATCH", &path, JSON_PATCH, patch.clone()).await,
            op,
            levels,
            of_text(patch.as_bytes()),
        );
    }
    everybody_reads(server, place).await;
    assert_eq!(send(server, "DELETE", &place.path(), JSON, "").await.code, 200);
    goes(server, place).await;
}

/// What is stored is read in every form, and whole.
async fn everybody_reads(server: &Server, place: &UserShapedField) {
    for path in [place.path(), place.collection.to_owned()] {
        for accept in [
            JSON,
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        ] {
            let answer = ask(server, "GET", &path, &[("accept", accept)], "").await;
            assert_eq!(answer.code, 200, "{accept} {path}: {:.300}", answer.text);
            assert!(of_text(answer.text.as_bytes()) <= LEVELS_MAX + 4, "{accept} {path}");
        }
    }
}

/// Each copy would double the depth: all of them would make more than 65,536 levels.
#[test]
fn a_patch_that_copies_a_value_into_itself_is_refused() {
    on_a_small_stack(STACK_BYTES, async {
        let server = server::started().await;
        for (collection, object, top, step) in [
            ("/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#, "/data", "/a"),
            ("/apis/resource.k8s.io/v1/deviceclasses", &*PLACES[0].with(r#"{"a":{}}"#), PLACES[0].pointer, "/a"),
        ] {
            assert_eq!(send(&server, "POST", collection, JSON, object.to_owned()).await.code, 201);
            let copies = (0..17)
                .map(|at| json!({ "op": "copy", "from": top, "path": format!("{top}{step}{}", step.repeat(1 << at)) }));
            let mut copies: Vec<Value> = copies.collect();
            copies.insert(0, json!({ "op": "add", "path": format!("{top}{step}"), "value": {} }));
            let bomb = Value::Array(copies).to_string();
            for dry_run in ["?dryRun=All", ""] {
                let path = format!("{collection}/a{dry_run}");
                let refused = send(&server, "PATCH", &path, JSON_PATCH, bomb.clone()).await;
                assert!(
                    refused.code == 422 && refused.text.contains(EXCEEDED),
                    "{} {:.300}",
                    refused.code,
                    refused.text
                );
            }
            assert_eq!(send(&server, "GET", &format!("{collection}/a"), JSON, "").await.code, 200);
        }
        server.stop().await;
    });
}

#[test]
fn yaml_is_bounded_as_json_is() {
    on_a_small_stack(YAML_STACK_BYTES, async {
        let server = server::started().await;
        let place = PLACES[0];
        let query = "dryRun=All&fieldManager=me";
        for levels in AROUND_THE_BOUND {
            // JSON is YAML, too, but for what stands before it.
            let object = format!("---\n{}", place.of(levels));
            let created = send(&server, "POST", &format!("{}?{query}", place.collection), YAML, object.clone()).await;
            is_bounded(&created, "create", levels, levels);
            let applied = send(&server, "PATCH", &format!("{}?{query}", place.path()), APPLY, object).await;
            is_bounded(&applied, "apply", levels, levels);
            // What an alias stands for counts where it stands, and so does what its own aliases stand for.
            let n = levels - place.around() - 1;
            let (a, b) = (n / 3, n / 3);
            let c = n - a - b;
            let lists = |n: usize, inner: &str| format!("{}{inner}{}", "[".repeat(n), "]".repeat(n));
            let content = format!("{{a: &a {}, b: &b {}, c: {}}}", lists(a, "1"), lists(b, "*a"), lists(c, "*b"));
            let aliases =
                send(&server, "POST", &format!("{}?{query}", place.collection), YAML, place.with(&content)).await;
            is_bounded(&aliases, "aliases", levels, levels);
        }
        assert_eq!(send(&server, "POST", place.collection, JSON, place.of(LEVELS_MAX)).await.code, 201);
        for path in [place.path(), place.collection.to_owned()] {
            let answer = ask(&server, "GET", &path, &[("accept", YAML)], "").await;
            assert!(answer.code == 200 && answer.text.contains("parameters:"), "{} {:.300}", answer.code, answer.text);
        }
        server.stop().await;
    });
}

/// The first version of a HorizontalPodAutoscaler keeps in annotations, as text, what the stored one has as fields.
#[test]
fn what_becomes_a_field_out_of_a_text_is_bounded_too() {
    const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    on_a_small_stack(STACK_BYTES, async {
        let server = server::started().await;
        for levels in AROUND_THE_BOUND {
            let note = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            let scaler = json!({
                "metadata": { "name": "a", "annotations": { "autoscaling.alpha.kubernetes.io/metrics": note } },
                "spec": { "maxReplicas": 3, "scaleTargetRef": { "kind": "Deployment", "name": "a", "apiVersion": "apps/v1" } },
            });
            let created = send(&server, "POST", V1, JSON, scaler.to_string()).await;
            assert!(created.code < 500, "{levels} levels: {:.300}", created.text);
            for collection in [V1, V2] {
                let listed = send(&server, "GET", collection, JSON, "").await;
                assert!(listed.code == 200 && of_text(listed.text.as_bytes()) <= LEVELS_MAX + 2, "{levels} levels");
            }
            send(&server, "DELETE", &format!("{V2}/a"), JSON, "").await;
        }
        server.stop().await;
    });
}

/// A server over a store in which an object stands that no write would let through today.
async fn over(key: &str, value: String) -> Server {
    let store = Memory::new();
    let put = Operation::Put { key: key.to_owned().into(), value: value.into() };
    store.commit(Txn { compares: Vec::new(), operations: vec![put] }).await.expect("it is stored");
    Server::start(server::over(Arc::new(store))).await.expect("a server starts over anything")
}

/// As an earlier release wrote it: with the head that every object begins with, or, from a backup, without.
fn stored(place: &UserShapedField, content: &str, metadata: &str, has_head: bool) -> String {
    let text = place.with(content);
    let object: BTreeMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(&text).expect("an object");
    let metadata = format!(r#"{{{metadata}"name":{:?},"uid":"u"}}"#, place.name);
    let kind = format!(r#""kind":{:?},"apiVersion":{:?}"#, place.kind, place.api_version);
    let spec = object["spec"].get();
    if has_head {
        format!(r#"{{{kind},"metadata":{metadata},"spec":{spec}}}"#)
    } else {
        format!(r#"{{"spec":{spec},"metadata":{metadata},{kind}}}"#)
    }
}

#[test]
fn what_was_stored_too_deep_is_read_and_watched_and_deleted() {
    on_a_small_stack(STACK_BYTES, async {
        for place in PLACES {
            for (levels, has_head) in place.deep().into_iter().flat_map(|it| [(it, true), (it, false)]) {
                let value = stored(&place, &place.content(levels), "", has_head);
                let server = over(&format!("{}{}", place.prefix, place.name), value).await;
                reads_it_whole(&server, &place, levels).await;
                refuses_to_change_a_part(&server, &place).await;
                assert_eq!(send(&server, "DELETE", &place.path(), JSON, "").await.code, 200);
                goes(&server, &place).await;
                server.stop().await;
            }
        }
    });
}

async fn reads_it_whole(server: &Server, place: &UserShapedField, levels: usize) {
    let (path, collection) = (place.path(), place.collection);
    for (path, around) in [(path.clone(), 0), (format!("{path}?pretty=true"), 0), (collection.to_owned(), 2)] {
        let got = ask(server, "GET", &path, &[("accept", JSON)], "").await;
        assert_eq!((got.code, of_text(got.text.as_bytes())), (200, levels + around), "{path}");
    }
    for form in ["Table", "PartialObjectMetadata", "PartialObjectMetadataList"] {
        let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io,application/json");
        for path in [path.clone(), collection.to_owned(), format!("{collection}?includeObject=Object")] {
            assert_eq!(ask(server, "GET", &path, &[("accept", &accept)], "").await.code, 200, "{form} {path}");
        }
        let watch = format!("{collection}?watch=true&timeoutSeconds=1");
        assert!(ask(server, "GET", &watch, &[("accept", &accept)], "").await.text.contains(place.name), "{form}");
    }
    for start in ["", "&resourceVersion=1"] {
        let watch = format!("{collection}?watch=true&timeoutSeconds=1{start}");
        let watched = ask(server, "GET", &watch, &[], "").await;
        let events: Vec<&str> = watched.text.lines().filter(|it| it.contains(place.kind)).collect();
        assert!(events.iter().all(|it| of_text(it.as_bytes()) == levels + 1), "{start}");
    }
    for path in [&*path, collection] {
        let written = ask(server, "GET", path, &[("accept", YAML)], "").await;
        // There is room for what the server puts around an object.
        let is_within = levels <= DEPTH_MAX;
        assert_eq!(written.code, if is_within { 200 } else { 406 }, "{path}: {:.300}", written.text);
    }
}

async fn refuses_to_change_a_part(server: &Server, place: &UserShapedField) {
    let path = place.path();
    let labels = json!({ "metadata": { "labels": { "a": "b" } } }).to_string();
    let operations = r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#;
    for dry_run in ["?dryRun=All", ""] {
        for (media_type, patch) in [(MERGE_PATCH, &*labels), (STRATEGIC_PATCH, &labels), (JSON_PATCH, operations)] {
            let refused = send(server, "PATCH", &format!("{path}{dry_run}"), media_type, patch.to_owned()).await;
            assert_eq!(refused.code, 422, "{media_type}: {:.300}", refused.text);
            assert!(refused.text.contains("it can be replaced or deleted"), "{:.300}", refused.text);
        }
    }
    let flat = place.with(place.innermost);
    let applied = send(server, "PATCH", &format!("{path}?fieldManager=me&force=true"), APPLY, flat).await;
    assert_eq!(applied.code, 422, "{:.300}", applied.text);
    let dry = send(server, "DELETE", &path, JSON, r#"{"dryRun":["All"]}"#).await;
    assert_eq!(dry.code, 200, "{:.300}", dry.text);
}

#[test]
fn what_was_stored_too_deep_can_be_replaced() {
    on_a_small_stack(STACK_BYTES, async {
        for place in PLACES {
            for levels in place.deep() {
                let key = format!("{}{}", place.prefix, place.name);
                let server = over(&key, stored(&place, &place.content(levels), "", true)).await;
                let flat = place.with(place.innermost);
                let replaced = replace(&server, &place.path(), &flat).await;
                assert_eq!(replaced.code, 200, "{:.300}", replaced.text);
                let got = send(&server, "GET", &place.path(), JSON, "").await.value();
                assert_eq!(got.pointer(place.pointer).map(Value::to_string).as_deref(), Some(place.innermost));
                let labels = r#"{"metadata":{"labels":{"a":"b"}}}"#;
                assert_eq!(send(&server, "PATCH", &place.path(), MERGE_PATCH, labels).await.code, 200);
                server.stop().await;
            }
        }
    });
}

/// Whoever deletes it gets it marked, and whoever it waits for can let it go.
#[test]
fn what_was_stored_too_deep_is_deleted_with_its_finalizers_and_in_crowds() {
    on_a_small_stack(STACK_BYTES, async {
        for place in PLACES {
            for levels in place.deep() {
                let key = format!("{}{}", place.prefix, place.name);
                let value = stored(&place, &place.content(levels), r#""finalizers":["example.com/a"],"#, true);
                let server = over(&key, value).await;
                assert_eq!(send(&server, "DELETE", &place.path(), JSON, "").await.code, 200);
                let marked = send(&server, "GET", &place.path(), JSON, "").await.value();
                assert!(marked["metadata"]["deletionTimestamp"].is_string() && fits(&marked, LEVELS_MAX));
                let freed = r#"{"metadata":{"finalizers":null}}"#;
                assert_eq!(send(&server, "PATCH", &place.path(), MERGE_PATCH, freed).await.code, 200);
                goes(&server, &place).await;
                server.stop().await;

                let server = over(&key, stored(&place, &place.content(levels), "", true)).await;
                assert_eq!(send(&server, "DELETE", place.collection, JSON, "").await.code, 200);
                goes(&server, &place).await;
                server.stop().await;
            }
        }
    });
}

/// Nobody loses anything by owners that are too deep: they are nobody's from the next write on.
#[test]
fn owners_that_were_stored_too_deep_are_forgotten_by_the_next_write() {
    on_a_small_stack(STACK_BYTES, async {
        let place = PLACES[0];
        for levels in DEEP.into_iter().chain([LEVELS_MAX - 5]) {
            let fields = format!("{}{{}}{}", r#"{"f:a":"#.repeat(levels), "}".repeat(levels));
            let owners = format!(
                r#""managedFields":[{{"manager":"m","operation":"Update","apiVersion":"resource.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}],"#
            );
            let key = format!("{}{}", place.prefix, place.name);
            for has_head in [true, false] {
                let server = over(&key, stored(&place, r#"{"a":1}"#, &owners, has_head)).await;
                for form in ["Table", "PartialObjectMetadata"] {
                    let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io");
                    assert_eq!(ask(&server, "GET", &place.path(), &[("accept", &accept)], "").await.code, 200);
                }
                let labels = r#"{"metadata":{"labels":{"a":"b"}}}"#;
                let patched = send(&server, "PATCH", &place.path(), MERGE_PATCH, labels).await;
                assert_eq!(patched.code, 200, "{:.300}", patched.text);
                assert!(of_text(patched.text.as_bytes()) < DEPTH_MAX);
                assert_eq!(patched.text.contains(r#""manager":"m""#), levels < DEPTH_MAX);
                assert_eq!(send(&server, "DELETE", &place.path(), JSON, "").await.code, 200);
                server.stop().await;
            }
        }
    });
}

/// Many small patches make no large object; one that is large already can shrink, and go.
#[test]
fn no_object_grows_beyond_what_a_body_may_hold() {
    const MIB: usize = 1 << 20;
    let with_condition = |name: &str, bytes: usize| {
        let message = "x".repeat(bytes);
        format!(r#"{{"status":{{"conditions":[{{"type":{name:?},"status":"True","message":"{message}"}}]}}}}"#)
    };
    on_a_small_stack(STACK_BYTES, async move {
        let collection = "/apis/apps/v1/namespaces/default/replicasets";
        let status = format!("{collection}/a/status");
        let template = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}"#;
        let spec = format!(r#"{{"replicas":0,"selector":{{"matchLabels":{{"a":"b"}}}},"template":{template}}}"#);
        let server = server::started().await;
        let object = format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#);
        assert_eq!(send(&server, "POST", collection, JSON, object).await.code, 201);
        let first = send(&server, "PATCH", &status, STRATEGIC_PATCH, with_condition("A", 2 * MIB)).await;
        assert_eq!(first.code, 200, "{:.300}", first.text);
        for query in ["?dryRun=All", ""] {
            let grown =
                send(&server, "PATCH", &format!("{status}{query}"), STRATEGIC_PATCH, with_condition("B", 2 * MIB))
                    .await;
            assert_eq!((grown.code, &grown.value()["reason"]), (413, &json!("RequestEntityTooLarge")));
        }
        server.stop().await;

        let condition = with_condition("A", 4 * MIB);
        let value = format!(
            r#"{{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{{"name":"a","namespace":"default","uid":"u","finalizers":["example.com/a","example.com/b"]}},"spec":{spec},{}"#,
            &condition[1..]
        );
        let server = over("/registry/replicasets/default/a", value).await;
        let one = format!("{collection}/a");
        let grown = send(&server, "PATCH", &one, MERGE_PATCH, r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
        assert_eq!(grown.code, 413, "{:.300}", grown.text);
        assert_eq!(send(&server, "DELETE", &one, JSON, "").await.code, 200);
        let marked = send(&server, "GET", &one, JSON, "").await.value();
        assert!(marked["metadata"]["deletionTimestamp"].is_string());
        for left in [r#"["example.com/b"]"#, "null"] {
            let freed = format!(r#"{{"metadata":{{"finalizers":{left}}}}}"#);
            let freed = send(&server, "PATCH", &one, MERGE_PATCH, freed).await;
            assert_eq!(freed.code, 200, "{:.300}", freed.text);
        }
        assert_eq!(send(&server, "GET", &one, JSON, "").await.code, 404);
        server.stop().await;
    });
}
