//! HEAD on the wire: what GET would be told, and no byte of a body, which over HTTP/2 would break the protocol.

use http::{Method, Request};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    frames::{Frames, Heard, get, headers},
    https::{HttpsServer, running},
};

/// Something of every maker of answers: lists, objects, refusals, documents, texts, what does not end.
const PATHS: [&str; 12] = [
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/none",
    "/api/v1/namespaces?watch=true&timeoutSeconds=300",
    "/api/v1/namespaces?limit=x",
    "/api/v1/none",
    "/apis",
    "/openapi/v3",
    "/version",
    "/readyz?verbose",
    "/metrics",
    "/.well-known/openid-configuration",
];

/// Code and length that an answer over HTTP/1.1 tells.
async fn told(running: &HttpsServer, method: Method, path: &str) -> (u16, Option<String>) {
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let response = running.http1(request.body(Full::default()).expect("a request")).await;
    let length = response.headers().get("content-length").map(|it| it.to_str().expect("digits").to_owned());
    (response.status().as_u16(), length)
}

#[tokio::test]
async fn http2_sends_headers_alone() {
    let running = running().await;
    let mut frames = Frames::open(&running).await;
    let mut stream = 1;
    for path in PATHS {
        let mut fields = get(path);
        fields[0].1 = "HEAD";
        frames.send(&headers(stream, true, &fields)).await;
        let (code, _) = told(&running, Method::GET, path).await;
        assert_eq!(frames.hear(stream).await, Heard::Answer(code, String::new()), "{path}");
        stream += 2;
    }
    frames.send(&headers(stream, true, &get("/version"))).await;
    let Heard::Answer(200, body) = frames.hear(stream).await else { panic!("the connection goes on") };
    assert!(body.contains("gitVersion"), "{body}");
    running.end().await;
}

#[tokio::test]
async fn http1_tells_the_length_and_sends_nothing() {
    let running = running().await;
    for path in PATHS {
        let (expected, got) = (told(&running, Method::GET, path).await, told(&running, Method::HEAD, path).await);
        assert_eq!(got.0, expected.0, "{path}");
        // What is made anew each time may have another length.
        if !["/metrics", "/api/v1/namespaces?limit=x"].contains(&path) {
            assert_eq!(got.1, expected.1, "{path}");
        }
        // An answer right behind is where the client looks for it.
        let mut stream = running.connect(b"http/1.1").await;
        let head = format!(
            "HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut all = Vec::new();
        // An end without a farewell is one, too.
        let _ = stream.read_to_end(&mut all).await;
        let text = String::from_utf8(all).expect("text");
        let (_, second) = text.split_once("\r\n\r\n").expect("headers end");
        assert!(second.starts_with("HTTP/1.1 200 OK") && second.ends_with("ok"), "{path}: {text}");
    }
    running.end().await;
}
