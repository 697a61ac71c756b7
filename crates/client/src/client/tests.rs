use corten_api::resources::{DEPLOYMENTS, NODES, PODS};
use serde_json::{Value, json};

use super::*;
use crate::script::{Answer, Script, pod};

fn web() -> Key {
    Key::new("default", "web")
}

#[tokio::test(start_paused = true)]
async fn verbs_are_the_requests_that_kubernetes_knows() {
    let script = Script::new((0..9).map(|_| Answer::Json(200, json!({"items": []}))).collect());
    let client = script.client();
    let object = json!({"spec": 1});
    let all = ListParams { label_selector: "app in (web, db)".into(), limit: 2, ..ListParams::default() };
    let merge = &PatchType::Merge;
    let apply = PatchType::Apply { manager: "me".into(), force: true };
    let delete = DeleteParams { uid: Some("u".into()), propagation: "Background", ..DeleteParams::default() };
    client.get(&NODES, &Key::cluster("n1")).await.expect("answered");
    client.create(&PODS, "default", &object).await.expect("answered");
    client.create_subresource(&PODS, &web(), "binding", &object).await.expect("answered");
    client.replace(&PODS, &web(), "status", &object).await.expect("answered");
    client.patch(&DEPLOYMENTS, &web(), "scale", merge, &object).await.expect("answered");
    client.patch(&DEPLOYMENTS, &web(), "", &apply, &object).await.expect("answered");
    client.delete(&PODS, &web(), &delete).await.expect("answered");
    client.list(&PODS, &all).await.expect("answered");
    client.delete_collection(&PODS, &ListParams { namespace: "default".into(), ..all }, &delete).await.expect("ok");
    let options =
        r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background","preconditions":{"uid":"u"}}"#;
    assert_eq!(
        script.asked(),
        [
            "GET /api/v1/nodes/n1".to_owned(),
            r#"POST /api/v1/namespaces/default/pods {"spec":1}"#.into(),
            r#"POST /api/v1/namespaces/default/pods/web/binding {"spec":1}"#.into(),
            r#"PUT /api/v1/namespaces/default/pods/web/status {"spec":1}"#.into(),
            r#"PATCH /apis/apps/v1/namespaces/default/deployments/web/scale {"spec":1}"#.into(),
            r#"PATCH /apis/apps/v1/namespaces/default/deployments/web?fieldManager=me&force=true {"spec":1}"#.into(),
            format!("DELETE /api/v1/namespaces/default/pods/web {options}"),
            "GET /api/v1/pods?labelSelector=app+in+%28web%2C+db%29&limit=2".into(),
            format!("DELETE /api/v1/namespaces/default/pods?labelSelector=app+in+%28web%2C+db%29&limit=2 {options}"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn answers_become_what_a_caller_branches_on() {
    let status = json!({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "it exists"});
    let busy = json!({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}});
    let script = Script::new(vec![
        Answer::Json(409, status),
        Answer::Json(429, busy),
        Answer::Json(502, json!("bad gateway")),
        Answer::Lost,
        Answer::Json(200, json!({"metadata": 1})),
    ]);
    let client = script.client();
    let mut errors = Vec::new();
    for _ in 0..5 {
        errors.push(client.get_as::<Named>(&PODS, &web()).await.expect_err("no pod"));
    }
    assert!(errors[0].is_already_exists() && !errors[0].is_conflict() && !errors[0].may_have_been_done());
    assert_eq!(errors[1].retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(errors[2].to_string(), "the server answered 502: \"bad gateway\"");
    assert!(errors[2].may_have_been_done() && errors[3].may_have_been_done());
    assert_eq!(errors[3].to_string(), "cannot reach the API server: the line is cut");
    assert!(matches!(errors[4], Error::Decode(_)));
    for (message, may_have_been_done) in [
        ("Internal error occurred: failed calling webhook \"w.example.com\": EOF", false),
        ("Internal error occurred: the commit is in doubt", true),
    ] {
        let error = Error::from(corten_meta::Status::failure(500, "InternalError", message));
        assert_eq!(error.may_have_been_done(), may_have_been_done, "{message}");
    }
    // The script is over: the server does not answer any more, and the deadline ends the wait.
    let error = client.get(&PODS, &web()).await.expect_err("no answer");
    assert_eq!(
        error.to_string(),
        "cannot reach the API server: no answer to GET /api/v1/namespaces/default/pods/web within 60s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_comes_page_by_page() {
    let page = |next: &str, name: &str| {
        Answer::Json(200, json!({"metadata": {"resourceVersion": "7", "continue": next}, "items": [pod(name, "u", 1)]}))
    };
    let script = Script::new(vec![page("t1", "a"), page("", "b"), Answer::Json(200, json!({"items": null}))]);
    let client = script.client();
    let all: Vec<Value> = client.list_as(&PODS, &ListParams { limit: 1, ..ListParams::default() }).await.expect("two");
    assert_eq!(all, [pod("a", "u", 1), pod("b", "u", 1)]);
    assert_eq!(script.asked(), ["GET /api/v1/pods?limit=1", "GET /api/v1/pods?limit=1&continue=t1"]);
    assert!(client.list(&PODS, &ListParams::default()).await.expect("empty").items.is_empty());
}

#[derive(Debug, Deserialize)]
struct Named {
    #[expect(dead_code, reason = "only its absence matters")]
    metadata: corten_meta::ObjectMeta,
}

/// What dashboards ask for: how many requests there were, how they ended, and how long those took that have an end.
#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_how_they_ended() {
    let status = json!({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "it exists"});
    let answers =
        [Answer::Json(200, pod("web", "u", 1)), Answer::Json(409, status), Answer::Lost, Answer::Open(vec![])];
    let script = Script::new(answers.into());
    let counts = RequestTallies::default();
    let client = script.client().with_request_tallies(counts.clone());
    client.get(&PODS, &web()).await.expect("answered");
    client.create(&PODS, "default", &json!({})).await.expect_err("it exists");
    client.get(&PODS, &web()).await.expect_err("the line is cut");
    let _watch = client.watch(&PODS, &WatchParams::default()).await.expect("begun");
    client.with_deadline(Duration::from_secs(3)).get(&PODS, &web()).await.expect_err("never answered");

    let tallies = counts.tallies();
    let rows = |name: &str| -> Vec<String> {
        let tally = tallies.iter().find(|it| it.metric.name == name).expect("it is told");
        tally.rows().iter().map(|it| format!("{} {}", it.labels.join(","), it.n)).collect()
    };
    let total = ["200,GET,in-process 2", "409,POST,in-process 1", "<error>,GET,in-process 2"];
    assert_eq!(rows("rest_client_requests_total"), total);
    // A watch has no end that is waited for.
    assert_eq!(rows("rest_client_request_duration_seconds"), ["GET,in-process 3", "POST,in-process 1"]);
    let duration = tallies.iter().find(|it| !it.metric.kind.bounds().is_empty()).expect("a histogram");
    let up_to = duration.rows()[0].up_to(duration.metric);
    assert_eq!(up_to.iter().map(|it| it.1).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3]);
}
