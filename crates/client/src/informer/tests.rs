use corten_api::resources::{POD_DISRUPTION_BUDGETS, PODS};
use serde_json::{Value, json};

use super::*;
use crate::script::{Answer, Script, event, pod};

fn list(version: u64, next: &str, items: &[Value]) -> Answer {
    Answer::Json(200, json!({"metadata": {"resourceVersion": version.to_string(), "continue": next}, "items": items}))
}

fn expired() -> Value {
    json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
}

/// What the informer says until it has nothing to say for a minute, a word each.
async fn told(informer: &mut Informer) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(60), informer.next()).await {
        words.push(match event {
            InformerEvent::Applied(_, it) => format!("{}@{}", it.key.name, it.version),
            InformerEvent::Deleted(meta) => format!("-{}@{}", meta.name, meta.resource_version),
            InformerEvent::Synced(version) => format!("={version}/{}", informer.n_lists()),
        });
    }
    words
}

/// The requests as `list`, `list TOKEN` or `watch VERSION`.
fn requests(script: &Script) -> Vec<String> {
    let value = |url: &str, name: &str| {
        let (_, after) = url.split_once(&format!("{name}="))?;
        Some(after.split('&').next().unwrap_or_default().to_owned())
    };
    let short = |url: &String| match (value(url, "watch"), value(url, "continue")) {
        (Some(_), _) => format!("watch {}", value(url, "resourceVersion").unwrap_or_default()),
        (None, Some(token)) => format!("list {token}"),
        (None, None) => "list".into(),
    };
    script.asked().iter().map(short).collect()
}

