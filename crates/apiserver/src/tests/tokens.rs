//! What of tokens the HTTP scripts cannot show: time, and what becomes of a kept token.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use bytes::Bytes;
use corten_api::resources::SECRETS;
use corten_meta::{Resource, Time};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use corten_access::{
    Identity,
    tokens::{Accepted, ISSUER, legacy},
};

use super::server as memory;
use crate::{Config, Server};

static SECRETS_AT: Resource = SECRETS;
const START: i64 = 1_800_000_000;

/// A server whose clock is set by the test.
async fn server() -> (Server, Arc<AtomicI64>) {
    let seconds = Arc::new(AtomicI64::new(START));
    let clock = seconds.clone();
    let clock = Arc::new(move || Time::from_unix_seconds(clock.load(Relaxed)));
    let server = Server::start(Config { clock, ..memory::config() }).await.expect("it starts");
    (server, seconds)
}

async fn send(server: &Server, method: &str, path: &str, body: Value) -> Value {
    let admin = Identity::new("admin", &["system:masters"]);
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let response = server.call(admin, request.body(body).expect("a request")).await;
    let code = response.status();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    assert!(code.is_success(), "{method} {path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).expect("JSON")
}

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn authenticate(server: &Server, token: &str) -> Result<Accepted, Vec<String>> {
    let access = server.access();
    access.authenticator().authenticate(&access.look(), token, &[ISSUER])
}

#[tokio::test(start_paused = true)]
async fn tokens_have_their_time() {
    let (server, seconds) = server().await;
    send(&server, "POST", ACCOUNTS, json!({ "metadata": { "name": "bot" } })).await;
    let mut tokens = Vec::new();
    for asked in [600, 3607] {
        let request = json!({ "spec": { "expirationSeconds": asked } });
        let answer = send(&server, "POST", &format!("{ACCOUNTS}/bot/token"), request).await;
        tokens.push(answer["status"]["token"].as_str().expect("a token").to_owned());
    }
    const YEAR: i64 = 365 * 24 * 3600;
    for (token, at, expected, stale) in [
        (0, -61, Err("service account token is not valid yet"), None),
        (0, -60, Ok(()), None),
        (0, 660, Ok(()), None),
        (0, 661, Err("service account token has expired"), None),
        (1, 3607, Ok(()), None),
        (1, 3617, Ok(()), Some("subject: system:serviceaccount:default:bot, seconds after warning threshold: 10")),
        (1, YEAR + 61, Err("service account token has expired"), None),
    ] {
        seconds.store(START + at, Relaxed);
        let found = authenticate(&server, &tokens[token]);
        match (found, expected) {
            (Ok(accepted), Ok(())) => assert_eq!(accepted.stale.as_deref(), stale, "{token} at {at}"),
            (Err(reasons), Err(expected)) => assert_eq!(reasons[1], expected, "{token} at {at}"),
            (found, expected) => panic!("{token} at {at}: {found:?}, not {expected:?}"),
        }
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_a_minute_ago_is_gone() {
    let (server, seconds) = server().await;
    let account = json!({ "metadata": { "name": "bot", "finalizers": ["acme.com/wait"] } });
    send(&server, "POST", ACCOUNTS, account).await;
    let answer = send(&server, "POST", &format!("{ACCOUNTS}/bot/token"), json!({})).await;
    let token = answer["status"]["token"].as_str().expect("a token").to_owned();
    send(&server, "DELETE", &format!("{ACCOUNTS}/bot"), Value::Null).await;
    for (at, expected) in [(60, None), (61, Some("service account default/bot has been deleted"))] {
        seconds.store(START + at, Relaxed);
        let found = authenticate(&server, &token).err().map(|it| it[1].clone());
        assert_eq!(found.as_deref(), expected, "{at}");
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kept_token_ends_with_its_secret() {
    let (server, seconds) = server().await;
    send(&server, "POST", ACCOUNTS, json!({ "metadata": { "name": "bot" } })).await;
    let annotations = json!({ "kubernetes.io/service-account.name": "bot" });
    let secret = json!({ "metadata": { "name": "s", "annotations": annotations }, "type": legacy::TYPE });
    let secrets = "/api/v1/namespaces/default/secrets";
    let mut secret = send(&server, "POST", secrets, secret).await;
    let token = {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let token = STANDARD.decode(secret["data"]["token"].as_str().expect("a token")).expect("base64");
        String::from_utf8(token).expect("text")
    };
    seconds.store(START + 10 * 365 * 24 * 3600, Relaxed);
    let who = authenticate(&server, &token).expect("it has no end").who;
    assert_eq!(who.user, "system:serviceaccount:default:bot");
    assert!(who.extra.is_empty());

    // An update leaves a good token alone, and puts back one that was taken out.
    let before = secret["data"].clone();
    secret["metadata"]["labels"] = json!({ "kubernetes.io/legacy-token-invalid-since": "2026-01-02" });
    let mut again = send(&server, "PUT", &format!("{secrets}/s"), secret).await;
    assert_eq!(again["data"], before);
    let refused = authenticate(&server, &token).expect_err("it is taken back");
    let said = "the token in secret default/s for service account default/bot has been marked invalid. ";
    assert!(refused[1].starts_with(said), "{refused:?}");
    again["metadata"]["labels"] = json!({});
    let mut again = send(&server, "PUT", &format!("{secrets}/s"), again).await;
    assert!(authenticate(&server, &token).is_ok(), "and given again");
    again["data"] = json!({});
    let refilled = send(&server, "PUT", &format!("{secrets}/s"), again).await;
    assert_eq!(refilled["data"]["ca.crt"], before["ca.crt"]);
    let refused = authenticate(&server, &token).expect_err("there is another token now");
    assert_eq!(refused[1], "token does not match server's copy");

    send(&server, "DELETE", &format!("{secrets}/s"), Value::Null).await;
    let refused = authenticate(&server, &token).expect_err("its secret is gone");
    assert_eq!(refused[1], "service account token has been invalidated");
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_says_on_which_day_its_token_was_last_used() {
    let (server, seconds) = server().await;
    send(&server, "POST", ACCOUNTS, json!({ "metadata": { "name": "bot" } })).await;
    let annotations = json!({ "kubernetes.io/service-account.name": "bot" });
    let secret = json!({ "metadata": { "name": "s", "annotations": annotations }, "type": legacy::TYPE });
    let secret = send(&server, "POST", "/api/v1/namespaces/default/secrets", secret).await;
    let token = {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let token = STANDARD.decode(secret["data"]["token"].as_str().expect("a token")).expect("base64");
        String::from_utf8(token).expect("text")
    };
    let ask = async || {
        let request = Request::get("/version").header("authorization", format!("Bearer {token}"));
        let request = request.body(corten_cacher::body::whole("")).expect("a request");
        assert_eq!(server.answer(request, None, None).await.status(), 200);
    };
    let caches = server.caches();
    let stored = || caches.get(&SECRETS_AT).and_then(|it| it.get("default", "s")).expect("it is there");
    for (day, said) in [(0, "2027-01-15"), (1, "2027-01-16")] {
        seconds.store(START + day * 24 * 3600, Relaxed);
        ask().await;
        let is_said = || (stored().parse()["metadata"]["labels"][legacy::LAST_USED] == said).then_some(());
        caches.until(is_said).await;
        let revision = stored().revision();
        for _ in 0..3 {
            ask().await;
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        }
        assert_eq!(stored().revision(), revision, "once a day");
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tokens_of_others_are_worth_nothing() {
    let (ours, _) = server().await;
    let (theirs, _) = server().await;
    for it in [&ours, &theirs] {
        send(it, "POST", ACCOUNTS, json!({ "metadata": { "name": "bot" } })).await;
    }
    let answer = send(&theirs, "POST", &format!("{ACCOUNTS}/bot/token"), json!({})).await;
    let foreign = answer["status"]["token"].as_str().expect("a token");
    let refused = authenticate(&ours, foreign).expect_err("another key signed it");
    assert_eq!(refused[1], "invalid signature");
    // A token that says it needs no signature.
    let claims = foreign.split('.').nth(1).expect("three parts");
    let naked = format!("eyJhbGciOiJub25lIn0.{claims}.");
    assert!(authenticate(&ours, &naked).is_err());
    for nothing in ["", ".", "..", "a.b.c", "abcdef.0123456789abcdef"] {
        assert_eq!(authenticate(&ours, nothing), Err(vec!["invalid bearer token".to_owned()]), "{nothing}");
    }
    ours.stop().await;
    theirs.stop().await;
}
