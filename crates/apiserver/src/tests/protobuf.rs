//! Answers as Kubernetes's protobuf: what is put together from kept pieces is, byte for byte, the JSON of the same answer
//! written as a whole. That these bytes are those of Kubernetes, golden objects show in `corten_schema`.

use std::time::Duration;

use bytes::Bytes;
use corten_access::Identity;
use corten_schema::proto;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PATIENCE: Duration = Duration::from_secs(30);

struct Answer {
    code: u16,
    media_type: String,
    bytes: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }
}

async fn ask(server: &Server, method: &str, path: &str, accept: &str, body: &Value) -> Answer {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("Accept", accept).header("Content-Type", content);
    let response = server.call(who, request.body(Bytes::from(body)).expect("a request")).await;
    let media_type = response.headers().get("Content-Type").map_or("", |it| it.to_str().expect("text")).to_owned();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    Answer { code, media_type, bytes }
}

async fn get(server: &Server, path: &str, accept: &str) -> Answer {
    ask(server, "GET", path, accept, &Value::Null).await
}

/// Says the path the same as protobuf as it does as JSON? Three times, since answers are kept from the second on.
pub(super) async fn same(server: &Server, path: &str) -> Result<(), String> {
    for form in ["", if path.contains("limit=") { METADATA_LIST } else { METADATA }] {
        let json = get(server, path, &format!("application/json{form}")).await;
        let expected = proto::whole(&json.json());
        for _ in 0..3 {
            let got = get(server, path, &format!("{PROTOBUF}{form}")).await;
            match &expected {
                Some(expected) if got.code == json.code && got.media_type == PROTOBUF && got.bytes == *expected => {}
                Some(_) => {
                    let read = proto::decode(&got.bytes);
                    return Err(format!("{path} {form}: {} {} {read:?}", got.code, got.media_type));
                }
                None if got.code == 406 => {}
                None => return Err(format!("{path} {form}: {}, and protobuf has no such type", got.code)),
            }
        }
    }
    Ok(())
}

/// As protobuf tells it, which has no word for what is empty.
fn without_zeros(value: Value) -> Value {
    let is_told = |it: &Value| *it != json!("") && *it != json!([]);
    match value {
        Value::Array(items) => items.into_iter().map(without_zeros).collect(),
        Value::Object(fields) => {
            fields.into_iter().filter(|it| is_told(&it.1)).map(|(name, it)| (name, without_zeros(it))).collect()
        }
        other => other,
    }
}

/// Groups, what is served of each, and all of it at once are to be had as protobuf.
#[tokio::test(start_paused = true)]
async fn what_is_served_is_told_as_protobuf() {
    let server = server::started().await;
    for path in ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"] {
        let json = get(&server, path, "application/json").await.json();
        let expected = proto::whole(&json).expect("protobuf has it");
        let got = get(&server, path, PROTOBUF).await;
        assert_eq!((got.code, &*got.media_type, &got.bytes[..]), (200, PROTOBUF, &expected[..]), "{path}");
        let read = proto::decode(&got.bytes).expect("it is protobuf");
        assert_eq!((&read["kind"], &read["apiVersion"]), (&json["kind"], &json!("v1")), "{path}");
        for list in ["versions", "groups", "resources"] {
            let n = |it: &Value| it[list].as_array().map(Vec::len);
            assert_eq!(n(&read), n(&json), "{path} {list}");
        }
    }
    let read = proto::decode(&get(&server, "/api/v1", PROTOBUF).await.bytes).expect("it is protobuf");
    let pods = read["resources"].as_array().into_iter().flatten().find(|it| it["name"] == "pods").expect("pods");
    assert_eq!((&pods["shortNames"], &pods["namespaced"]), (&json!(["po"]), &json!(true)));
    assert!(pods["verbs"].as_array().is_some_and(|it| it.iter().any(|verb| verb == "watch")), "{pods}");
    let aggregated = ";as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2";
    for path in ["/api", "/apis"] {
        let json = get(&server, path, &format!("application/json{aggregated}")).await.json();
        // As client-go's, which sorts by media type: parameters in another order, and what else it could read.
        let accept = format!("{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json");
        let got = get(&server, path, &accept).await;
        let media_type = format!("{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
        assert_eq!((got.code, got.media_type), (200, media_type), "{path}");
        assert_eq!(proto::decode(&got.bytes).expect("it is protobuf"), without_zeros(json), "{path}");
    }
    let both = format!("application/json{aggregated},{PROTOBUF}");
    assert_eq!(get(&server, "/apis", &both).await.json()["kind"], "APIGroupDiscoveryList");
}

