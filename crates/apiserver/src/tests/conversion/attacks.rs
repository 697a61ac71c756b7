//! Conversion webhooks that lie, break off, or do not answer: they harm nobody but those who ask for their objects.

use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

type Answer = Arc<Mutex<fn(&Value) -> Reply>>;

async fn changing_hook(answer: &Answer) -> Hook {
    let answer = answer.clone();
    Hook::start(move |review| (*answer.lock())(review)).await
}

fn honestly(of: &Value) -> Reply {
    Reply::Json(honest(of))
}

fn changed(of: &Value, change: impl Fn(&mut Value)) -> Reply {
    let mut answer = honest(of);
    change(&mut answer);
    Reply::Json(answer)
}

/// What is wrong with each, and what is said of it.
type Lie = (fn(&Value) -> Reply, &'static str);

const LIES: &[Lie] = &[
    (|it| changed(it, |it| it["response"]["uid"] = "other".into()), "expected response.uid="),
    (|it| changed(it, |it| it["apiVersion"] = "v1".into()), "expected webhook response of apiextensions.k8s.io/v1"),
    (|it| changed(it, |it| it["response"] = Value::Null), "no response provided"),
    (|it| changed(it, |it| it["response"]["convertedObjects"] = json!([])), "returned 0 objects, expected 1"),
    (
        |it| changed(it, |it| it["response"]["result"] = json!({ "status": "Failure", "message": "too old" })),
        "failed: too old",
    ),
    (|it| changed(it, |it| it["response"]["result"] = json!({})), "response.result.status was '', not 'Success'"),
    (
        |it| of_object(it, |it| it["apiVersion"] = "example.com/v1".into()),
        "invalid groupVersion (expected example.com/v2, received example.com/v1)",
    ),
    (|it| of_object(it, |it| it["kind"] = "Other".into()), "invalid kind (expected Socket, received Other)"),
    (|it| of_object(it, |it| it["metadata"]["name"] = "b".into()), "must have the same name: a != b"),
    (|it| of_object(it, |it| it["metadata"]["namespace"] = "b".into()), "must have the same namespace: default != b"),
    (|it| of_object(it, |it| it["metadata"]["uid"] = "b".into()), "must have the same UID: "),
    (|it| of_object(it, |it| *it = json!([])), "invalid groupVersion"),
    (|it| of_object(it, |it| it["metadata"] = json!("x")), "must have the same name"),
    (|it| of_object(it, |it| it["metadata"]["labels"] = json!({ "a b": "c" })), "metadata.labels: Invalid value"),
    (|it| of_object(it, |it| it["metadata"]["labels"] = json!({ "a": 1 })), "metadata.labels[a] must be a string"),
    (|it| of_object(it, |it| it["metadata"]["annotations"] = json!([])), "invalid metadata.annotations"),
    (|_| Reply::Raw(200, b"<html>".to_vec()), "json parse error"),
    (|_| Reply::Raw(500, b"no".to_vec()), "an error on the server"),
    (|_| Reply::Raw(200, vec![b' '; 9 << 20]), "the answer is larger than"),
    (|_| Reply::To("https://localhost:1/"), "307"),
];

fn of_object(of: &Value, change: impl Fn(&mut Value)) -> Reply {
    changed(of, |it| change(&mut it["response"]["convertedObjects"][0]))
}

#[tokio::test]
async fn a_lie_is_an_error_and_nothing_else() {
    let answer: Answer = Arc::new(Mutex::new(honestly));
    let (server, hook) = (started().await, changing_hook(&answer).await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    create(&server, "a", "h:1").await;
    for (lie, told) in LIES {
        *answer.lock() = *lie;
        for path in [format!("{V2}/a"), V2.to_owned()] {
            let answered = ask(&server, "GET", &path, &Value::Null).await;
            assert_eq!(answered.code, 500, "{told}: {}", answered.body);
            let begin = "conversion for example.com/v1, Kind=Socket ";
            assert!(
                answered.message().starts_with(begin) && answered.message().contains(told),
                "{told}: {}",
                answered.message()
            );
        }
        let mut watch = watch(&server, &format!("{V2}?watch=true")).await;
        let told_to_watcher = event(&mut watch).await;
        assert_eq!((&told_to_watcher["type"], &told_to_watcher["object"]["code"]), (&json!("ERROR"), &json!(500)));
        assert!(watch.frame().await.is_none(), "the watch ends");
        let patched = ask_as(&server, "PATCH", &format!("{V2}/a"), MERGE, &json!({ "spec": { "port": "3" } })).await;
        assert_eq!(patched.code, 500, "{told}");
        assert_eq!(
            ask(&server, "GET", &format!("{V1}/a"), &Value::Null).await.body["spec"],
            json!({ "hostPort": "h:1" })
        );
    }
    let failing = server.conversion().failing(NAME).expect("it is known to fail");
    assert!(failing.message.contains("conversion webhook"), "{}", failing.message);
    *answer.lock() = honestly;
    assert_eq!(ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await.code, 200);
    assert_eq!(server.conversion().failing(NAME), None);
    let metrics = ask(&server, "GET", "/metrics", &Value::Null).await.body.to_string();
    for metric in [
        "apiserver_conversion_webhook_request_total{failure_type=\\\"conversion_webhook_call_failure\\\",result=\\\"failure\\\"}",
        "apiserver_crd_conversion_webhook_duration_seconds_count{crd_name=\\\"sockets.example.com\\\",from_version=\\\"v1\\\",succeeded=\\\"true\\\",to_version=\\\"v2\\\"}",
    ] {
        assert!(metrics.contains(metric), "{metric}");
    }
    server.stop().await;
}

/// More than labels and annotations is not the webhook's to change, and what the schema does not know is no part of the object.
#[tokio::test]
async fn metadata_stays_and_what_is_unknown_goes() {
    let hook = Hook::start(|it| {
        of_object(it, |object| {
            object["metadata"]["labels"] = json!({ "made": "up" });
            object["metadata"]["finalizers"] = json!(["example.com/x"]);
            object["metadata"]["managedFields"] = Value::Null;
            object["spec"]["smuggled"] = true.into();
        })
    })
    .await;
    let server = started().await;
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    let made = create(&server, "a", "h:1").await;
    let got = ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await.body;
    assert_eq!((&got["metadata"]["labels"], &got["metadata"]["finalizers"]), (&json!({ "made": "up" }), &Value::Null));
    assert_eq!(
        (&got["metadata"]["managedFields"], &got["spec"]),
        (&made["metadata"]["managedFields"], &json!({ "host": "h", "port": "1" }))
    );
    let selected = ask(&server, "GET", &format!("{V2}?labelSelector=made%3Dup"), &Value::Null).await.body;
    assert_eq!(selected["items"].as_array().map(Vec::len), Some(1));
    server.stop().await;
}

#[tokio::test]
async fn who_hangs_keeps_nobody_else_and_nothing_that_needs_no_conversion() {
    let (server, hook) = (started().await, Hook::start(|_| Reply::Hang).await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    create(&server, "a", "h:1").await;
    let path = format!("{V2}/a");
    let mut waiting = std::pin::pin!(ask(&server, "GET", &path, &Value::Null));
    // It is asked, and does not answer.
    while hook.connections() == 0 {
        tokio::select! {
            biased;
            answered = waiting.as_mut() => panic!("nobody converts: {}", answered.body),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(ask(&server, "GET", "/api/v1/namespaces/default", &Value::Null).await.code, 200);
    assert_eq!(ask(&server, "GET", &format!("{V1}/a"), &Value::Null).await.code, 200);
    // Metadata is had without it, watched without it, and objects go without it.
    let request = Request::get(V2).header("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let listed = server.answer(request.body(whole("")).expect("a request"), None, Some(who)).await;
    assert_eq!(listed.status(), 200);
    assert_eq!(ask(&server, "DELETE", &path, &Value::Null).await.code, 200);
    assert_eq!(ask(&server, "GET", &format!("{V1}/a"), &Value::Null).await.code, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_definition_goes_though_its_webhook_is_dead() {
    let server = started().await;
    let dead = json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1beta1"],
        "clientConfig": { "url": "https://localhost:1/", "caBundle": "" } } });
    define(&server, &definition(&dead, "v1")).await;
    create(&server, "a", "h:1").await;
    let refused = ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await;
    assert!(
        refused.message().contains("failed: Post \"https://localhost:1/?timeout=30s\": dial tcp"),
        "{}",
        refused.message()
    );
    assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{NAME}"), &Value::Null).await.code, 200);
    until(&server, &format!("{DEFINITIONS}/{NAME}"), |it| it["code"] == 404).await;
    server.stop().await;
}

/// The refusal is in Kubernetes's words, which do not say the code and show the body; what is told of it does, and less of that.
#[tokio::test]
async fn the_code_of_a_refusal_is_told() {
    let body = format!("{{\"kind\":\"ConversionReview\",\"objects\":[{}]}}", "{},".repeat(100));
    let (server, hook) = (started().await, Hook::start(move |_| Reply::Raw(502, body.clone().into_bytes())).await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    create(&server, "a", "h:1").await;
    let refused = ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await;
    let whole = refused.message();
    assert!(
        whole.matches("{},").count() > 80 && whole.ends_with("has prevented the request from succeeding"),
        "{whole}"
    );
    let journal = format!(
        "/apis/corten.dev/v1/namespaces/default/journals/customresourcedefinitions.apiextensions.k8s.io.{NAME}"
    );
    let journal = ask(&server, "GET", &journal, &Value::Null).await.body;
    let told = journal["decisions"][0]["waits"][0]["message"].as_str().unwrap_or_default();
    assert!(
        told.contains("ConversionReview")
            && told.ends_with(",…\") has prevented the request from succeeding (HTTP 502)"),
        "{journal}"
    );
    server.stop().await;
}

/// What has gone has gone, whether it can be shown or not.
#[tokio::test]
async fn a_collection_goes_though_its_webhook_fails() {
    let (server, hook) = (started().await, Hook::start(|_| Reply::Raw(500, Vec::new())).await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    create(&server, "a", "h:1").await;
    let gone = ask(&server, "DELETE", V2, &Value::Null).await;
    assert_eq!((gone.code, &gone.body["kind"], &gone.body["status"]), (200, &json!("Status"), &json!("Success")));
    assert_eq!(ask(&server, "GET", V1, &Value::Null).await.body["items"], json!([]));
    server.stop().await;
}