#[tokio::test(start_paused = true)]
async fn tells_everything_there_is_and_then_every_change() {
    let script = Script::new(vec![
        list(10, "next", &[pod("a", "u1", 3)]),
        list(10, "", &[pod("b", "u2", 9)]),
        Answer::Open(vec![
            event("MODIFIED", &pod("b", "u2", 11)),
            event("MODIFIED", &pod("b", "u2", 11)),
            event("ADDED", &pod("c", "u3", 12)),
            event("DELETED", &pod("a", "u1", 13)),
            event("DELETED", &pod("never-seen", "u9", 14)),
            event("BOOKMARK", &json!({"metadata": {"resourceVersion": "20"}})),
        ]),
    ]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    let expected = ["a@3", "b@9", "=10/1", "b@11", "c@12", "-a@13", "=20/1"];
    assert_eq!(told(&mut informer).await, expected);
    assert_eq!(requests(&script), ["list", "list next", "watch 10"]);
    assert_eq!(informer.version(), "20");
}

#[tokio::test(start_paused = true)]
async fn goes_on_where_a_watch_broke_off() {
    let script = Script::new(vec![
        list(10, "", &[pod("a", "u1", 3)]),
        Answer::Closed(vec![event("ADDED", &pod("b", "u2", 11)), b"{\"type\":\"ADDED\",\"obj".to_vec()]),
        Answer::Lost,
        Answer::Json(503, json!({"kind": "Status", "code": 503})),
        Answer::Closed(vec![]),
        Answer::Open(vec![event("ADDED", &pod("b", "u2", 11)), event("ADDED", &pod("c", "u3", 12))]),
    ]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    assert_eq!(told(&mut informer).await, ["a@3", "=10/1", "b@11", "c@12"]);
    assert_eq!(requests(&script), ["list", "watch 10", "watch 11", "watch 11", "watch 11", "watch 11"]);
}

#[tokio::test(start_paused = true)]
async fn lists_again_where_the_version_is_forgotten_and_tells_what_went_meanwhile() {
    for answer in [Answer::Open(vec![event("ERROR", &expired())]), Answer::Json(410, expired())] {
        let script = Script::new(vec![
            list(10, "", &[pod("a", "u1", 3), pod("b", "u2", 4), pod("c", "u3", 5), pod("d", "u4", 6)]),
            answer,
            Answer::Json(500, json!({"kind": "Status", "code": 500})),
            // a is unchanged, b is gone, c is another object of the same name, d changed.
            list(30, "", &[pod("a", "u1", 3), pod("c", "u33", 28), pod("d", "u4", 29)]),
            Answer::Open(vec![event("MODIFIED", &pod("a", "u1", 31))]),
        ]);
        let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
        let expected = ["a@3", "b@4", "c@5", "d@6", "=10/1", "-c@5", "c@28", "d@29", "-b@4", "=30/2", "a@31"];
        assert_eq!(told(&mut informer).await, expected);
        assert_eq!(requests(&script), ["list", "watch 10", "list", "list", "watch 30"]);
    }
}

/// A server that was away for long is asked again as soon as anybody's request gets through.
#[tokio::test(start_paused = true)]
async fn a_return_of_the_server_ends_the_pause() {
    let lost = (0..11).map(|_| Answer::Lost);
    let back = [Answer::Json(200, json!({})), list(10, "", &[pod("a", "u1", 3)])];
    let script = Script::new(lost.chain(back).collect());
    let client = script.client();
    let mut informer = Informer::new(client.clone(), InformerParams::all(PODS));
    let nothing = tokio::time::timeout(Duration::from_secs(52), informer.next()).await;
    assert!(nothing.is_err() && script.asked().len() == 11, "the next try is half a minute later");
    client.get_path("/readyz").await.expect("it answers again");
    let told = tokio::time::timeout(RETURN_SPREAD, informer.next()).await;
    assert!(matches!(told, Ok(InformerEvent::Applied(..))));
}

#[tokio::test(start_paused = true)]
async fn a_version_is_not_claimed_amid_a_list() {
    let script = Script::new(vec![list(10, "next", &[pod("a", "u1", 9)]), list(10, "", &[pod("b", "u2", 3)])]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    let mut versions = Vec::new();
    for _ in 0..3 {
        informer.next().await;
        versions.push((informer.version().to_owned(), informer.n_lists()));
    }
    assert_eq!(versions, [(String::new(), 0), (String::new(), 0), ("10".into(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_asked_for_anew_replaces_the_watch() {
    let script = Script::new(vec![
        list(10, "", &[pod("a", "u1", 3)]),
        Answer::Open(vec![]),
        list(12, "", &[]),
        Answer::Open(vec![]),
    ]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    assert_eq!(told(&mut informer).await, ["a@3", "=10/1"]);
    assert_eq!(informer.relist(), 2);
    assert_eq!(told(&mut informer).await, ["-a@3", "=12/2"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_under_way_is_followed_by_the_one_that_was_asked_for() {
    let script = Script::new(vec![
        list(10, "next", &[pod("a", "u1", 3)]),
        list(10, "", &[]),
        list(12, "", &[pod("b", "u2", 11)]),
        Answer::Open(vec![]),
    ]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    informer.next().await;
    assert_eq!((informer.relist(), informer.relist()), (2, 2));
    assert_eq!(told(&mut informer).await, ["=10/1", "b@11", "-a@3", "=12/2"]);
    assert_eq!(requests(&script), ["list", "list next", "list", "watch 12"]);
}

#[tokio::test(start_paused = true)]
async fn waits_longer_and_longer_for_a_server_that_is_away() {
    let script = Script::new((0..20).map(|_| Answer::Lost).collect());
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    let within = |seconds| Duration::from_secs(seconds);
    assert!(tokio::time::timeout(within(10), informer.next()).await.is_err());
    let early = script.asked().len();
    assert!((7..12).contains(&early), "{early} tries in the first 10 s");
    assert!(tokio::time::timeout(within(120), informer.next()).await.is_err());
    let late = script.asked().len();
    assert!((4..8).contains(&late), "{late} tries in the next 120 s");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_begun_anew_in_the_end() {
    let script = Script::new(vec![
        list(10, "", &[]),
        Answer::Open(vec![]),
        Answer::Open(vec![event("ADDED", &pod("a", "u", 11))]),
    ]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    assert_eq!(told(&mut informer).await, ["=10/1"]);
    let event = tokio::time::timeout(Duration::from_secs(3600), informer.next()).await;
    assert!(matches!(event, Ok(InformerEvent::Applied(_, it)) if it.key.name == "a"));
}

/// As another server's objects are followed.
fn elsewhere() -> InformerParams {
    InformerParams { lists_after_failure: true, objects_max: 2, ..InformerParams::all(PODS) }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_after_a_failure_is_listed() {
    // It has lost what it held, and begins with versions that were there before.
    let script = Script::new(vec![
        list(10, "", &[pod("a", "u1", 3)]),
        Answer::Lost,
        list(2, "", &[pod("b", "u2", 1)]),
        Answer::Open(vec![event("MODIFIED", &pod("b", "u2", 4))]),
    ]);
    let mut informer = Informer::new(script.client(), elsewhere());
    assert_eq!(told(&mut informer).await, ["a@3", "=10/1", "b@1", "-a@3", "=2/2", "b@4"]);
    assert_eq!(requests(&script), ["list", "watch 10", "list", "watch 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_come_to_an_end_is_given_up() {
    let full = |token: &str, names: [&str; 2]| list(10, token, &names.map(|it| pod(it, it, 3)));
    for pages in
        [vec![full("next", ["a", "b"]), full("next", ["c", "d"])], vec![full("x", ["a", "b"]), list(10, "x", &[])]]
    {
        let script = Script::new(pages);
        let mut informer = Informer::new(script.client(), elsewhere());
        let said = told(&mut informer).await;
        assert!(said.iter().all(|it| !it.starts_with('=')), "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_watched_is_listed_again_and_again() {
    let script = Script::new(vec![list(10, "", &[pod("a", "u1", 3)]), list(12, "", &[]), list(12, "", &[])]);
    let params = InformerParams { polled: Some(Duration::from_secs(10)), ..InformerParams::all(PODS) };
    let mut informer = Informer::new(script.client(), params);
    assert_eq!(told(&mut informer).await[..4], ["a@3", "=10/1", "-a@3", "=12/2"]);
    assert_eq!(requests(&script)[..3], ["list", "list", "list"]);
}

fn not_found() -> Answer {
    Answer::Json(
        404,
        json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "the server could not find it"}),
    )
}

/// What a server says of the core group.
fn serves(name: &str) -> Answer {
    Answer::Json(200, json!({"resources": [{"name": name}]}))
}

fn optional() -> InformerParams {
    InformerParams { is_optional: true, ..InformerParams::all(PODS) }
}

#[tokio::test(start_paused = true)]
async fn of_an_optional_resource_that_is_not_served_there_is_none_until_it_is() {
    let found = || list(10, "", &[pod("a", "u1", 3)]);
    let script = Script::new(vec![not_found(), serves("nodes"), not_found(), serves("nodes"), found()]);
    let mut informer = Informer::new(script.client(), optional());
    assert_eq!(told(&mut informer).await[..4], ["=0/1", "=0/2", "a@3", "=10/3"]);

    // Another one must be served.
    let script = Script::new(vec![not_found(), not_found(), found()]);
    let mut informer = Informer::new(script.client(), InformerParams::all(PODS));
    assert_eq!(told(&mut informer).await[..2], ["a@3", "=10/1"]);

    // What answers 404 to everything, or serves it, does not say that there is none.
    for said in [not_found(), serves("pods")] {
        let script = Script::new(vec![not_found(), said, found()]);
        let mut informer = Informer::new(script.client(), optional());
        assert_eq!(told(&mut informer).await[..2], ["a@3", "=10/1"]);
    }

    // One that was served does not end with that.
    let script = Script::new(vec![
        found(),
        Answer::Open(vec![event("ERROR", &expired())]),
        not_found(),
        serves("nodes"),
        not_found(),
        serves("nodes"),
    ]);
    let mut informer = Informer::new(script.client(), optional());
    assert_eq!(told(&mut informer).await, ["a@3", "=10/1"]);
    assert!(informer.failing().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_does_not_name_is_not_served() {
    let groups =
        |version: &str| Answer::Json(200, json!({"groups": [{"name": "policy", "versions": [{"version": version}]}]}));
    let params = || InformerParams { is_optional: true, ..InformerParams::all(POD_DISRUPTION_BUDGETS) };
    let script = Script::new(vec![not_found(), not_found(), groups("v1beta1")]);
    assert_eq!(told(&mut Informer::new(script.client(), params())).await[..1], ["=0/1"]);
    let script = Script::new(vec![not_found(), not_found(), groups("v1"), list(10, "", &[])]);
    assert_eq!(told(&mut Informer::new(script.client(), params())).await[..1], ["=10/1"]);
}

fn refused(code: u16, reason: &str) -> Answer {
    Answer::Json(code, json!({"kind": "Status", "code": code, "reason": reason, "message": reason}))
}

#[tokio::test(start_paused = true)]
async fn who_has_no_right_to_what_is_not_served_is_told_that_there_is_none() {
    let script = Script::new(vec![refused(403, "Forbidden"), serves("nodes")]);
    assert_eq!(told(&mut Informer::new(script.client(), optional())).await[..1], ["=0/1"]);

    let script = Script::new(vec![refused(403, "Forbidden"), serves("pods"), list(10, "", &[pod("a", "u1", 3)])]);
    assert_eq!(told(&mut Informer::new(script.client(), optional())).await[..2], ["a@3", "=10/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_is_a_hint_goes_where_the_server_does_not_know_it() {
    let script = Script::new(vec![refused(400, "BadRequest"), list(10, "", &[pod("a", "u1", 3)])]);
    let field_selector = "spec.type=LoadBalancer".to_owned();
    let params = InformerParams { field_selector, is_field_selector_hint: true, ..InformerParams::all(PODS) };
    assert_eq!(told(&mut Informer::new(script.client(), params)).await[..2], ["a@3", "=10/1"]);
    let selects: Vec<bool> = script.asked().iter().map(|it| it.contains("fieldSelector")).collect();
    assert_eq!(selects[..3], [true, false, false]);
}
