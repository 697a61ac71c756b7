//! Audit records of requests through the whole chain.

use std::sync::Arc;

use bytes::Bytes;
use corten_access::Identity;
use http::Request;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::server;
use crate::{Server, Sink};

#[derive(Default)]
pub(super) struct RecordingSink(Mutex<Vec<Vec<u8>>>);

impl Sink for RecordingSink {
    fn record(&self, line: Vec<u8>) {
        self.0.lock().push(line);
    }

    fn dropped(&self) -> u64 {
        3
    }
}

#[tokio::test]
async fn what_may_change_something_is_recorded() {
    let kept = Arc::new(RecordingSink::default());
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
        ("/objectRef", json!({ "resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1" })),
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

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  users: [quiet]
- level: RequestResponse
  resources: [{ group: "", resources: [configmaps] }]
- level: Metadata
"#;

/// A server with a policy, and what it has recorded since its start.
async fn watched() -> (Server, Arc<RecordingSink>) {
    let kept = Arc::new(RecordingSink::default());
    let guard =
        crate::Guard { audit_policy: crate::AuditPolicy::parse(POLICY).expect("a policy"), ..Default::default() };
    let config = crate::Config { audit: Some(kept.clone()), guard, ..server::config() };
    let server = Server::start(config).await.expect("a server over an empty store starts");
    kept.0.lock().clear();
    (server, kept)
}

impl RecordingSink {
    pub(super) fn take(&self) -> Vec<Value> {
        let lines = std::mem::take(&mut *self.0.lock());
        lines.iter().map(|it| serde_json::from_slice(it).expect("a record is JSON")).collect()
    }
}

async fn ask(
    server: &Server,
    who: Option<&str>,
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Bytes {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(corten_cacher::body::whole(body.to_owned())).expect("a request");
    let who = who.map(|it| Identity::new(it, &["system:masters"]));
    let response = server.answer(request, None, who).await;
    response.into_body().collect().await.expect("a whole body").to_bytes()
}

#[tokio::test]
async fn a_policy_says_how_much_of_what_is_recorded() {
    let (server, kept) = watched().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    ask(&server, Some("quiet"), "GET", maps, &[], "").await;
    assert!(kept.take().is_empty());

    let fields = r#"{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"data":{"k":"v"}}"#;
    ask(&server, Some("root"), "POST", maps, &[], fields).await;
    let [received, complete] = &*kept.take() else { panic!("two stages") };
    assert_eq!((&received["stage"], &received["level"]), (&json!("RequestReceived"), &json!("RequestResponse")));
    assert!(received.get("requestObject").is_none() && received.get("responseStatus").is_none());
    assert_eq!(complete["stage"], "ResponseComplete");
    assert_eq!(complete["auditID"], received["auditID"]);
    let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "name": "a" }, "data": { "k": "v" } });
    assert_eq!(complete["requestObject"], object);
    assert_eq!(complete["responseObject"]["data"], json!({ "k": "v" }));
    assert!(complete["responseObject"]["metadata"].get("managedFields").is_none());

    ask(&server, Some("root"), "GET", "/api/v1/namespaces/none", &[("impersonate-user", "jane")], "").await;
    let [_, refused] = &*kept.take() else { panic!("two stages") };
    assert_eq!(
        (&refused["user"]["username"], &refused["impersonatedUser"]["username"]),
        (&json!("root"), &json!("jane"))
    );
    assert_eq!(refused["responseStatus"]["reason"], "Forbidden");
    assert!(refused.get("responseObject").is_none());

    ask(&server, None, "GET", "/version", &[("authorization", "Bearer nothing")], "").await;
    let [failed] = &*kept.take() else { panic!("one stage") };
    assert_eq!(failed["responseStatus"]["code"], 401);
    assert_eq!(failed["responseStatus"]["message"], "Authentication failed, attempted: bearer");
    server.stop().await;
}

#[tokio::test]
async fn a_watch_is_recorded_when_it_begins_and_when_it_ends() {
    let (server, kept) = watched().await;
    let uri = "/api/v1/namespaces/default/secrets?watch=1";
    let request = Request::get(uri).body(Bytes::new()).expect("a request");
    let response = server.call(Identity::new("root", &["system:masters"]), request).await;
    let stages = || kept.take().iter().map(|it| it["stage"].as_str().expect("a stage").to_owned()).collect::<Vec<_>>();
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted"]);
    drop(response);
    assert_eq!(stages(), ["ResponseComplete"]);
    server.stop().await;
}
