//! Which Secrets are made and filled.

use std::sync::Arc;

use super::*;
use crate::fake::{FakeApi, clock};

const NAMESPACE: &str = "/api/v1/namespaces/default";

fn account(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": format!("{name}uid-1-2")}})
}

fn secret(name: &str, account: &str, token: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "default", "annotations": {ACCOUNT: account}});
    json!({"type": TYPE, "metadata": metadata, "data": {"token": STANDARD.encode(token)}})
}

fn token(claims: &Value) -> String {
    format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

async fn run(api: &Arc<FakeApi>, is_one_wanted: bool) {
    let settings = TokenSecretSettings { client: api.client(), ca: "roots".to_owned(), is_one_wanted, clock: clock() };
    let running = tokio::spawn(run_token_secrets(settings, std::future::pending()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    running.abort();
}

fn data(api: &FakeApi, name: &str) -> Option<[String; 2]> {
    let object = api.object(&format!("{NAMESPACE}/secrets/{name}"))?;
    let text = |field: &str| STANDARD.decode(object["data"][field].as_str()?).ok();
    let text = |field: &str| text(field).and_then(|it| String::from_utf8(it).ok()).unwrap_or_default();
    Some([text("token"), text("ca.crt")])
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_an_account_that_is_there_gets_a_token() {
    let api = FakeApi::new();
    let now = clock()().unix_millis() / 1000;
    let good = token(&json!({"iat": now - 10, "exp": now + 90}));
    api.put(&format!("{NAMESPACE}/serviceaccounts/a"), account("a"));
    for (name, of, held) in [
        ("empty", "a", String::new()),
        ("old", "a", token(&json!({"iat": now - 90, "exp": now + 10}))),
        ("good", "a", good.clone()),
        ("beyond-all-numbers", "a", token(&json!({"iat": i64::MIN, "exp": i64::MAX}))),
        ("endless", "a", token(&json!({"iss": "kubernetes/serviceaccount"}))),
        ("of-nobody", "b", String::new()),
    ] {
        api.put(&format!("{NAMESPACE}/secrets/{name}"), secret(name, of, &held));
    }
    run(&api, false).await;
    for name in ["empty", "old", "beyond-all-numbers"] {
        let [token, ca] = data(&api, name).expect("it is there");
        assert!(token.starts_with(&format!("\"a\" [] {LIFETIME_SECONDS} \"{name}\"")), "{token}");
        assert_eq!(ca, "roots");
    }
    assert_eq!(data(&api, "good").map(|it| it[0].clone()), Some(good));
    assert_eq!(data(&api, "of-nobody").map(|it| it[0].clone()), Some(String::new()));
    assert!(api.writes().iter().all(|it| !it.starts_with("POST /api/v1/namespaces/default/secrets")));
}

#[test]
fn the_secret_of_an_account_is_called_the_same_at_each_try() {
    let account: Account = serde_json::from_value(account("a")).expect("an account");
    assert_eq!(own_name(&account), "a-token-auid");
}

#[tokio::test(start_paused = true)]
async fn an_old_server_wants_one_for_each_account() {
    let api = FakeApi::new();
    api.put(&format!("{NAMESPACE}/serviceaccounts/a"), account("a"));
    run(&api, true).await;
    assert!(data(&api, "a-token-auid").is_some(), "{:?}", api.writes());
}
