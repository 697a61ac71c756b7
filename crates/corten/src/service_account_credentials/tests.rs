//! When accounts are made and tokens asked for.

use corten_client::Body;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::Value;

use super::*;

/// A server that knows one account, and counts its tokens.
#[derive(Default)]
struct Server {
    has_account: bool,
    tokens: u32,
    /// Tokens before this one are good no more.
    first_good: u32,
    is_out_of_tokens: bool,
    asked: Vec<String>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Server>>);

impl Server {
    fn answer(&mut self, method: &str, path: &str, bearer: &str) -> (u16, Value) {
        self.asked.push(format!("{method} {path} {bearer}").trim_end().to_owned());
        match (method, path.rsplit('/').next().unwrap_or_default()) {
            ("POST", "token") if !self.has_account => (404, status(404)),
            ("POST", "token") if self.is_out_of_tokens => (500, status(500)),
            ("POST", "token") => {
                self.tokens += 1;
                let token = format!("t{}", self.tokens);
                (201, json!({"status": {"token": token, "expirationTimestamp": "1970-01-01T01:00:00Z"}}))
            }
            ("POST", "serviceaccounts") => {
                self.has_account = true;
                (201, json!({}))
            }
            _ => {
                let number = bearer.strip_prefix("Bearer t").and_then(|it| it.parse().ok()).unwrap_or(0);
                if number >= self.first_good.max(1) { (200, json!({})) } else { (401, status(401)) }
            }
        }
    }
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "code": code, "reason": if code == 404 { "NotFound" } else { "No" }, "message": "no"})
}

impl Transport for Shared {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let bearer = request.headers().get(header::AUTHORIZATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let (code, answer) = self.0.lock().answer(request.method().as_str(), request.uri().path(), bearer);
        let body = Full::new(Bytes::from(answer.to_string())).map_err(|never| match never {}).boxed_unsync();
        let answer = Response::builder().status(code).body(body).map_err(|it| TransportError(it.to_string()));
        Box::pin(async move { answer })
    }
}

fn client(server: &Shared) -> Client {
    let transport = Arc::new(server.clone());
    let clock: Clock = Arc::new(|| Time::from_unix_seconds(0));
    AccountClients::new(Client::new(transport.clone()), transport, clock).client("job-controller")
}

#[tokio::test(start_paused = true)]
async fn an_account_is_made_and_its_token_renewed() {
    let server = Shared::default();
    let client = client(&server);
    for _ in 0..2 {
        client.get_path("/api").await.expect("it is let in");
    }
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    let token = format!("POST {accounts}/job-controller/token");
    let first = [token.clone(), format!("POST {accounts}"), token.clone()];
    let asked = std::mem::take(&mut server.0.lock().asked);
    assert_eq!(asked, [&first[..], &["GET /api Bearer t1".to_owned(), "GET /api Bearer t1".to_owned()]].concat());

    // An hour, less a fifth.
    tokio::time::advance(Duration::from_secs(2881)).await;
    server.0.lock().is_out_of_tokens = true;
    client.get_path("/api").await.expect("the old one is good yet");
    server.0.lock().is_out_of_tokens = false;
    client.get_path("/api").await.expect("another is not asked for at each request");
    tokio::time::advance(RENEWED_AFTER_MIN).await;
    client.get_path("/api").await.expect("it is let in");
    let asked = std::mem::take(&mut server.0.lock().asked);
    let with = |token: &str| format!("GET /api Bearer {token}");
    assert_eq!(asked, [token.clone(), with("t1"), with("t1"), token, with("t2")]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_is_replaced_at_once() {
    let server = Shared::default();
    let client = client(&server);
    client.get_path("/api").await.expect("it is let in");
    server.0.lock().first_good = 2;
    client.get_path("/api").await.expect("with another token");
    // Where none is good that is the answer, and no loop.
    server.0.lock().first_good = 9;
    let error = client.get_path("/api").await.expect_err("refused");
    assert_eq!((error.status().map(|it| it.code), server.0.lock().tokens), (Some(401), 3));
}
