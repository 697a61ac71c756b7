//! Numbers that clients shape, at their ends: in queries of every verb, in preconditions, in bodies. None breaks a request,
//! and what is no number is refused in kube-apiserver's words.

use std::time::Duration;

use bytes::Bytes;
use corten_access::Identity;
use corten_cacher::body::Response;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server;
use crate::Server;

const POD: &str = "/api/v1/namespaces/default/pods/web";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// As clients write them, and what Go makes of them: a number, or why it is none.
const NUMBERS: [(&str, Result<i64, &str>); 14] = [
    ("0", Ok(0)),
    ("1", Ok(1)),
    ("-1", Ok(-1)),
    ("%2B1", Ok(1)),
    ("01", Ok(1)),
    ("2147483648", Ok(2_147_483_648)),
    ("9007199254740993", Ok(9_007_199_254_740_993)),
    ("9223372036854775807", Ok(9_223_372_036_854_775_807)),
    ("-9223372036854775808", Ok(-9_223_372_036_854_775_808)),
    ("9223372036854775808", Err(r#"strconv.ParseInt: parsing \"9223372036854775808\": value out of range"#)),
    ("18446744073709551616", Err(r#"strconv.ParseInt: parsing \"18446744073709551616\": value out of range"#)),
    ("1e3", Err(r#"strconv.ParseInt: parsing \"1e3\": invalid syntax"#)),
    ("0x10", Err(r#"strconv.ParseInt: parsing \"0x10\": invalid syntax"#)),
    ("%20", Err(r#"strconv.ParseInt: parsing \" \": invalid syntax"#)),
];

/// What a number of a query does.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// So many objects come, and all where it is none.
    Limit,
    /// A watch ends after so many seconds; where it is 0, after 30 to 60 minutes, and at once where it is less.
    Timeout,
    /// An object has so many seconds to end.
    Grace,
    /// Nothing is told of it: what is deleted has none, or is told of as it was.
    Untold,
}

/// A method, a path, and what a query does there.
type Row = (&'static str, &'static str, &'static [(&'static str, Effect)]);

/// A verb of the API, and those of its parameters that are numbers of 64 bits with a sign.
const VERBS: [Row; 8] = [
    ("GET", PODS, &[("limit", Effect::Limit)]),
    ("GET", "/api/v1/namespaces/default/pods?watch=1", &[("timeoutSeconds", Effect::Timeout)]),
    ("GET", "/api/v1/namespaces/default/pods?watch=1&allowWatchBookmarks=1", &[("timeoutSeconds", Effect::Timeout)]),
    ("GET", "/api/v1/watch/namespaces/default/pods", &[("timeoutSeconds", Effect::Timeout)]),
    ("GET", "/api/v1/watch/namespaces/default/pods/web", &[("timeoutSeconds", Effect::Timeout)]),
    ("DELETE", "/api/v1/namespaces/default/pods/web?dryRun=All", &[("gracePeriodSeconds", Effect::Grace)]),
    (
        "DELETE",
        "/api/v1/namespaces/default/pods?dryRun=All",
        &[("gracePeriodSeconds", Effect::Untold), ("limit", Effect::Limit)],
    ),
    (
        "DELETE",
        "/apis/batch/v1/namespaces/default/jobs?dryRun=All",
        &[("gracePeriodSeconds", Effect::Untold), ("limit", Effect::Untold)],
    ),
];

const N_PODS: usize = 3;

impl Effect {
    /// What is seen of a number in an answer that is 200.
    async fn check(self, number: i64, response: Response, what: &str) {
        match self {
            Self::Limit => {
                let shown = items(&whole(response).await);
                let expected = usize::try_from(number).ok().filter(|it| *it > 0).map_or(N_PODS, |it| it.min(N_PODS));
                assert_eq!(shown, expected, "{what}");
            }
            Self::Timeout => {
                let lasted = lasts(response, Duration::from_secs(2 * 3600)).await.map(|it| it.as_secs());
                match number {
                    1 => assert_eq!(lasted, Some(1), "{what}"),
                    // `time.NewTimer`: it is over before it begins.
                    ..0 => assert_eq!(lasted, Some(0), "{what}"),
                    0 => assert!(lasted.is_some_and(|it| (1800..=3600).contains(&it)), "{what}: {lasted:?}"),
                    _ => assert_eq!(lasted, None, "{what}"),
                }
            }
            Self::Grace => {
                let pod: Value = serde_json::from_str(&whole(response).await).expect("JSON");
                // `BeforeDelete`: less than none is the least there is, and with none it is gone, as it was.
                let expected = match number {
                    0 => Value::Null,
                    _ => number.max(1).into(),
                };
                assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], expected, "{what}: {pod}");
            }
            Self::Untold => drop(whole(response).await),
        }
    }
}

fn items(list: &str) -> usize {
    let list: Value = serde_json::from_str(list).expect("JSON");
    list["items"].as_array().map_or(0, Vec::len)
}

async fn whole(response: Response) -> String {
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How long a watch goes on, where it ends before `most`.
async fn lasts(response: Response, most: Duration) -> Option<Duration> {
    let begin = Instant::now();
    let mut body = response.into_body();
    let end = async { while let Some(Ok(_)) = body.frame().await {} };
    tokio::time::timeout(most, end).await.ok().map(|()| begin.elapsed())
}

async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Response {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    server.call(who, request.body(Bytes::from(body)).expect("a request")).await
}

async fn call(server: &Server, method: &str, path: &str, body: &Value) -> (StatusCode, String) {
    let response = ask(server, method, path, body).await;
    let status = response.status();
    // The body of a watch has no end.
    if path.contains("watch") && status == StatusCode::OK {
        return (status, String::new());
    }
    (status, whole(response).await)
}

async fn with_pods() -> Server {
    let server = server::started().await;
    let account = json!({"metadata": {"name": "default"}});
    call(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", &account).await;
    for name in ["web", "web-2", "web-3"] {
        let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        assert_eq!(call(&server, "POST", PODS, &pod).await.0, StatusCode::CREATED);
    }
    server
}

#[tokio::test(start_paused = true)]
async fn queries_take_any_number() {
    let server = with_pods().await;
    for (method, path, names) in VERBS {
        for (name, effect) in names {
            for (text, read) in NUMBERS {
                let sign = if path.contains('?') { '&' } else { '?' };
                let path = format!("{path}{sign}{name}={text}");
                let response = ask(&server, method, &path, &Value::Null).await;
                let status = response.status();
                match read {
                    Err(complaint) => {
                        let body = whole(response).await;
                        assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {path}: {body}");
                        assert!(body.contains(complaint), "{method} {path}: {body}");
                    }
                    Ok(number) => {
                        assert_eq!(status, StatusCode::OK, "{method} {path}");
                        effect.check(number, response, &format!("{method} {path}")).await;
                    }
                }
            }
        }
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn versions_timeouts_and_bodies_take_any_number() {
    let server = with_pods().await;
    for (text, _) in NUMBERS {
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

/// What is to end before it begins ends at once, and zero asks for nothing.
#[tokio::test(start_paused = true)]
async fn a_watch_of_less_than_no_time_ends_at_once() {
    let server = with_pods().await;
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    for (seconds, least, most) in [("-5", 0, 0), ("-9223372036854775808", 0, 0), ("0", 1800, 3600), ("5", 5, 5)] {
        for flag in ["watch=1", "watch", "watch=TRUE", "watch=yes"] {
            let path = format!("{PODS}?{flag}&timeoutSeconds={seconds}");
            let request = http::Request::builder().uri(&*path).body(Bytes::new()).expect("a request");
            let begin = tokio::time::Instant::now();
            let response = server.call(who.clone(), request).await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            response.into_body().collect().await.expect("it ends");
            let lasted = begin.elapsed().as_secs();
            assert!((least..=most).contains(&lasted), "{path}: {lasted} s");
        }
    }
    for flag in ["watch=0", "watch=FALSE", "watch=fAlse"] {
        let request = http::Request::builder().uri(format!("{PODS}?{flag}")).body(Bytes::new()).expect("a request");
        let body = server.call(who.clone(), request).await.into_body().collect().await.expect("a list").to_bytes();
        assert!(body.starts_with(b"{\"kind\":\"PodList\""), "{flag}: {body:?}");
    }
    server.stop().await;
}

/// Deleted with the longest grace there is, and then sooner: both times can be read.
#[tokio::test(start_paused = true)]
async fn a_grace_may_be_without_end() {
    let server = with_pods().await;
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
