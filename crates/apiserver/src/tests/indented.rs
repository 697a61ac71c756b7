//! Who gets indented JSON, of what: the same document as everybody else's.

use bytes::Bytes;
use corten_access::Identity;
use corten_cacher::body::whole;
use http::{Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn ask(server: &Server, who: &Identity, method: &str, path: &str, agent: &str, body: &Value) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(path).header(header::USER_AGENT, agent);
    let encoding = if path.ends_with("pretty=0") { "identity" } else { "gzip" };
    let request = request.header(header::ACCEPT_ENCODING, encoding).header(header::CONTENT_TYPE, "application/json");
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let response = server.answer(request.body(whole(body)).expect("a request"), None, Some(who.clone())).await;
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.expect("a whole body").to_bytes())
}

#[tokio::test(start_paused = true)]
async fn people_get_their_answers_indented() {
    let server = server::started().await;
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let jane = Identity::new("jane", &["system:authenticated"]);
    // Enough for a list that is sent in pieces.
    for n in 0..20 {
        let map = json!({ "metadata": { "name": format!("m{n}") }, "data": { "a": "{[,:\"\\".repeat(5_000) } });
        assert_eq!(ask(&server, &admin, "POST", MAPS, "kubectl/v1.37.0", &map).await.0, 201);
    }
    let one = format!("{MAPS}/m1");
    let none = format!("{MAPS}/none");
    for (who, path, code) in [
        (&admin, &*one, 200),
        (&admin, MAPS, 200),
        (&admin, "/apis", 200),
        (&admin, "/apis/apps/v1", 200),
        (&admin, &none, 404),
        (&jane, &one, 403),
        (&admin, "/nowhere", 404),
    ] {
        let (asked, plain) = ask(&server, who, "GET", &format!("{path}?pretty=0"), "curl/8.0", &Value::Null).await;
        assert_eq!(asked, code, "{path}");
        let value: Value = serde_json::from_slice(&plain).unwrap_or_else(|it| panic!("{path}: {it}"));
        let wanted = serde_json::to_string_pretty(&value).expect("JSON");
        let by_word = format!("{path}?pretty=true");
        for (path, agent) in
            [(path, "curl/7.88.1"), (path, "Wget/1.21"), (path, "Mozilla/5.0 (X11)"), (&by_word, "kubectl/v1.37.0")]
        {
            let (asked, text) = ask(&server, who, "GET", path, agent, &Value::Null).await;
            assert!(asked == code && text == wanted, "{path} {agent}: {asked} {:.200}", String::from_utf8_lossy(&text));
        }
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_of_a_watch_are_a_line_each_and_other_documents_are_as_they_are() {
    let server = server::started().await;
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let map = json!({ "metadata": { "name": "a" } });
    assert_eq!(ask(&server, &admin, "POST", MAPS, "curl/8.0", &map).await.0, 201);
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=1&pretty=true");
    let (_, events) = ask(&server, &admin, "GET", &watch, "curl/8.0", &Value::Null).await;
    let events = String::from_utf8(events.to_vec()).expect("text");
    assert!(events.lines().all(|it| serde_json::from_str::<Value>(it).is_ok()) && !events.is_empty(), "{events}");
    for path in ["/openapi/v3", "/.well-known/openid-configuration"] {
        let (code, text) = ask(&server, &admin, "GET", path, "curl/8.0", &Value::Null).await;
        assert!(code == 200 && !text.contains(&b'\n'), "{path}: {code}");
    }
    server.stop().await;
}