/// Whoever asks for protobuf is refused in protobuf, also before it is known what there is.
#[tokio::test(start_paused = true)]
async fn refusals_are_written_as_protobuf() {
    let server = server::started().await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let other = "/apis/apps/v1/namespaces/default/nothings";
    let refused = async |authorization: &str, path: &str, accept: &str| {
        let request = http::Request::get(path).header("Accept", accept).header("Authorization", authorization);
        let who = if authorization.is_empty() { Some(Identity::new("jane", &["system:authenticated"])) } else { None };
        let request = request.body(corten_cacher::body::whole("")).expect("a request");
        let response = server.answer(request, None, who).await;
        let code = response.status().as_u16();
        let media_type = response.headers().get("Content-Type").map_or("", |it| it.to_str().expect("text")).to_owned();
        let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
        Answer { code, media_type, bytes }
    };
    let both = format!("{PROTOBUF},application/json");
    for (authorization, path, code, reason) in [
        ("", MAPS, 403, "Forbidden"),
        ("", cars, 403, "Forbidden"),
        ("", other, 403, "Forbidden"),
        ("Bearer nobody", MAPS, 401, "Unauthorized"),
        ("Bearer nobody", cars, 401, "Unauthorized"),
    ] {
        for accept in [PROTOBUF, &both] {
            let answer = refused(authorization, path, accept).await;
            assert_eq!((answer.code, &*answer.media_type), (code, PROTOBUF), "{path}");
            let status = proto::decode(&answer.bytes).unwrap_or_else(|it| panic!("{path}: {it:?}"));
            assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!(reason)), "{path}");
        }
        for accept in ["application/json", "*/*", ""] {
            let answer = refused(authorization, path, accept).await;
            assert_eq!((answer.code, answer.json()["reason"].clone()), (code, json!(reason)), "{path}");
        }
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn writes_and_what_is_below_objects_are_answered_as_protobuf() {
    let server = server::started().await;
    let map = json!({ "metadata": { "name": "a" }, "data": { "k": "v" } });
    let set = json!({ "metadata": { "name": "web" }, "spec": {
        "replicas": 0, "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } } });
    let account = json!({ "metadata": { "name": "robot" } });
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    for (method, path, body, code, kind) in [
        ("POST", MAPS.to_owned(), map, 201, "ConfigMap"),
        ("PATCH", format!("{MAPS}/a"), json!({ "data": { "l": "w" } }), 200, "ConfigMap"),
        ("POST", sets.to_owned(), set, 201, "ReplicaSet"),
        ("GET", format!("{sets}/web/scale"), Value::Null, 200, "Scale"),
        ("GET", format!("{sets}/web/status"), Value::Null, 200, "ReplicaSet"),
        ("POST", accounts.to_owned(), account, 201, "ServiceAccount"),
        ("POST", format!("{accounts}/robot/token"), json!({ "spec": {} }), 201, "TokenRequest"),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
            review,
            201,
            "SelfSubjectAccessReview",
        ),
        ("DELETE", format!("{MAPS}/a"), Value::Null, 200, "Status"),
    ] {
        let got = ask(&server, method, &path, PROTOBUF, &body).await;
        assert_eq!((got.code, &*got.media_type), (code, PROTOBUF), "{method} {path}");
        assert_eq!(proto::decode(&got.bytes).expect("protobuf")["kind"], kind, "{method} {path}");
    }
    let status = proto::decode(&get(&server, &format!("{MAPS}/none"), PROTOBUF).await.bytes).expect("protobuf");
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("NotFound")));
    server.stop().await;
}

/// Each event is the same as in JSON, whether it was kept, comes from the state at the beginning, or is a bookmark.
#[tokio::test(start_paused = true)]
async fn a_watch_sends_the_same_events_as_in_json() {
    let server = server::started().await;
    let put = async |name: &str, data: &str| {
        let map = json!({ "metadata": { "name": name, "labels": { "w": "1" } }, "data": { "k": data } });
        ask(&server, "POST", MAPS, "", &map).await;
        ask(&server, "PATCH", &format!("{MAPS}/{name}"), "", &json!({ "data": { "k": data.repeat(2) } })).await;
    };
    put("a", "x").await;
    let before = get(&server, MAPS, "application/json").await.json()["metadata"]["resourceVersion"].clone();
    put("b", "y").await;
    ask(&server, "DELETE", &format!("{MAPS}/a"), "", &Value::Null).await;
    let after = before.as_str().expect("a revision");
    let beginning = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for start in [beginning.to_owned(), format!("resourceVersion={after}"), String::new()] {
        let path = format!("{MAPS}?watch=true&timeoutSeconds=1&labelSelector=w&{start}");
        for form in ["", METADATA] {
            let json = get(&server, &path, &format!("application/json{form}")).await;
            let text = String::from_utf8(json.bytes.to_vec()).expect("JSON");
            let mut expected = Vec::new();
            for line in text.lines() {
                let event: Value = serde_json::from_str(line).expect("an event");
                let object = proto::whole(&event["object"]).expect("a type of protobuf");
                expected.extend(proto::event(event["type"].as_str().expect("a type"), &object));
            }
            assert!(!expected.is_empty(), "{path}");
            for _ in 0..2 {
                let got = get(&server, &path, &format!("{PROTOBUF};stream=watch{form}")).await;
                assert_eq!((got.code, &*got.media_type), (200, "application/vnd.kubernetes.protobuf;stream=watch"));
                let first = u32::from_be_bytes(got.bytes[..4].try_into().expect("four bytes"));
                assert_eq!(got.bytes[4], 1 << 3 | 2, "an event begins with its type, after its length: {first}");
                assert!(got.bytes == expected, "{path} {form}: {} bytes, not {}", got.bytes.len(), expected.len());
            }
        }
    }
    server.stop().await;
}

