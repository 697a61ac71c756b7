//! What a leader writes is committed while the lease is as it wrote it last, and else refused.

use std::time::Duration;

use bytes::Bytes;
use corten_access::Identity;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::server;
use crate::{Fence, Server};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn ask(server: &Server, method: Method, path: &str, body: &Value, fence: Option<&Fence>) -> (u16, Value) {
    let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let mut request = Request::builder().method(method).uri(path).header("Content-Type", content_type);
    if let Some(fence) = fence {
        request = request.extension(fence.clone());
    }
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let answer = server.call(who, request.body(Bytes::from(body.to_string())).expect("a request")).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a whole answer").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

fn revision(lease: &Value) -> u64 {
    lease["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).expect("a revision")
}

/// Renewed: its revision is another.
async fn renewed(server: &Server, holder: &str) -> u64 {
    let path = format!("{LEASES}/lead");
    let spec = json!({"spec": {"holderIdentity": holder, "renewTime": format!("2026-01-01T00:00:{:02}.000000Z", holder.len())}});
    let (code, lease) = ask(server, Method::PATCH, &path, &spec, None).await;
    assert_eq!(code, 200, "{lease}");
    revision(&lease)
}

#[tokio::test(start_paused = true)]
async fn who_leads_no_more_writes_nothing() {
    let server = server::started().await;
    let lease = json!({"metadata": {"name": "lead"}, "spec": {"holderIdentity": "one"}});
    let (code, lease) = ask(&server, Method::POST, LEASES, &lease, None).await;
    assert_eq!(code, 201);
    let told = watch::Sender::new(revision(&lease));
    let fence = Fence::new("lead", told.subscribe());
    let map = |name: &str| json!({"metadata": {"name": name}});
    let create = async |name: &str| ask(&server, Method::POST, MAPS, &map(name), Some(&fence)).await.0;
    assert_eq!(create("a").await, 201);
    assert_eq!(create("a").await, 409, "what is there already is a conflict of its own");

    // Renewed amid a write: it is told of, and the write goes on.
    let next = renewed(&server, "one, again").await;
    let (created, ()) = tokio::join!(create("b"), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        told.send_replace(next);
    });
    assert_eq!(created, 201);

    // Another holds it, and this one has not noticed: nothing is created, changed or deleted.
    renewed(&server, "two").await;
    assert_eq!(create("c").await, 503);
    let patch = json!({"data": {"k": "v"}});
    for (method, body) in [(Method::PATCH, &patch), (Method::DELETE, &json!({}))] {
        let (code, answer) = ask(&server, method.clone(), &format!("{MAPS}/a"), body, Some(&fence)).await;
        assert_eq!(code, 503, "{method}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|it| it.contains("leads no more")), "{answer}");
    }
    told.send_replace(0);
    assert_eq!(create("d").await, 503);
    let (_, maps) = ask(&server, Method::GET, MAPS, &Value::Null, Some(&fence)).await;
    let found: Vec<_> = maps["items"].as_array().into_iter().flatten().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(found, ["a", "b"]);
    server.stop().await;
}
