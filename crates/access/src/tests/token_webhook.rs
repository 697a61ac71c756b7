use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderMap, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    access,
    hook::{Hook, Said, status},
};
use crate::{
    Access, AuthorizationSettings,
    credential::Attempted,
    identity::user_info,
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

async fn reviewed(access: &Access, token: &str, audiences: &[&str]) -> Value {
    access.review_token(&json!({ "token": token, "audiences": audiences })).await.expect("there is a token")
}

fn by_token(review: &Value) -> Said {
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
    assert!(who(&access, "s3cret").await.is_ok());
    assert_eq!(hook.n_asked(), 1, "who is known here is not asked about");
    for token in ["bad", "nameless", "refused", "for-vault"] {
        assert!(who(&access, token).await.is_err(), "{token}");
        assert!(who(&access, token).await.is_err(), "{token}");
    }
    // As upstream: a no is kept, an error is not.
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
async fn a_huge_answer_is_not_kept_and_a_flood_is_none() {
    let hook = Hook::start(|_| {
        let groups: Vec<String> = (0..5000).map(|it| format!("group-{it}")).collect();
        status(&json!({ "authenticated": true, "user": { "username": "ann", "groups": groups } }))
    })
    .await;
    let access = over(&hook, "v1").await;
    assert!(who(&access, "good").await.is_ok());
    assert!(who(&access, "good").await.is_ok());
    assert_eq!(hook.n_asked(), 2);
    hook.says(|_| Some(("200 OK", " ".repeat(4 << 20))));
    let begun = Instant::now();
    assert!(who(&access, "good").await.is_err());
    hook.says(|_| Some(("302 Found\r\nLocation: https://localhost:1/", String::new())));
    assert!(who(&access, "good").await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(8));
}
