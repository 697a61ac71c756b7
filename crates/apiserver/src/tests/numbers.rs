//! Numbers that clients shape, at their ends: in queries of every verb, in preconditions, in bodies. None breaks a request,
//! and what is no number is refused as upstream refuses it.

use bytes::Bytes;
use corten_meta::number;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::{Identity, Server};

const POD: &str = "/api/v1/namespaces/default/pods/web";
const PODS: &str = "/api/v1/namespaces/default/pods";

const NUMBERS: [&str; 13] = [
    "0",
    "1",
    "-1",
    "+1",
    "2147483648",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "1e3",
    "0x10",
    "%20",
];

/// A verb of the API, and those of its parameters that are numbers of 64 bits with a sign.
const VERBS: [(&str, &str, &[&str]); 8] = [
    ("GET", PODS, &["limit"]),
    ("GET", "/api/v1/namespaces/default/pods?watch=1", &["timeoutSeconds"]),
    ("GET", "/api/v1/namespaces/default/pods?watch=1&allowWatchBookmarks=1", &["timeoutSeconds"]),
    ("GET", "/api/v1/watch/namespaces/default/pods", &["timeoutSeconds"]),
    ("GET", "/api/v1/watch/namespaces/default/pods/web", &["timeoutSeconds"]),
    ("DELETE", "/api/v1/namespaces/default/pods/web?dryRun=All", &["gracePeriodSeconds"]),
    ("DELETE", "/api/v1/namespaces/default/pods?dryRun=All", &["gracePeriodSeconds", "limit"]),
    ("DELETE", "/apis/batch/v1/namespaces/default/jobs?dryRun=All", &["gracePeriodSeconds", "limit"]),
];

async fn call(server: &Server, method: &str, path: &str, body: &Value) -> (StatusCode, String) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    let response = server.call(who, request.body(Bytes::from(body)).expect("a request")).await;
    let status = response.status();
    // The body of a watch has no end.
    if path.contains("watch") && status == StatusCode::OK {
        return (status, String::new());
    }
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

async fn with_pod() -> Server {
    let server = server::started().await;
    let account = json!({"metadata": {"name": "default"}});
    call(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", &account).await;
    let pod =
        json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(call(&server, "POST", PODS, &pod).await.0, StatusCode::CREATED);
    server
}

#[tokio::test(start_paused = true)]
async fn queries_take_any_number() {
    let server = with_pod().await;
    for (method, path, names) in VERBS {
        for name in names {
            for text in NUMBERS {
                let sign = if path.contains('?') { '&' } else { '?' };
                let path = format!("{path}{sign}{name}={text}");
                let (status, body) = call(&server, method, &path.replace('+', "%2B"), &Value::Null).await;
                let read = number::signed(&text.replace("%20", " "));
                match read {
                    Err(complaint) => {
                        assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {path}: {body}");
                        let complaint = json!(complaint).to_string();
                        assert!(body.contains(complaint.trim_matches('"')), "{method} {path}: {body}");
                    }
                    // A request that breaks is 500.
                    Ok(_) => assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}: {body}"),
                }
            }
        }
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn versions_timeouts_and_bodies_take_any_number() {
    let server = with_pod().await;
    for text in NUMBERS {
        for (method, path, body) in [
            ("GET", format!("{PODS}?resourceVersion={text}"), Value::Null),
            ("GET", format!("{PODS}?timeout={text}s"), Value::Null),
            ("GET", format!("{PODS}?watch=1&resourceVersion={text}"), Value::Null),
            ("GET", format!("{PODS}?limit=1&continue={text}"), Value::Null),
            ("DELETE", format!("{POD}?dryRun=All"), json!({"preconditions": {"resourceVersion": text}})),
            ("DELETE", format!("{POD}?dryRun=All"), json!({"gracePeriodSeconds": text.parse::<i64>().ok()})),
            (
                "PUT",
                format!("{POD}?dryRun=All"),
                json!({"metadata": {"name": "web", "resourceVersion": text}, "spec": {}}),
            ),
        ] {
            let (status, body) = call(&server, method, &path, &body).await;
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}: {body}");
        }
    }
    server.stop().await;
}

/// Deleted with the longest grace there is, and then sooner: both times can be read.
#[tokio::test(start_paused = true)]
async fn a_grace_may_be_without_end() {
    let server = with_pod().await;
    for (grace, at) in [(i64::MAX, "9999-12-30T22:00:00Z"), (i64::MAX - 1, ""), (30, ""), (1, "")] {
        let (status, body) = call(&server, "DELETE", POD, &json!({"gracePeriodSeconds": grace})).await;
        assert_eq!(status, StatusCode::OK, "{grace}: {body}");
        let pod: Value = serde_json::from_str(&body).expect("JSON");
        let told = pod["metadata"]["deletionTimestamp"].as_str().expect("a time");
        assert!(told.parse::<corten_meta::Time>().is_ok() && (at.is_empty() || told == at), "{grace}: {told}");
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], grace);
    }
    server.stop().await;
}
