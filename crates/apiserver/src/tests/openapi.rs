//! What the documents promise is there: every path that can be read is asked for.

use bytes::Bytes;
use corten_access::Identity;
use http_body_util::BodyExt;
use serde_json::Value;

use super::server;
use crate::Server;

/// The code, and the answer if it is no endless one.
async fn get(server: &Server, path: &str) -> (u16, String) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = http::Request::builder().uri(path).body(Bytes::new()).expect("a request");
    let response = server.call(who, request).await;
    let code = response.status().as_u16();
    let text = match response.into_body().collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(error) => error.to_string(),
    };
    (code, text)
}

#[tokio::test(start_paused = true)]
async fn every_path_that_can_be_read_is_served() {
    let server = server::started().await;
    let (mut gaps, mut n_asked) = (Vec::new(), 0);
    let index: Value = serde_json::from_str(&get(&server, "/openapi/v3").await.1).expect("JSON");
    for url in index["paths"].as_object().expect("an object").values() {
        let url = url["serverRelativeURL"].as_str().expect("an address");
        let document: Value = serde_json::from_str(&get(&server, url).await.1).expect("JSON");
        for (path, item) in document["paths"].as_object().expect("an object") {
            let Some(action) = item.get("get").map(|it| it["x-kubernetes-action"].as_str().unwrap_or_default()) else {
                continue;
            };
            let path = path.replace("{namespace}", "default").replace("{name}", "nothing");
            let (code, text) = match action {
                "connect" => continue,
                "watch" | "watchlist" => get(&server, &format!("{path}?timeoutSeconds=1&resourceVersion=0")).await,
                _ => get(&server, &path).await,
            };
            n_asked += 1;
            // There is no such object; but there is such a resource, and a Pod without a node has no log.
            let is_missing_object =
                matches!(code, 404 | 503) && reason(&text) != "the server could not find the requested resource";
            let is_served = if action == "get" { is_missing_object || code == 200 } else { code == 200 };
            if !is_served {
                gaps.push(format!("{action} {path}: {code} {text}"));
            }
        }
    }
    server.stop().await;
    assert!(n_asked > 100, "{n_asked} paths");
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

fn reason(text: &str) -> String {
    let status: Value = serde_json::from_str(text).unwrap_or_default();
    status["message"].as_str().unwrap_or_default().to_owned()
}
