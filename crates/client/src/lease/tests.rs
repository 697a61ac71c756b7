use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;

use super::*;
use crate::{Body, BoxFuture, Transport, TransportError};

/// A server that knows one lease, with real conflicts.
#[derive(Default)]
struct OneLease {
    stored: Mutex<Option<Value>>,
    n_requests: Mutex<u32>,
    /// It answers so late.
    slowness: Duration,
}

impl OneLease {
    fn answer(&self, method: &str, body: &[u8]) -> (u16, Value) {
        *self.n_requests.lock() += 1;
        let mut stored = self.stored.lock();
        let version = stored
            .as_ref()
            .map_or(0, |it| it["metadata"]["resourceVersion"].as_str().map_or(0, |it| it.parse().unwrap_or(0)));
        let mut put = |mut object: Value| {
            object["metadata"]["resourceVersion"] = json!((version + 1_u64).to_string());
            *stored = Some(object.clone());
            (200, object)
        };
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        match (method, version) {
            ("GET" | "PUT", 0) => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})),
            ("GET", _) => (200, stored.clone().unwrap_or_default()),
            ("POST", 0) => put(sent),
            ("POST", _) => (409, json!({"kind": "Status", "code": 409, "reason": "AlreadyExists"})),
            _ if sent["metadata"]["resourceVersion"] == json!(version.to_string()) => put(sent),
            _ => (409, json!({"kind": "Status", "code": 409, "reason": "Conflict"})),
        }
    }
}

impl Transport for OneLease {
    fn send(&self, request: Request<bytes::Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let (code, body) = self.answer(request.method().as_str(), request.body());
        let body = Full::new(bytes::Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
        Box::pin(async move {
            if !self.slowness.is_zero() {
                tokio::time::sleep(self.slowness).await;
            }
            Ok(Response::builder().status(code).body(body).expect("valid"))
        })
    }
}

fn at(seconds: i64) -> Time {
    Time::from_unix_seconds(seconds)
}

#[tokio::test(start_paused = true)]
async fn one_of_two_holds_it_until_it_runs_out() {
    let server = Arc::new(OneLease::default());
    let client = Client::new(server.clone());
    let lease =
        |holder: &str| Lease::new(client.clone(), Key::new("kube-system", "x"), holder, Duration::from_secs(15));
    let (mut a, mut b) = (lease("a"), lease("b"));
    let held_by_a = |until: i64| Holder::Other { holder: "a".into(), until: at(until) };

    assert_eq!(a.renew(at(0)).await.expect("answered"), Holder::Me);
    assert_eq!(b.renew(at(1)).await.expect("answered"), held_by_a(16));
    assert_eq!(a.renew(at(10)).await.expect("answered"), Holder::Me);
    // b sees a's renewal before its own wait is over, and waits anew from then.
    assert_eq!(b.renew(at(15)).await.expect("answered"), held_by_a(16));
    assert_eq!(b.renew(at(16)).await.expect("answered"), held_by_a(30));
    // a is silent: b takes over, and a learns of it.
    assert_eq!(b.renew(at(30)).await.expect("answered"), Holder::Me);
    let other = a.renew(at(31)).await.expect("answered");
    assert!(matches!(other, Holder::Other { holder, .. } if holder == "b"));
    let spec = server.stored.lock().clone().expect("stored")["spec"].clone();
    assert_eq!((&spec["leaseTransitions"], &spec["acquireTime"]), (&json!(1), &json!("1970-01-01T00:00:30.000000Z")));

    b.release().await.expect("answered");
    assert_eq!(a.renew(at(32)).await.expect("answered"), Holder::Me);
}

/// The version that an answer brings may have been written while it was on its way.
#[tokio::test(start_paused = true)]
async fn a_rival_waits_from_when_it_saw_and_not_from_when_it_asked() {
    let server = Arc::new(OneLease { slowness: Duration::from_secs(4), ..OneLease::default() });
    let client = Client::new(server);
    let lease =
        |holder: &str| Lease::new(client.clone(), Key::new("kube-system", "x"), holder, Duration::from_secs(15));
    let (mut a, mut b) = (lease("a"), lease("b"));
    assert_eq!(a.renew(at(0)).await.expect("answered"), Holder::Me);
    let held_by_a = Holder::Other { holder: "a".into(), until: at(20 + 4 + 15) };
    assert_eq!(b.renew(at(20)).await.expect("answered"), held_by_a);
    assert_eq!(b.renew(at(38)).await.expect("answered"), held_by_a);
    assert_eq!(b.renew(at(39)).await.expect("answered"), Holder::Me);
}

#[tokio::test]
async fn a_node_renews_with_one_request() {
    let server = Arc::new(OneLease::default());
    let mut lease = Lease::of_node(Client::new(server.clone()), "n1", "uid", Duration::from_secs(40));
    for second in 0..10 {
        assert_eq!(lease.renew(at(second * 10)).await.expect("answered"), Holder::Me);
    }
    assert_eq!(*server.n_requests.lock(), 11, "one read before the first write");
    let stored = server.stored.lock().clone().expect("stored");
    assert_eq!(stored["metadata"]["ownerReferences"][0]["kind"], "Node");
    assert_eq!(stored["spec"]["renewTime"], "1970-01-01T00:01:30.000000Z");
}
