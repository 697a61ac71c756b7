//! Who owns which fields of a custom resource when its definition changes what a field is.

use corten_access::Identity;
use corten_cacher::body::whole;
use http::Request;
use serde_json::{Value, json};

use super::{DEFINITIONS, ask, define, read, server, shaped};
use crate::Server;

const CAR: &str = "/apis/example.com/v1/namespaces/default/cars/a";

async fn apply(server: &Server, manager: &str, force: bool, spec: &Value) -> (u16, Value) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let path = format!("{CAR}?fieldManager={manager}&force={force}");
    let request = Request::builder().method("PATCH").uri(path).header("content-type", "application/apply-patch+yaml");
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "spec": spec });
    let response = server.answer(request.body(whole(car.to_string())).expect("a request"), None, Some(who)).await;
    (response.status().as_u16(), read(response.into_body()).await)
}

/// What each manager owns of `spec`, by its name.
fn owned(car: &Value) -> Vec<String> {
    let entries = car["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut owned: Vec<String> = entries.map(|it| format!("{}: {}", it["manager"], it["fieldsV1"]["f:spec"])).collect();
    owned.sort();
    owned
}

#[tokio::test]
async fn whoever_owned_parts_of_what_is_one_value_now_owns_the_whole() {
    let server = server::started().await;
    let wheels = |parts: Value| {
        let mut wheels = json!({ "type": "array", "items": { "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string" }, "size": { "type": "integer" } } } });
        wheels.as_object_mut().expect("an object").extend(parts.as_object().expect("an object").clone());
        let properties = json!({ "wheels": wheels, "colour": { "type": "string" } });
        shaped(&json!({ "spec": { "type": "object", "properties": properties } }))
    };
    let definition = wheels(json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] }));
    let name = define(&server, &definition).await;
    let (code, car) = apply(&server, "left", false, &json!({ "wheels": [{ "name": "l", "size": 1 }] })).await;
    assert_eq!(code, 201, "{car}");
    let of_right = json!({ "wheels": [{ "name": "r", "size": 2 }], "colour": "red" });
    let (code, car) = apply(&server, "right", false, &of_right).await;
    assert_eq!((code, car["spec"]["wheels"].as_array().map(Vec::len)), (200, Some(2)), "{car}");

    let path = format!("{DEFINITIONS}/{name}");
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    changed["spec"]["versions"] = wheels(json!({ "x-kubernetes-list-type": "atomic" }))["spec"]["versions"].clone();
    assert_eq!(ask(&server, "PUT", &path, &changed).await.0, 200);
    let is_atomic = async || {
        let document = read(ask(&server, "GET", "/openapi/v3/apis/example.com/v1", &Value::Null).await.1).await;
        let car = &document["components"]["schemas"]["com.example.v1.Car"];
        car["properties"]["spec"]["properties"]["wheels"]["x-kubernetes-list-type"] == "atomic"
    };
    while !is_atomic().await {
        tokio::task::yield_now().await;
    }

    // Any write says so, whoever makes it and whatever of.
    let mut labelled = car;
    labelled["metadata"]["labels"] = json!({ "seen": "yes" });
    let (code, body) = ask(&server, "PUT", &format!("{CAR}?fieldManager=other"), &labelled).await;
    let car = read(body).await;
    assert_eq!(code, 200, "{car}");
    let wholes = [r#""left": {"f:wheels":{}}"#, r#""other": null"#, r#""right": {"f:colour":{},"f:wheels":{}}"#];
    assert_eq!(owned(&car), wholes);

    // One part of it is no longer what anybody can own: the others' are in the way.
    let (code, status) = apply(&server, "left", false, &json!({ "wheels": [{ "name": "l", "size": 3 }] })).await;
    assert_eq!(code, 409, "{status}");
    assert_eq!(status["details"]["causes"].as_array().map(Vec::len), Some(1), "{status}");
    assert_eq!(status["details"]["causes"][0]["field"], ".spec.wheels", "{status}");
    // What stays as it is can be owned by several, each now whole.
    let all = json!({ "wheels": [{ "name": "l", "size": 1 }, { "name": "r", "size": 2 }] });
    let (code, car) = apply(&server, "left", false, &all).await;
    assert_eq!(code, 200, "{car}");
    assert_eq!(owned(&car), wholes);
    // Whoever takes it by force has it alone, and whoever gives it up leaves nothing of it.
    let (code, car) = apply(&server, "left", true, &json!({ "wheels": [{ "name": "l", "size": 3 }] })).await;
    assert_eq!((code, &car["spec"]["wheels"]), (200, &json!([{ "name": "l", "size": 3 }])), "{car}");
    assert_eq!(owned(&car), [wholes[0], wholes[1], r#""right": {"f:colour":{}}"#]);
    let (code, car) = apply(&server, "left", false, &json!({})).await;
    assert_eq!((code, &car["spec"]), (200, &json!({ "colour": "red" })), "{car}");
    server.stop().await;
}

/// Who wrote in a version that is no longer served owns what they wrote, until the definition has it no more.
#[tokio::test]
async fn owners_in_a_version_that_is_not_served_stay() {
    let server = server::started().await;
    let of = |is_old_served: bool| {
        let mut definition =
            shaped(&json!({ "spec": { "type": "object", "properties": { "colour": { "type": "string" } } } }));
        let versions = definition["spec"]["versions"].as_array_mut().expect("a list");
        let mut old = versions[0].clone();
        (old["name"], old["served"], old["storage"]) = (json!("v1alpha1"), json!(is_old_served), json!(false));
        versions.push(old);
        definition
    };
    let name = define(&server, &of(true)).await;
    let car = json!({ "apiVersion": "example.com/v1alpha1", "kind": "Car", "metadata": { "name": "a" }, "spec": { "colour": "red" } });
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let path = format!("{}?fieldManager=left", CAR.replace("/v1/", "/v1alpha1/"));
    let request = Request::builder().method("PATCH").uri(path).header("content-type", "application/apply-patch+yaml");
    let response = server.answer(request.body(whole(car.to_string())).expect("a request"), None, Some(who)).await;
    assert_eq!(response.status(), 201);

    let path = format!("{DEFINITIONS}/{name}");
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    changed["spec"]["versions"] = of(false)["spec"]["versions"].clone();
    assert_eq!(ask(&server, "PUT", &path, &changed).await.0, 200);
    while ask(&server, "GET", &CAR.replace("/v1/", "/v1alpha1/"), &Value::Null).await.0 != 404 {
        tokio::task::yield_now().await;
    }
    let (code, body) = ask(&server, "GET", CAR, &Value::Null).await;
    let mut labelled = read(body).await;
    assert_eq!(code, 200, "{labelled}");
    labelled["metadata"]["labels"] = json!({ "seen": "yes" });
    let (code, body) = ask(&server, "PUT", &format!("{CAR}?fieldManager=other"), &labelled).await;
    let car = read(body).await;
    assert_eq!(
        (code, owned(&car)),
        (200, vec![r#""left": {"f:colour":{}}"#.to_owned(), r#""other": null"#.to_owned()])
    );
    let (code, status) = apply(&server, "right", false, &json!({ "colour": "blue" })).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (409, &json!(".spec.colour")), "{status}");
    server.stop().await;
}
