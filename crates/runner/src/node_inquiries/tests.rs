use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicUsize, Ordering},
};

use bytes::Bytes;
use corten_client::{Body, BoxFuture, Transport, TransportError};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};

use super::*;

/// Knows one token, and lets jane read statistics.
#[derive(Default)]
struct Cluster(AtomicUsize);

impl Transport for Cluster {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let spec = &asked["spec"];
        let (code, answer) = match request.uri().path() {
            "/apis/authentication.k8s.io/v1/tokenreviews" if spec["token"] == "good" => {
                let user = json!({ "username": "jane", "groups": ["system:authenticated"], "extra": { "a": ["b"] } });
                (201, json!({ "status": { "authenticated": true, "user": user } }))
            }
            "/apis/authentication.k8s.io/v1/tokenreviews" => (201, json!({ "status": { "error": "no" } })),
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                let wanted = &spec["resourceAttributes"];
                let allowed = spec["user"] == "jane" && wanted["subresource"] == "stats" && wanted["name"] == "n1";
                (201, json!({ "status": { "allowed": allowed } }))
            }
            _ => (404, json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 })),
        };
        let body = Full::new(Bytes::from(answer.to_string())).map_err(|never| match never {}).boxed_unsync();
        let response = Response::builder().status(code).body(body).expect("a response");
        Box::pin(async move { Ok(response) })
    }
}

#[tokio::test]
async fn answers_are_kept_for_a_while() {
    let cluster = Arc::new(Cluster::default());
    let now = Arc::new(AtomicI64::new(1000));
    let clock: Clock = {
        let now = now.clone();
        Arc::new(move || Time::from_unix_seconds(now.load(Ordering::SeqCst)))
    };
    let inquiries = NodeInquiries::new(Client::new(cluster.clone()), "n1", clock);
    let asked = || cluster.0.swap(0, Ordering::SeqCst);

    let jane = inquiries.review_token("good".into()).await.expect("an answer").expect("jane");
    assert_eq!((&*jane.user, asked()), ("jane", 1));
    inquiries.review_token("good".into()).await.expect("an answer").expect("jane");
    assert_eq!(asked(), 0);
    now.fetch_add(120, Ordering::SeqCst);
    inquiries.review_token("good".into()).await.expect("an answer").expect("jane");
    assert_eq!(asked(), 1);
    for _ in 0..2 {
        assert_eq!(inquiries.review_token("bad".into()).await.expect("an answer"), None);
    }
    assert_eq!(asked(), 2);

    for (subresource, allowed, length) in [("stats", true, 300), ("proxy", false, 30)] {
        let question = NodeQuestion { caller: jane.clone(), verb: "get", subresource };
        for (later, requests) in [(0, 1), (length - 1, 0), (1, 1)] {
            now.fetch_add(later, Ordering::SeqCst);
            assert_eq!(inquiries.review_access(question.clone()).await.expect("an answer"), allowed);
            assert_eq!(asked(), requests, "{subresource} after {later}");
        }
    }
    assert_eq!(inquiries.pod("default", "web").await.expect("an answer"), None);
}
