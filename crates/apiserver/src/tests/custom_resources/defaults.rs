//! Defaults are there at the first sight of an object, and numbers fit what their format says.

use serde_json::{Value, json};

use super::{ask, define, definition, read, server};

const CARS: &str = "/apis/example.com/v1/namespaces/default/cars";

fn car(name: &str) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": name } })
}

/// A create may not set a status, and stores none. Whoever reads the object sees the default all the same.
#[tokio::test]
async fn a_status_that_is_left_out_has_its_default_at_once() {
    let server = server::started().await;
    let unknown = json!({ "conditions": [{ "type": "Programmed", "status": "Unknown" }] });
    let mut definition = definition("example.com", "cars", "Car");
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({ "status": {} });
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({
        "type": "object", "default": unknown, "properties": { "conditions": { "type": "array", "items": { "type": "object",
            "properties": { "type": { "type": "string" }, "status": { "type": "string" } } } } } });
    let name = define(&server, &definition).await;
    let (_, watch) = ask(&server, "GET", &format!("{CARS}?watch=true&timeoutSeconds=1"), &Value::Null).await;
    let mut sent = car("a");
    sent["status"] = json!({ "conditions": [] });
    for path in [format!("{CARS}?dryRun=All"), CARS.to_owned()] {
        let (code, created) = ask(&server, "POST", &path, &sent).await;
        let created = read(created).await;
        assert_eq!((code, &created["status"]), (201, &unknown), "{path}: {created}");
    }
    let seen = read(ask(&server, "GET", &format!("{CARS}/a"), &Value::Null).await.1).await;
    assert_eq!(seen["status"], unknown);
    let listed = read(ask(&server, "GET", CARS, &Value::Null).await.1).await;
    assert_eq!(listed["items"][0]["status"], unknown);
    let event: Value = read(watch).await;
    assert_eq!((&event["type"], &event["object"]["status"]), (&json!("ADDED"), &unknown));
    // Another default is that of what was never written, and needs no other write.
    let path = format!("{}/{name}", super::DEFINITIONS);
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    let conditions =
        &mut changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["default"];
    *conditions = json!({ "conditions": [] });
    let (code, answer) = ask(&server, "PUT", &path, &changed).await;
    assert_eq!(code, 200, "{}", read(answer).await);
    let caches = server.caches();
    let is_other = || {
        let cache = caches.iter().find(|it| it.kind().is_custom())?;
        (cache.get("default", "a")?.parse()["status"] == json!({ "conditions": [] })).then_some(())
    };
    caches.until(is_other).await;
    let again = read(ask(&server, "GET", &format!("{CARS}/a"), &Value::Null).await.1).await;
    assert_eq!(again["metadata"]["resourceVersion"], seen["metadata"]["resourceVersion"]);
    server.stop().await;
}

#[tokio::test]
async fn a_number_beyond_its_format_is_refused() {
    let server = server::started().await;
    let mut definition = definition("example.com", "cars", "Car");
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] =
        json!({ "type": "integer", "format": "int32" });
    define(&server, &definition).await;
    let mut large = car("a");
    large["spec"] = json!({ "size": 3_000_000_000_i64 });
    let (code, refused) = ask(&server, "POST", CARS, &large).await;
    let refused = read(refused).await;
    let message = r#"Car.example.com "a" is invalid: <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.size"#;
    assert_eq!((code, &refused["message"]), (422, &json!(message)));
    let mut labelled = car("a");
    labelled["metadata"]["labels"] = json!({ "a": 1 });
    let refused = read(ask(&server, "POST", CARS, &labelled).await.1).await;
    let message = r#"Car in version "v1" cannot be handled as a Car: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"#;
    assert_eq!(refused["message"], message);
    server.stop().await;
}