/// An event is encoded for the first who asks, and sent to all others who watch in the same form.
#[tokio::test(start_paused = true)]
async fn watchers_of_one_form_share_an_event() {
    let server = server::started().await;
    let newest = get(&server, MAPS, "application/json").await.json()["metadata"]["resourceVersion"].clone();
    let path = format!("{MAPS}?watch&resourceVersion={}", newest.as_str().expect("a revision"));
    let stream = format!("{PROTOBUF};stream=watch");
    let forms = ["application/json".to_owned(), stream.clone(), format!("{stream}{METADATA}")];
    let mut watches = Vec::new();
    for accept in forms.iter().flat_map(|it| [it, it]) {
        let who = Identity::new("kubernetes-admin", &["system:masters"]);
        let request = http::Request::get(&path).header("Accept", accept).body(Bytes::new()).expect("a request");
        watches.push(server.call(who, request).await.into_body());
    }
    ask(&server, "POST", MAPS, "", &json!({ "metadata": { "name": "a" }, "data": { "k": "v" } })).await;
    let mut frames = Vec::new();
    for watch in &mut watches {
        let frame = tokio::time::timeout(PATIENCE, watch.frame()).await.expect("it comes").expect("the watch goes on");
        frames.push(frame.expect("no error").into_data().expect("data"));
    }
    for (same, form) in frames.chunks(2).zip(&forms) {
        assert!(!same[0].is_empty() && same[0].as_ptr() == same[1].as_ptr(), "{form}: encoded twice");
    }
    assert!(frames[0] != frames[2] && frames[2] != frames[4], "each form is its own");
    drop(watches);
    server.stop().await;
}

/// Enough for a list that is sent in pieces; and pages of it.
#[tokio::test(start_paused = true)]
async fn a_long_list_and_its_pages_say_the_same() {
    let server = server::started().await;
    for n in 0..40 {
        let map = json!({ "metadata": { "name": format!("m{n}") }, "data": { "a": "b".repeat(n * 1_000) } });
        assert_eq!(ask(&server, "POST", MAPS, "", &map).await.code, 201);
    }
    for path in [MAPS, "/api/v1/configmaps?limit=7", "/api/v1/configmaps?labelSelector=none%3Dhere&limit=5"] {
        same(&server, path).await.expect("the same");
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_json_and_their_metadata_protobuf() {
    let server = server::started().await;
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "trees.example.com" },
        "spec": { "group": "example.com", "scope": "Cluster", "names": { "plural": "trees", "kind": "Tree" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] } });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = ask(&server, "POST", definitions, PROTOBUF, &definition).await;
    assert_eq!((made.code, &*made.media_type), (201, PROTOBUF));
    let trees = "/apis/example.com/v1/trees";
    while get(&server, trees, "application/json").await.code == 404 {
        tokio::task::yield_now().await;
    }
    let tree = json!({ "apiVersion": "example.com/v1", "kind": "Tree", "metadata": { "name": "oak" }, "rings": 7 });
    assert_eq!(ask(&server, "POST", trees, "", &tree).await.code, 201);
    let oak = format!("{trees}/oak");
    let got = get(&server, &oak, &format!("{PROTOBUF},application/json")).await;
    assert_eq!((got.code, &*got.media_type, &got.json()["rings"]), (200, "application/json", &json!(7)));
    for path in [&*oak, "/apis/example.com/v1/trees?limit=3"] {
        same(&server, path).await.expect("the same");
        let refused = get(&server, path, PROTOBUF).await;
        assert_eq!((refused.code, &refused.json()["reason"]), (406, &json!("NotAcceptable")), "{path}");
    }
    server.stop().await;
}
