//! Definitions that were stored before schemas had to be structural, as an earlier Kubernetes let them through.

use std::{sync::Arc, time::Duration};

use corten_store::{Operation, Store, Txn, backend::memory::Memory};
use serde_json::{Value, json};

use super::{CUSTOM_RESOURCE_DEFINITIONS, DEFINITIONS, ask, definition, has_condition, read, server};
use crate::Server;

const CARS: &str = "/apis/example.com/v1/namespaces/default/cars";
const PATIENCE: Duration = Duration::from_secs(30);

/// As it stands in the store.
fn stored(status: Value) -> Value {
    let mut cars = definition("example.com", "cars", "Car");
    cars["apiVersion"] = json!("apiextensions.k8s.io/v1");
    cars["kind"] = json!("CustomResourceDefinition");
    cars["metadata"] = json!({ "name": "cars.example.com", "uid": "u", "generation": 1,
        "creationTimestamp": "2020-01-01T00:00:00Z" });
    cars["spec"]["names"] = json!({ "plural": "cars", "singular": "car", "kind": "Car", "listKind": "CarList" });
    cars["spec"]["conversion"] = json!({ "strategy": "None" });
    cars["spec"]["preserveUnknownFields"] = json!(true);
    let spec = json!({ "description": "any" });
    cars["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
    cars["status"] = status;
    cars
}

async fn put(store: &Memory, definition: &Value) {
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/cars.example.com";
    let put = Operation::Put { key: key.to_owned().into(), value: definition.to_string().into() };
    store.commit(Txn { compares: Vec::new(), operations: vec![put] }).await.expect("it is stored");
}

async fn over(store: &Arc<Memory>) -> Server {
    Server::start(server::over(store.clone())).await.expect("a server starts over anything")
}

/// The definition, once it is so.
async fn until(server: &Server, is_so: impl Fn(&Value) -> bool) -> Value {
    let caches = server.caches();
    let look = || {
        let stored = caches.get(&CUSTOM_RESOURCE_DEFINITIONS)?.get("", "cars.example.com")?.parse();
        is_so(&stored).then_some(())
    };
    tokio::time::timeout(PATIENCE, caches.until(look)).await.expect("its status says so");
    let (code, body) = ask(server, "GET", &format!("{DEFINITIONS}/cars.example.com"), &Value::Null).await;
    assert_eq!(code, 200);
    read(body).await
}

fn is_told(definition: &Value) -> bool {
    has_condition(definition, "NonStructuralSchema")
}

#[tokio::test]
async fn a_stored_schema_that_is_not_structural_is_told_until_it_is_mended() {
    let condition = |kind: &str, reason: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z" });
    let settled = json!({
        "conditions": [condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")],
        "acceptedNames": { "plural": "cars", "singular": "car", "kind": "Car", "listKind": "CarList" },
        "storedVersions": ["v1"],
    });
    for status in [Value::Null, settled] {
        let store = Arc::new(Memory::new());
        put(&store, &stored(status)).await;
        let first = over(&store).await;
        let told = until(&first, |it| is_told(it) && has_condition(it, "Established")).await;
        let conditions = told["status"]["conditions"].as_array().expect("conditions");
        let condition = conditions.iter().find(|it| it["type"] == "NonStructuralSchema").expect("it is told");
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Violations")));
        assert_eq!(
            condition["message"],
            "[spec.preserveUnknownFields: Invalid value: true: must be false, \
             spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields]"
        );
        // It is served as it was.
        let car =
            json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "spec": { "any": 1 } });
        let (code, body) = ask(&first, "POST", CARS, &car).await;
        assert_eq!((code, &read(body).await["spec"]), (201, &json!({ "any": 1 })));
        first.stop().await;

        // The next server finds it told, and has nothing to write.
        let before = told["metadata"]["resourceVersion"].clone();
        let second = over(&store).await;
        let mut mended = until(&second, is_told).await;
        assert_eq!(mended["metadata"]["resourceVersion"], before);
        mended["spec"]["preserveUnknownFields"] = json!(false);
        let schema = &mut mended["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        *schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let (code, body) = ask(&second, "PUT", &format!("{DEFINITIONS}/cars.example.com"), &mended).await;
        assert_eq!(code, 200, "{}", read(body).await);
        let mended = until(&second, |it| !is_told(it)).await;
        let conditions = mended["status"]["conditions"].as_array().expect("conditions");
        assert!(conditions.iter().all(|it| it["type"] != "NonStructuralSchema"), "{mended}");
        assert!(has_condition(&mended, "Established") && has_condition(&mended, "NamesAccepted"), "{mended}");
        assert_eq!(ask(&second, "GET", &format!("{CARS}/a"), &Value::Null).await.0, 200);
        second.stop().await;
    }
}

/// Whoever cannot mend it can still mark it, and take it away with its objects.
#[tokio::test]
async fn a_stored_definition_that_is_not_structural_can_be_deleted() {
    let plain = |spec: Value| {
        let mut cars = stored(Value::Null);
        cars["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
        cars
    };
    for cars in [stored(Value::Null), plain(json!({ "type": "object" }))] {
        let store = Arc::new(Memory::new());
        put(&store, &cars).await;
        let server = over(&store).await;
        let mut cars = until(&server, |it| is_told(it) && has_condition(it, "Established")).await;
        cars["metadata"]["labels"] = json!({ "a": "b" });
        let (code, body) = ask(&server, "PUT", &format!("{DEFINITIONS}/cars.example.com"), &cars).await;
        let mut cars = read(body).await;
        assert_eq!((code, &cars["metadata"]["labels"]["a"]), (200, &json!("b")), "{cars}");
        let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "other": 1 });
        let (code, body) = ask(&server, "POST", CARS, &car).await;
        assert_eq!((code, &read(body).await["other"]), (201, &json!(1)));
        // A schema that is structural, or none of which is: either may change, and the first has to say so.
        cars["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("cars");
        let is_structural = cars.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/type").is_some();
        let (code, body) = ask(&server, "PUT", &format!("{DEFINITIONS}/cars.example.com"), &cars).await;
        assert_eq!(code, if is_structural { 422 } else { 200 }, "{}", read(body).await);
        assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/cars.example.com"), &Value::Null).await.0, 200);
        let is_gone = super::gone(&server, "cars.example.com");
        tokio::time::timeout(PATIENCE, is_gone).await.expect("it goes");
        server.stop().await;
    }
}
