use std::{net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use http::{HeaderMap, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    access,
    hook::{Hook, WebhookAnswer, status},
};
use crate::{
    Access, AuthorizationSettings,
    credential::Attempted,
    identity::{Peer, user_info},
    tokens::{ISSUER, TokenWebhookSettings},
};

async fn over(hook: &Hook, version: &str) -> std::sync::Arc<Access> {
    let settings = TokenWebhookSettings::load(&hook.kubeconfig, version, Duration::from_secs(120));
    access(AuthorizationSettings::default(), Some(settings.expect("a good kubeconfig"))).await
}

async fn who(access: &Access, token: &str) -> Result<Value, Attempted> {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"));
    access.identify(None, &headers, "/version").await.map(|it| user_info(&it.identity))
}

/// As [`who`], from an address.
async fn from(access: &Access, address: &str, token: &str) -> Result<Value, Attempted> {
    let address = SocketAddr::new(address.parse().expect("an address"), 1);
    let peer = Peer { address, certificates: Vec::new().into() };
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"));
    access.identify(Some(&peer), &headers, "/version").await.map(|it| user_info(&it.identity))
}

async fn reviewed(access: &Access, token: &str, audiences: &[&str]) -> Value {
    access.review_token(&json!({ "token": token, "audiences": audiences })).await.expect("there is a token")
}

fn by_token(review: &Value) -> WebhookAnswer {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    status(&match token {
        "good" => json!({ "authenticated": true, "user": {
            "username": "ann", "uid": "7", "groups": ["ops"], "extra": { "k": ["v"] },
        } }),
        "for-vault" => json!({ "authenticated": true, "user": { "username": "ann" }, "audiences": ["vault"] }),
        "nameless" => json!({ "authenticated": true, "user": {} }),
        "refused" => json!({ "authenticated": false, "error": "it was taken back" }),
        _ => json!({ "authenticated": false }),
    })
}

#[tokio::test]
async fn tokens_that_nobody_here_knows_are_asked_about() {
    let hook = Hook::start(by_token).await;
    let access = over(&hook, "v1").await;
    let ann =
        json!({ "username": "ann", "uid": "7", "groups": ["ops", "system:authenticated"], "extra": { "k": ["v"] } });
    assert_eq!(who(&access, "good").await.as_ref(), Ok(&ann));
    assert_eq!(
        (&hook.last()["apiVersion"], &hook.last()["spec"]),
        (&json!("authentication.k8s.io/v1"), &json!({ "token": "good", "audiences": [ISSUER] }))
    );
    assert_eq!(hook.last()["metadata"], json!({}), "a review has no time of creation");
    assert!(who(&access, "s3cret").await.is_ok());
    assert_eq!(hook.n_asked(), 1, "who is known here is not asked about");
    for token in ["bad", "nameless", "refused", "for-vault"] {
        assert!(who(&access, token).await.is_err(), "{token}");
        assert!(who(&access, token).await.is_err(), "{token}");
    }
    // `cachedTokenAuthenticator`: a no is kept, an error is not.
    assert_eq!(hook.n_asked(), 7);
    assert_eq!(who(&access, "good").await.as_ref(), Ok(&ann));
    assert_eq!(hook.n_asked(), 7);
    assert_eq!(reviewed(&access, "refused", &[]).await["error"], "[invalid bearer token, it was taken back]");
}

#[tokio::test]
async fn an_answer_is_for_its_token_and_its_audiences_alone() {
    let hook = Hook::start(by_token).await;
    let access = over(&hook, "v1beta1").await;
    assert!(who(&access, "good").await.is_ok());
    for token in ["goo", "good2", "good\0", "GOOD"] {
        let found = reviewed(&access, token, &[]).await;
        assert_eq!(found["authenticated"], Value::Null, "{token}");
    }
    assert_eq!(reviewed(&access, "for-vault", &["vault"]).await["audiences"], json!(["vault"]));
    assert_eq!(reviewed(&access, "for-vault", &["vault", "other"]).await["audiences"], json!(["vault"]));
    assert!(who(&access, "for-vault").await.is_err(), "what is for others lets nobody in here");
    assert_eq!(reviewed(&access, "for-vault", &["other"]).await["authenticated"], Value::Null);
    assert_eq!(reviewed(&access, "good", &["vault"]).await["authenticated"], Value::Null, "nor what is for us there");
    assert_eq!(hook.last()["apiVersion"], "authentication.k8s.io/v1beta1");
}

#[tokio::test]
async fn many_with_one_token_ask_once_and_answers_end() {
    let hook = Hook::start(by_token).await;
    let access = over(&hook, "v1").await;
    let found = join_all((0..50).map(|_| who(&access, "good"))).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(hook.n_asked(), 1);
    hook.says(|_| status(&json!({ "authenticated": false })));
    assert!(who(&access, "good").await.is_ok());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(121)).await;
    tokio::time::resume();
    assert!(who(&access, "good").await.is_err(), "what was taken back ends with the answer's time");
}

#[tokio::test]
async fn a_huge_answer_is_kept_as_any_and_a_flood_is_none() {
    let hook = Hook::start(|_| {
        let groups: Vec<String> = (0..5000).map(|it| format!("group-{it}")).collect();
        status(&json!({ "authenticated": true, "user": { "username": "ann", "groups": groups } }))
    })
    .await;
    let access = over(&hook, "v1").await;
    assert!(who(&access, "good").await.is_ok());
    assert!(who(&access, "good").await.is_ok());
    assert_eq!(hook.n_asked(), 1);
    hook.says(|_| Some(("200 OK", " ".repeat(4 << 20))));
    let begun = Instant::now();
    assert!(who(&access, "better").await.is_err());
    hook.says(|_| Some(("302 Found\r\nLocation: https://localhost:1/", String::new())));
    assert!(who(&access, "better").await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(8));
}

#[tokio::test]
async fn one_address_with_many_unknown_tokens_keeps_no_other_waiting() {
    let hook = Hook::start(|review| match review["spec"]["token"].as_str() {
        Some("good") => by_token(review),
        _ => None,
    })
    .await;
    let access = over(&hook, "v1").await;
    let flood: Vec<_> = (0..300)
        .map(|n| {
            let access = access.clone();
            tokio::spawn(async move { from(&access, "10.0.0.1", &format!("random-{n}")).await })
        })
        .collect();
    while hook.n_asked() < 16 {
        tokio::task::yield_now().await;
    }
    let begun = Instant::now();
    let found = from(&access, "10.0.0.2", "good").await;
    assert!(found.is_ok() && begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(hook.n_asked() <= 17, "{} are asked about at once", hook.n_asked());
    // Of the flood too many wait already: some of it is refused before anybody is asked.
    let refused = flood.into_iter().filter(tokio::task::JoinHandle::is_finished).count();
    assert!(refused > 0);
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_named_until_it_does() {
    let hook = Hook::start(|_| Some(("403 Forbidden", "go away".into()))).await;
    let access = over(&hook, "v1").await;
    assert_eq!(access.unanswering(), []);
    assert!(who(&access, "good").await.is_err());
    let unanswering = access.unanswering();
    assert_eq!(unanswering[0].who, "the token webhook");
    assert!(unanswering[0].reason.contains("go away"), "{unanswering:?}");
    hook.says(by_token);
    assert!(who(&access, "good").await.is_ok());
    assert_eq!(access.unanswering(), []);
}
