//! Audit records of requests through the whole chain.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::server;
use crate::{Identity, Server, Sink};

#[derive(Default)]
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Sink for Kept {
    fn record(&self, line: Vec<u8>) {
        self.0.lock().push(line);
    }

    fn dropped(&self) -> u64 {
        3
    }
}

#[tokio::test]
async fn what_may_change_something_is_recorded() {
    let kept = Arc::new(Kept::default());
    let config = crate::Config { audit: Some(kept.clone()), ..server::config() };
    let server = Server::start(config).await.expect("a server over an empty store starts");
    kept.0.lock().clear();
    let send = async |user: &str, groups: &[&str], method: &str, path: &str, body: &'static str| {
        let request = Request::builder().method(method).uri(path).header("user-agent", "test/1");
        let request = request.body(Bytes::from_static(body.as_bytes())).expect("a request");
        let response = server.call(Identity::new(user, groups), request).await;
        response.into_body().collect().await.expect("a whole body").to_bytes()
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    send("root", &["system:masters"], "GET", maps, "").await;
    send("root", &["system:masters"], "POST", &format!("{maps}?dryRun=All"), r#"{"metadata":{"name":"a"}}"#).await;
    send("jane", &["dev"], "DELETE", &format!("{maps}/a"), "").await;

    let records: Vec<Value> =
        kept.0.lock().iter().map(|it| serde_json::from_slice(it).expect("a record is JSON")).collect();
    let [create, delete] = &*records else { panic!("two requests may change something: {records:?}") };
    for (pointer, expected) in [
        ("/kind", json!("Event")),
        ("/apiVersion", json!("audit.k8s.io/v1")),
        ("/level", json!("Metadata")),
        ("/stage", json!("ResponseComplete")),
        ("/requestURI", json!(format!("{maps}?dryRun=All"))),
        ("/verb", json!("create")),
        ("/user", json!({ "username": "root", "groups": ["system:masters"] })),
        ("/userAgent", json!("test/1")),
        ("/objectRef", json!({ "resource": "configmaps", "namespace": "default", "apiVersion": "v1" })),
        ("/responseStatus/code", json!(201)),
        ("/requestReceivedTimestamp", json!("2027-01-15T08:00:00.000000Z")),
        ("/annotations/authorization.k8s.io~1decision", json!("allow")),
    ] {
        assert_eq!(create.pointer(pointer), Some(&expected), "{pointer}");
    }
    assert_eq!(delete["responseStatus"]["code"], 403);
    assert_eq!(delete["objectRef"]["name"], "a");
    assert_eq!(delete["annotations"]["authorization.k8s.io/decision"], "forbid");

    let metrics = send("root", &["system:masters"], "GET", "/metrics", "").await;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert!(metrics.contains("apiserver_audit_error_total{plugin=\"log\"} 3"), "{metrics}");
    server.stop().await;
}
