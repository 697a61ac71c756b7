//! When and how it becomes known what a definition makes: documents, and bookmarks of its objects.

use bytes::Bytes;
use corten_cacher::body::whole;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};

use super::{DEFINITIONS, Identity, ask, define, definition, read, server, shaped};
use crate::Server;

const CARS: &str = "/apis/example.com/v1/namespaces/default/cars";
const OPENAPI: &str = "/openapi/v3/apis/example.com/v1";
const CAR: &str = "com.example.v1.Car";

async fn document(server: &Server, path: &str) -> Value {
    let (code, body) = ask(server, "GET", path, &Value::Null).await;
    assert_eq!(code, 200, "{path}");
    read(body).await
}

fn schema_in<'d>(documents: &'d [Value; 2], kind: &str) -> [Option<&'d Value>; 2] {
    let [v2, v3] = documents;
    [v2["definitions"].get(kind), v3["components"]["schemas"].get(kind)]
}

/// Whoever sees that a definition is `Established`, or changed, need not ask twice: documents are made of what is served now.
#[tokio::test]
async fn what_is_established_is_in_the_documents_at_once() {
    let server = server::started().await;
    for (kind, plural) in [("Car", "cars"), ("Bus", "buses"), ("Van", "vans")] {
        define(&server, &definition("example.com", plural, kind)).await;
        let documents = [document(&server, "/openapi/v2").await, document(&server, OPENAPI).await];
        for of in schema_in(&documents, &format!("com.example.v1.{kind}")) {
            let of = of.expect("the kind is there as soon as it is established");
            assert_eq!(of["properties"]["spec"]["properties"]["size"]["type"], "integer", "{kind}");
        }
    }
    // What goes is gone as soon as its definition is.
    let path = format!("{DEFINITIONS}/cars.example.com");
    assert_eq!(ask(&server, "DELETE", &path, &Value::Null).await.0, 200);
    super::gone(&server, "cars.example.com").await;
    let documents = [document(&server, "/openapi/v2").await, document(&server, OPENAPI).await];
    assert_eq!(schema_in(&documents, CAR), [None, None]);
    assert!(schema_in(&documents, "com.example.v1.Bus").iter().all(Option::is_some));
    server.stop().await;
}

/// So many properties that the definition is nearly as large as a body may be.
fn large(n: usize) -> Value {
    let properties: Map<String, Value> = (0..n)
        .map(|it| {
            let description = format!("The part with the number {it}, and {}.", "what is said of it ".repeat(20));
            (format!("part{it}"), json!({ "type": "string", "description": description }))
        })
        .collect();
    shaped(&json!({ "spec": { "type": "object", "properties": properties } }))
}

#[tokio::test]
async fn a_schema_of_megabytes_is_served_as_any_and_a_larger_one_refused() {
    let server = server::started().await;
    let (code, body) = ask(&server, "POST", DEFINITIONS, &large(8_000)).await;
    assert_eq!(code, 413, "{}", read(body).await);

    let definition = large(5_000);
    let n_bytes = definition.to_string().len();
    assert!((2 << 20..3 << 20).contains(&n_bytes), "{n_bytes}");
    define(&server, &definition).await;
    let mut car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" },
        "spec": { "part4999": "x", "part5000": "unknown" } });
    let (code, body) = ask(&server, "POST", CARS, &car).await;
    let made = read(body).await;
    assert_eq!((code, &made["spec"]), (201, &json!({ "part4999": "x" })), "{made}");
    car["metadata"]["name"] = "b".into();
    car["spec"] = json!({ "part4999": 1 });
    assert_eq!(ask(&server, "POST", CARS, &car).await.0, 422);

    let empty = server::started().await;
    for path in ["/openapi/v2", OPENAPI] {
        let (code, body) = ask(&server, "GET", path, &Value::Null).await;
        let text = body.collect().await.expect("a whole body").to_bytes();
        assert!(code == 200 && String::from_utf8_lossy(&text).contains("part4999"), "{path}");
        // Each document has the schema once, whatever names it.
        let of_others = match path {
            OPENAPI => 0,
            _ => ask(&empty, "GET", path, &Value::Null).await.1.collect().await.expect("a body").to_bytes().len(),
        };
        let n_own = text.len() - of_others;
        assert!(n_own < n_bytes * 3 / 2, "{path}: {n_own} bytes of a definition of {n_bytes}");
    }
    empty.stop().await;
    server.stop().await;
}

async fn events(server: &Server, query: &str, accept: &str) -> Bytes {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::builder().uri(format!("{CARS}?watch=true&{query}")).header("accept", accept);
    let response = server.answer(request.body(whole("")).expect("a request"), None, Some(who)).await;
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.expect("it ends").to_bytes()
}

fn lines(text: &Bytes) -> Vec<Value> {
    let lines = text.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines.map(|it| serde_json::from_slice(it).expect("an event")).collect()
}

/// A bookmark is of the kind that is watched, in the version that was asked for, and says nothing but a revision.
#[tokio::test(start_paused = true)]
async fn watches_of_custom_kinds_have_bookmarks() {
    let server = server::started().await;
    define(&server, &definition("example.com", "cars", "Car")).await;
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" } });
    let (code, made) = ask(&server, "POST", CARS, &car).await;
    assert_eq!(code, 201);
    let revision = read(made).await["metadata"]["resourceVersion"].clone();

    let seen = |it: &Value| it["object"]["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok());
    let from = revision.as_str().and_then(|it| it.parse().ok());

    let list = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    let text = events(&server, list, "application/json").await;
    let told = lines(&text);
    let types: Vec<_> = told.iter().map(|it| it["type"].as_str().unwrap_or_default()).collect();
    // A last one tells where the watch has ended.
    assert_eq!(types, ["ADDED", "BOOKMARK", "BOOKMARK"]);
    let end = &told[1]["object"];
    assert_eq!((&end["kind"], &end["apiVersion"]), (&json!("Car"), &json!("example.com/v1")));
    assert_eq!(end["metadata"]["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    assert!(told[2]["object"]["metadata"].get("annotations").is_none(), "{told:?}");
    assert!(told.iter().all(|it| seen(it) >= from), "{told:?}");
    assert!(end.get("spec").is_none(), "{end}");

    // From time to time; and only to who asked for them.
    let path = format!("resourceVersion={}&timeoutSeconds=200", revision.as_str().expect("a revision"));
    let text = events(&server, &format!("{path}&allowWatchBookmarks=true"), "application/json").await;
    let told = lines(&text);
    assert!(told.len() > 2 && told.iter().all(|it| it["type"] == "BOOKMARK"), "{told:?}");
    assert!(told.iter().all(|it| it["object"]["kind"] == "Car" && seen(it) >= from), "{told:?}");
    assert!(events(&server, &path, "application/json").await.is_empty());

    // Of what clients that need metadata alone are sent.
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let text = events(&server, list, partial).await;
    let told = lines(&text);
    assert_eq!(told[1]["object"]["kind"], "PartialObjectMetadata", "{told:?}");
    server.stop().await;
}
