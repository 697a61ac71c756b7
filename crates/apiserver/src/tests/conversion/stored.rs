//! A definition that changes the version it stores while objects of the older one are stored.

use std::sync::Arc;

use corten_store::{Operation, Txn};
use tokio::sync::Semaphore;

use super::*;

fn with_storage(definition: &mut Value, version: &str) {
    for it in definition["spec"]["versions"].as_array_mut().expect("versions") {
        it["storage"] = (it["name"] == version).into();
    }
}

fn stored_versions(definition: &Value) -> &Value {
    &definition["status"]["storedVersions"]
}

#[tokio::test]
async fn an_object_stays_in_the_version_it_is_stored_in_until_it_is_written() {
    let (server, hook) = (started().await, honest_hook().await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    let made = create(&server, "a", "h:1").await;
    let changed = redefine(&server, |it| with_storage(it, "v2")).await;
    assert_eq!((changed.code, stored_versions(&changed.body)), (200, &json!(["v1", "v2"])), "{}", changed.body);

    assert_eq!(ask(&server, "GET", &format!("{V1}/a"), &Value::Null).await.body, made);
    assert!(hook.take_seen().is_empty(), "it is stored as v1");
    assert_eq!(ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await.body["spec"]["host"], "h");
    hook.take_seen();

    let path = format!("{DEFINITIONS}/{NAME}");
    let gone = redefine(&server, |it| {
        it["spec"]["versions"].as_array_mut().expect("versions").retain(|it| it["name"] != "v1")
    })
    .await;
    assert_eq!(gone.code, 422);
    assert!(gone.message().contains("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version"), "{}", gone.message());

    // A patch that changes nothing stores it again: a migration.
    let patched = ask_as(&server, "PATCH", &format!("{V2}/a"), MERGE, &json!({})).await;
    assert_eq!(patched.code, 200, "{}", patched.body);
    assert_ne!(patched.body["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(patched.body["metadata"]["managedFields"], made["metadata"]["managedFields"]);
    let again = ask_as(&server, "PATCH", &format!("{V2}/a"), MERGE, &json!({})).await;
    assert_eq!(again.body["metadata"]["resourceVersion"], patched.body["metadata"]["resourceVersion"]);
    hook.take_seen();
    assert_eq!(ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await.body["spec"]["host"], "h");
    assert!(hook.take_seen().is_empty(), "it is stored as v2 now");

    let status = json!({ "status": { "storedVersions": ["v2"] } });
    let told = ask_as(&server, "PATCH", &format!("{path}/status"), MERGE, &status).await;
    assert_eq!((told.code, stored_versions(&told.body)), (200, &json!(["v2"])), "{}", told.body);
    let mut definition = ask(&server, "GET", &path, &Value::Null).await.body;
    definition["spec"]["versions"].as_array_mut().expect("versions").retain(|it| it["name"] != "v1");
    assert_eq!(ask(&server, "PUT", &path, &definition).await.code, 200);
    until(&server, &format!("{V1}/a"), |it| it["code"] == 404).await;
    assert_eq!(ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await.body["spec"]["host"], "h");
    server.stop().await;
}

/// What the new version does not know is not lost to who still asks for the old one.
#[tokio::test]
async fn without_a_webhook_old_objects_keep_what_only_their_version_knows() {
    let server = started().await;
    define(&server, &definition(&json!({ "strategy": "None" }), "v1")).await;
    create(&server, "a", "h:1").await;
    assert_eq!(redefine(&server, |it| with_storage(it, "v2")).await.code, 200);
    let spec = |it: Answered| it.body["spec"].clone();
    assert_eq!(spec(ask(&server, "GET", &format!("{V1}/a"), &Value::Null).await), json!({ "hostPort": "h:1" }));
    assert_eq!(spec(ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await), json!({}));
    let list = ask(&server, "GET", V2, &Value::Null).await.body;
    assert_eq!((&list["apiVersion"], &list["items"][0]["spec"]), (&json!("example.com/v2"), &json!({})));
    let mut watch = watch(&server, &format!("{V2}?watch=true")).await;
    let told = event(&mut watch).await;
    assert_eq!((&told["object"]["apiVersion"], &told["object"]["spec"]), (&json!("example.com/v2"), &json!({})));
    let patched = ask_as(&server, "PATCH", &format!("{V2}/a"), MERGE, &json!({ "spec": { "host": "i" } })).await;
    assert_eq!(patched.body["spec"], json!({ "host": "i" }));
    // Selectable fields are those of the asked version, wherever they stand among those of all.
    let selected = ask(&server, "GET", &format!("{V2}?fieldSelector=spec.host%3Di"), &Value::Null).await;
    assert_eq!(selected.body["items"].as_array().map(Vec::len), Some(1), "{}", selected.body);
    server.stop().await;
}

#[tokio::test]
async fn what_a_start_finds_is_in_the_version_it_was_stored_in() {
    let hook = honest_hook().await;
    let config = crate::tests::server::config();
    let (store, pki) = (config.store.clone(), config.pki.clone());
    let server = Server::start(config).await.expect("a server");
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    create(&server, "a", "h:1").await;
    assert_eq!(redefine(&server, |it| with_storage(it, "v2")).await.code, 200);
    create(&server, "b", "i:2").await;
    server.stop().await;
    hook.take_seen();
    let again = crate::Config { store, pki, ..crate::tests::server::config() };
    let server = Server::start(again).await.expect("a second start");
    let list = ask(&server, "GET", V1, &Value::Null).await.body;
    let specs: Vec<&Value> = list["items"].as_array().into_iter().flatten().map(|it| &it["spec"]["hostPort"]).collect();
    assert_eq!(specs, ["h:1", "i:2"]);
    assert_eq!(hook.take_seen().len(), 1, "only the one that is stored as v2");
    server.stop().await;
}

/// What nobody can convert is not shown under the name of a version that it is not in, and nobody writes over it.
#[tokio::test]
async fn an_object_of_a_version_that_the_definition_does_not_have_cannot_be_read() {
    let config = crate::tests::server::config();
    let store = config.store.clone();
    let server = Server::start(config).await.expect("a server");
    let mut one_version = definition(&json!({ "strategy": "None" }), "v1");
    one_version["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
    define(&server, &one_version).await;
    let kept = json!({ "apiVersion": "example.com/v0", "kind": "Socket",
        "metadata": { "name": "a", "namespace": "default", "uid": "u" }, "spec": { "precious": true } });
    let key = "/registry/example.com/sockets/default/a";
    let put = Operation::Put { key: key.into(), value: kept.to_string().into() };
    store.commit(Txn { compares: Vec::new(), operations: vec![put] }).await.expect("it is stored");
    until(&server, &format!("{V1}/a"), |it| it["code"] == 500).await;

    let one = format!("{V1}/a");
    let configuration = json!({ "apiVersion": "example.com/v1", "kind": "Socket", "metadata": { "name": "a" } });
    let yaml = "application/apply-patch+yaml";
    let answers = [
        ask(&server, "GET", &one, &Value::Null).await,
        ask(&server, "GET", V1, &Value::Null).await,
        ask(&server, "PUT", &one, &configuration).await,
        ask_as(&server, "PATCH", &one, MERGE, &json!({})).await,
        ask_as(&server, "PATCH", &format!("{one}?fieldManager=m"), yaml, &configuration).await,
    ];
    for it in answers {
        assert_eq!(it.code, 500, "{}", it.body);
        let said = "request to convert CR from an invalid group/version: example.com/v0";
        assert!(it.message().contains(said), "{}", it.message());
    }
    let entry = store.get(key.as_bytes()).await.expect("the store is open").expect("it is there");
    assert_eq!(entry.value, kept.to_string());
    server.stop().await;
}

/// Its webhook answers only when the definition stores another version and all that was stored is in that.
#[tokio::test]
async fn a_create_that_is_slow_to_convert_is_stored_in_the_version_of_then() {
    let config = crate::tests::server::config();
    let store = config.store.clone();
    let server = Server::start(config).await.expect("a server");
    let (asked, may_answer) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gates = (asked.clone(), may_answer.clone());
    let hook = Hook::start_with(Arc::new(move |review| {
        let (asked, may_answer) = gates.clone();
        Box::pin(async move {
            asked.add_permits(1);
            may_answer.acquire().await.expect("it is open").forget();
            Reply::Json(honest(&review))
        })
    }))
    .await;
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    let new = json!({ "apiVersion": "example.com/v2", "kind": "Socket", "metadata": { "name": "late" }, "spec": { "host": "h", "port": "1" } });
    let change = async {
        asked.acquire().await.expect("it is open").forget();
        assert_eq!(redefine(&server, |it| with_storage(it, "v2")).await.code, 200);
        may_answer.add_permits(1000);
    };
    let (made, ()) = tokio::join!(ask(&server, "POST", V2, &new), change);
    assert_eq!((made.code, &made.body["spec"]), (201, &new["spec"]), "{}", made.body);
    let key = "/registry/example.com/sockets/default/late";
    let entry = store.get(key.as_bytes()).await.expect("the store is open").expect("it is there");
    let stored: Value = serde_json::from_slice(&entry.value).expect("JSON");
    assert_eq!((&stored["apiVersion"], &stored["spec"]), (&json!("example.com/v2"), &new["spec"]));
    server.stop().await;
}
