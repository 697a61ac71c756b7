//! Priority and fairness: who is answered next, who waits, and who is refused.

use std::time::Duration;

use bytes::Bytes;
use corten_access::Identity;
use corten_cacher::body::BoxError;
use corten_fairness::{DescribedRequest, RequestWords, Underway};
use corten_flowcontrol::{RequestDigest, RequestedResource};
use corten_meta::{Status, Time};
use futures_util::{future::join_all, stream};
use http::{Method, Request};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};

use super::server;
use crate::{Config, Limits, Server};

const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn admin() -> Identity {
    Identity::new("admin", &["system:masters", "system:authenticated"])
}

async fn ask(
    server: &Server,
    who: Identity,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, http::HeaderMap, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = server.call(who, request.body(body.into()).expect("a request")).await;
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    (head.status.as_u16(), head.headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn must(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    let (code, _, answer) = ask(server, admin(), method, path, body).await;
    assert!((200..300).contains(&code), "{path}: {code} {answer}");
    answer
}

async fn stored(server: &Server, path: &str) -> Value {
    must(server, Method::GET, &format!("{FLOW_CONTROL}/{path}"), &Value::Null).await
}

fn dangling(schema: &Value) -> Vec<&str> {
    let conditions = schema["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|it| it["type"] == "Dangling").filter_map(|it| it["status"].as_str()).collect()
}

/// All that a flow schema of jane's needs, with one seat and so many places to wait in.
pub(super) async fn narrow(server: &Server, response: Value) {
    with_shares(server, 1, response).await;
}

async fn with_shares(server: &Server, shares: u32, response: Value) {
    let level = json!({ "metadata": { "name": "narrow" }, "spec": { "type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "borrowingLimitPercent": 0, "limitResponse": response } } });
    must(server, Method::POST, &format!("{FLOW_CONTROL}/prioritylevelconfigurations"), &level).await;
    let subjects = json!([{ "kind": "Group", "group": { "name": "jane" } }]);
    let everything = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
        "namespaces": ["*"] }]);
    let schema = json!({ "metadata": { "name": "janes" }, "spec": {
        "priorityLevelConfiguration": { "name": "narrow" }, "matchingPrecedence": 50,
        "distinguisherMethod": { "type": "ByUser" },
        "rules": [{ "subjects": subjects, "resourceRules": everything }] } });
    must(server, Method::POST, &format!("{FLOW_CONTROL}/flowschemas"), &schema).await;
    let binding = json!({ "metadata": { "name": "janes" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "jane" }] });
    must(server, Method::POST, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
}

fn jane() -> Identity {
    Identity::new("jane", &["jane", "system:authenticated"])
}

pub(super) fn config_of_few_seats() -> Config {
    Config { limits: Limits { seats: 8, ..Limits::default() }, ..server::config() }
}

async fn few_seats() -> Server {
    Server::start(config_of_few_seats()).await.expect("it starts")
}

#[tokio::test]
async fn answers_name_the_flow_schema_and_the_priority_level() {
    let server = server::started().await;
    for (who, path, schema, level) in [
        (admin(), MAPS, "exempt", "exempt"),
        (Identity::new("bob", &["system:authenticated"]), MAPS, "global-default", "global-default"),
        (Identity::new("bob", &["system:authenticated"]), "/healthz", "probes", "exempt"),
        (Identity::new("nobody", &[]), MAPS, "catch-all", "catch-all"),
        (Identity::new("system:kube-scheduler", &["system:authenticated"]), MAPS, "kube-scheduler", "workload-high"),
        (
            Identity::new("system:serviceaccount:a:b", &["system:serviceaccounts", "system:authenticated"]),
            MAPS,
            "service-accounts",
            "workload-low",
        ),
    ] {
        let (_, headers, _) = ask(&server, who.clone(), Method::GET, path, &Value::Null).await;
        let named = |header: &str| headers.get(header).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
        let uid = |it: Value| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let schema = uid(stored(&server, &format!("flowschemas/{schema}")).await);
        let level = uid(stored(&server, &format!("prioritylevelconfigurations/{level}")).await);
        assert_eq!(named("x-kubernetes-pf-flowschema-uid"), schema, "{} {path}", who.user);
        assert_eq!(named("x-kubernetes-pf-prioritylevel-uid"), level, "{} {path}", who.user);
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_mandatory_comes_back_and_what_leads_nowhere_says_so() {
    let server = server::started().await;
    assert_eq!(dangling(&stored(&server, "flowschemas/global-default").await), ["False"]);
    must(&server, Method::DELETE, &format!("{FLOW_CONTROL}/flowschemas/catch-all"), &Value::Null).await;
    must(&server, Method::DELETE, &format!("{FLOW_CONTROL}/prioritylevelconfigurations/catch-all"), &Value::Null).await;
    let lost = json!({ "metadata": { "name": "lost" },
        "spec": { "priorityLevelConfiguration": { "name": "nowhere" }, "matchingPrecedence": 50 } });
    must(&server, Method::POST, &format!("{FLOW_CONTROL}/flowschemas"), &lost).await;
    let until = async {
        loop {
            let names = ["flowschemas/catch-all", "prioritylevelconfigurations/catch-all"];
            let back = join_all(names.map(|it| {
                let path = format!("{FLOW_CONTROL}/{it}");
                let server = &server;
                async move { ask(server, admin(), Method::GET, &path, &Value::Null).await.0 }
            }));
            let is_back = back.await.iter().all(|it| *it == 200);
            if is_back && dangling(&stored(&server, "flowschemas/lost").await) == ["True"] {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), until).await.expect("the loop puts them back");
    server.stop().await;
}

/// The level's only seat, held until it is dropped.
async fn held(server: &Server) -> Underway {
    seat(server).await.expect("it is free")
}

/// One of the level's seats, where one is free.
async fn seat(server: &Server) -> Result<Underway, Status> {
    let who = jane();
    let resource = RequestedResource { group: "", plural: "configmaps", subresource: "", namespace: "default" };
    let asked =
        RequestDigest { user: &who.user, groups: &who.groups, verb: "create", resource: Some(resource), path: "" };
    let classified = server.fairness().classify(server.caches(), &asked);
    let (flow_schema, distinguisher) = classified.flow_of(&asked);
    let words = RequestWords { flow_schema, distinguisher, user: &who.user, verb: "create", ..Default::default() };
    let request = DescribedRequest::new(Time::from_unix_seconds(1_800_000_000), &words);
    classified.begin(1, Duration::ZERO, request).await
}

/// Waits until a gauge of the level `narrow` says so.
pub(super) async fn until(server: &Server, gauge: &str, value: u32) {
    let line = format!("apiserver_flowcontrol_{gauge}{{flow_schema=\"janes\",priority_level=\"narrow\"}} {value}\n");
    let reached = async {
        while !text(server, "/metrics").await.contains(&line) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap_or_else(|_| panic!("{line}"));
}

async fn write(server: &Server, name: &str) -> (u16, http::HeaderMap, Value) {
    ask(server, jane(), Method::POST, MAPS, &json!({ "metadata": { "name": name } })).await
}

#[tokio::test]
async fn without_queues_who_finds_no_seat_is_refused() {
    let server = few_seats().await;
    narrow(&server, json!({ "type": "Reject" })).await;
    let seat = held(&server).await;
    let (code, headers, status) = write(&server, "refused").await;
    assert_eq!((code, &status["reason"]), (429, &json!("TooManyRequests")), "{status}");
    assert_eq!(headers["retry-after"], "1");
    assert!(headers.contains_key("x-kubernetes-pf-prioritylevel-uid"));
    assert_eq!(ask(&server, admin(), Method::GET, MAPS, &Value::Null).await.0, 200, "who is exempt waits for nobody");

    for journal in [
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io.narrow",
        "flowschemas.flowcontrol.apiserver.k8s.io.janes",
    ] {
        let path = format!("/apis/corten.dev/v1/namespaces/default/journals/{journal}");
        let (_, _, journal) = ask(&server, admin(), Method::GET, &path, &Value::Null).await;
        let wait = &journal["decisions"][0]["waits"][0];
        let says = "1 request was turned away (concurrency-limit) from priority level narrow, for its 1 seat is too few; the newest was of user \"jane\", by flow schema janes";
        assert_eq!((&wait["reason"], &wait["message"]), (&json!("RequestsRefused"), &json!(says)), "{journal}");
    }

    drop(seat);
    assert_eq!(write(&server, "again").await.0, 201);
    let refused =
        "rejected_requests_total{flow_schema=\"janes\",priority_level=\"narrow\",reason=\"concurrency-limit\"} 1";
    assert!(text(&server, "/metrics").await.contains(refused));
    server.stop().await;
}

#[tokio::test]
async fn in_a_queue_who_finds_no_seat_waits_and_who_finds_no_place_is_refused() {
    let server = few_seats().await;
    narrow(&server, json!({ "type": "Queue", "queuing": { "queues": 1, "handSize": 1, "queueLengthLimit": 5 } })).await;
    let seat = held(&server).await;
    let waiting: Vec<_> = (0..5)
        .map(|n| {
            let server = server.clone();
            tokio::spawn(async move { write(&server, &format!("m{n}")).await.0 })
        })
        .collect();
    until(&server, "current_inqueue_requests", 5).await;
    assert_eq!(write(&server, "refused").await.0, 429);
    who_looks_sees_who_waits_and_who_is_answered(&server).await;
    // Two go away: there is room for others.
    waiting.iter().take(2).for_each(tokio::task::JoinHandle::abort);
    until(&server, "current_inqueue_requests", 3).await;

    drop(seat);
    for one in waiting.into_iter().skip(2) {
        assert_eq!(one.await.expect("no panic"), 201);
    }
    for gauge in ["current_inqueue_requests", "current_executing_requests", "current_executing_seats"] {
        until(&server, gauge, 0).await;
    }
    server.stop().await;
}

/// One is answered, five wait, and one was refused.
async fn who_looks_sees_who_waits_and_who_is_answered(server: &Server) {
    let table = async |name: &str| -> Vec<Vec<String>> {
        let text = text(server, &format!("/debug/api_priority_and_fairness/{name}")).await;
        let rows = text.lines().filter(|it| it.starts_with("PriorityLevelName") || it.starts_with("narrow,"));
        rows.map(|it| it.split(',').map(|it| it.trim().to_owned()).collect()).collect()
    };
    let levels = table("dump_priority_levels").await;
    assert_eq!(levels[0].len(), 10);
    assert_eq!(levels[1], ["narrow", "1", "false", "false", "5", "1", "1", "1", "0", "0"]);
    let queues = table("dump_queues").await;
    assert_eq!(queues[1][..5], ["narrow", "0", "5", "1", "1"].map(str::to_owned));
    assert!(queues[1][5].ends_with("ss") && queues[1][6..8] == ["5", "5"] && queues[1][8] == "0.01500000ss");
    let requests = table("dump_requests").await;
    assert_eq!((requests.len(), requests[0].len()), (7, 10));
    assert_eq!(requests[5][..5], ["narrow", "janes", "0", "4", "jane"].map(str::to_owned));
    assert_eq!(requests[5][9], "0001-01-01T00:00:00Z", "it has not begun");
    let began = "2027-01-15T08:00:00.000000Z";
    assert_eq!(
        requests[6][..],
        ["narrow", "janes", "0", "-1", "jane", began, "1", "0", "0s", began].map(str::to_owned)
    );
    let detailed = table("dump_requests?includeRequestDetails=1").await;
    assert_eq!(detailed[1][10..], ["jane", "create", MAPS, "default", "", "v1", "configmaps", ""].map(str::to_owned));
    assert_eq!(detailed[6][10..12], ["jane", "create"].map(str::to_owned));
    let all = text(server, "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1").await;
    let own =
        all.lines().find(|it| it.starts_with("exempt,") && it.contains("/dump_requests,")).expect("who looks, too");
    let own: Vec<&str> = own.split(',').map(str::trim).collect();
    assert_eq!(own[..4], ["exempt", "exempt", "-1", "-1"]);
    let path = "/debug/api_priority_and_fairness/dump_requests";
    let bob = Identity::new("bob", &["system:authenticated"]);
    assert_eq!(ask(server, bob, Method::GET, path, &Value::Null).await.0, 403, "it is for administrators");
}

/// The value of a metric, by its name and labels as they are written.
fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|it| it.strip_prefix(&format!("apiserver_flowcontrol_{name} ")));
    line.unwrap_or_else(|| panic!("{name}")).parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn each_nanosecond_tells_how_full_a_level_was() {
    let server = few_seats().await;
    narrow(&server, json!({ "type": "Queue", "queuing": { "queues": 1, "handSize": 1, "queueLengthLimit": 5 } })).await;
    let seat = held(&server).await;
    let waiting = {
        let server = server.clone();
        tokio::spawn(async move { write(&server, "late").await.0 })
    };
    until(&server, "current_inqueue_requests", 1).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    let metrics = text(&server, "/metrics").await;
    let of = |name: &str| value(&metrics, name);
    // The only seat was taken or free; what is counted is the nanoseconds of either.
    let seats =
        |what: &str| format!("priority_level_seat_utilization_{what}{{phase=\"executing\",priority_level=\"narrow\"");
    let (sum, count) = (of(&format!("{}}}", seats("sum"))), of(&format!("{}}}", seats("count"))));
    assert!(sum >= 5e9 && count >= sum, "{sum} of {count}");
    assert!((count - of(&format!("{},le=\"0.99\"}}", seats("bucket"))) - sum).abs() < 1e3, "{sum} of {count}");
    // One of five waits; two could be answered, where there is one seat.
    let waits =
        |what: &str| format!("priority_level_request_utilization_{what}{{phase=\"waiting\",priority_level=\"narrow\"");
    let waited = of(&format!("{}}}", waits("count"))) - of(&format!("{},le=\"0.1\"}}", waits("bucket")));
    let sum = of(&format!("{}}}", waits("sum")));
    assert!(waited >= 5e9 && (sum - 0.2 * waited).abs() < 1e3, "{sum} in {waited}");
    let demand = |le: &str| of(&format!("demand_seats_bucket{{priority_level=\"narrow\",le=\"{le}\"}}"));
    assert!(demand("2") - demand("1.7") >= 5e9);
    for phase in ["waiting", "executing"] {
        let name =
            |what: &str| format!("read_vs_write_current_requests_{what}{{phase=\"{phase}\",request_kind=\"mutating\"");
        let idle = of(&format!("{},le=\"0\"}}", name("bucket")));
        assert!(of(&format!("{}}}", name("count"))) - idle >= 5e9, "{phase}");
    }
    assert!(of("dispatch_r{priority_level=\"narrow\"}") <= of("current_r{priority_level=\"narrow\"}"));
    drop(seat);
    assert_eq!(waiting.await.expect("no panic"), 201);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused() {
    let server = few_seats().await;
    narrow(&server, json!({ "type": "Queue", "queuing": { "queues": 1, "handSize": 1, "queueLengthLimit": 5 } })).await;
    let _seat = held(&server).await;
    assert_eq!(write(&server, "late").await.0, 429);
    let refused = "rejected_requests_total{flow_schema=\"janes\",priority_level=\"narrow\",reason=\"time-out\"} 1";
    assert!(text(&server, "/metrics").await.contains(refused));
    server.stop().await;
}

async fn text(server: &Server, path: &str) -> String {
    let request = Request::builder().uri(path).body(Bytes::new()).expect("a request");
    let body = server.call(admin(), request).await.into_body().collect().await.expect("a whole body").to_bytes();
    String::from_utf8(body.to_vec()).expect("text")
}

#[tokio::test]
async fn the_watchers_of_what_is_written_are_counted() {
    let server = few_seats().await;
    narrow(&server, json!({ "type": "Reject" })).await;
    let counted = async |name: &str| {
        assert_eq!(write(&server, name).await.0, 201);
        let labels = "{flow_schema=\"janes\",priority_level=\"narrow\"}";
        value(&text(&server, "/metrics").await, &format!("watch_count_samples_sum{labels}"))
    };
    let before = counted("unwatched").await;
    let request = Request::builder().uri(format!("{MAPS}?watch=true")).body(Bytes::new()).expect("a request");
    let watch = server.call(admin(), request).await;
    assert_eq!(watch.status(), 200);
    // What watched the first write watches the second one, too.
    assert!((counted("watched").await - (before + before + 1.0)).abs() < f64::EPSILON);
    drop(watch);
    server.stop().await;
}

/// A body that does not come holds up nobody but who sends it.
#[tokio::test]
async fn who_sends_slowly_holds_no_seat() {
    let server = few_seats().await;
    narrow(&server, json!({ "type": "Reject" })).await;
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, BoxError>>()).boxed_unsync();
            let request = Request::builder().method(Method::POST).uri(MAPS).header("content-type", "application/json");
            let (server, request) = (server.clone(), request.body(body).expect("a request"));
            tokio::spawn(async move { server.answer(request, None, Some(jane())).await })
        })
        .collect();
    for n in 0..5 {
        tokio::task::yield_now().await;
        assert_eq!(write(&server, &format!("m{n}")).await.0, 201);
    }
    slow.iter().for_each(tokio::task::JoinHandle::abort);
    server.stop().await;
}

/// A watch begins with as much work as a list, and then takes nothing from others.
#[tokio::test]
async fn a_watch_is_as_wide_as_its_list_until_it_has_begun() {
    let server = Server::start(server::config()).await.expect("it starts");
    with_shares(&server, 10, json!({ "type": "Reject" })).await;
    for n in 0..101 {
        must(&server, Method::POST, MAPS, &json!({ "metadata": { "name": format!("m{n}") } })).await;
    }
    let newest = must(&server, Method::GET, &format!("{MAPS}?limit=1"), &Value::Null).await;
    let newest = newest["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
    let begun = async |query: &str| {
        let request = Request::get(format!("{MAPS}?{query}")).body(Bytes::new()).expect("a request");
        server.call(jane(), request).await
    };
    let width = async |query: &str| {
        let sum = "work_estimated_seats_sum{flow_schema=\"janes\",priority_level=\"narrow\"}";
        let of = async || {
            text(&server, "/metrics").await.contains(sum).then_some(value(&text(&server, "/metrics").await, sum))
        };
        let before = of().await.unwrap_or_default();
        let answer = begun(query).await;
        assert_eq!(answer.status(), 200, "{query}");
        of().await.unwrap_or_default() - before
    };
    let since = format!("watch&resourceVersion={newest}");
    for (query, expected) in [("watch", 2.0), ("watch&resourceVersion=0", 2.0), (&*since, 1.0), ("limit=1", 1.0)] {
        assert_eq!(width(query).await, expected, "{query}");
    }

    let all = async || {
        let mut held = Vec::new();
        while let Ok(seat) = seat(&server).await {
            held.push(seat);
        }
        held
    };
    let mut held = all().await;
    let n_seats = held.len();
    assert!(n_seats > 2, "{n_seats}");
    held.pop();
    for (query, code) in [("limit=1", 200), (&*since, 200), ("watch", 429), ("watch&resourceVersion=0", 429)] {
        assert_eq!(begun(query).await.status(), code, "{query}, with one seat free");
    }
    drop(held);
    let watches = [begun("watch").await, begun(&since).await];
    assert!(watches.iter().all(|it| it.status() == 200));
    assert_eq!(all().await.len(), n_seats, "who watches takes none");
    drop(watches);
    server.stop().await;
}
