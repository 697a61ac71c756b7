//! What a page of another site may make its reader's browser do: nothing that changes anything.

use corten_kinds::{KINDS, Verb};
use http::Request;
use http_body_util::Full;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    https::{HttpsServer, admin, plain, running, text},
    server,
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EXEC: &str = "/api/v1/namespaces/default/pods/web/exec?command=sh&stdout=true";
const PROXY: &str = "/api/v1/namespaces/default/pods/web/proxy/x";

/// A form of another site is no object, whatever is in it; nor is a plain text, or what has no name.
#[tokio::test]
async fn nothing_is_made_of_a_form() {
    let server = server::started().await;
    let bodies = [
        ("text/plain", r#"{"metadata":{"name":"a"}}"#),
        ("text/plain;charset=UTF-8", r#"{"metadata":{"name":"a"}}"#),
        ("application/x-www-form-urlencoded", "metadata=a"),
        ("multipart/form-data; boundary=x", "--x--\r\n"),
        ("text/plain", ""),
    ];
    for kind in KINDS.iter() {
        let namespace = if kind.resource.namespaced { "default" } else { "" };
        let collection = kind.resource.collection_path(namespace);
        let subresources = kind.subresources.iter().map(|it| format!("{collection}/web/{}", it.as_str()));
        for path in [collection.clone()].into_iter().chain(subresources) {
            for (media_type, body) in bodies {
                let mut request = plain("POST", &path, body);
                request.headers_mut().insert("content-type", media_type.parse().expect("a media type"));
                let code = server.call(admin(), request).await.status().as_u16();
                // What is there without a name is made of a body, and nothing else.
                let is_made = path == collection && kind.verbs.contains(&Verb::Create);
                assert!(
                    if is_made { code == 415 } else { code >= 400 },
                    "POST {path} of {media_type} {body:?}: {code}"
                );
            }
        }
    }
    server.stop().await;
}

/// Who asks: by a certificate that the browser shows by itself, or by a token that the page has.
#[derive(Clone, Copy, Debug)]
enum By {
    Certificate,
    Token,
}

async fn asked(running: &HttpsServer, by: By, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let token = "authorization: Bearer s3cret\r\n";
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = match by {
        By::Certificate => running.connect(b"http/1.1").await,
        By::Token => running.connect_as_stranger(b"http/1.1").await,
    };
    if matches!(by, By::Token) {
        head += token;
    }
    let close = if headers.iter().any(|it| it.0 == "connection") { "" } else { "connection: close\r\n" };
    // The second request ends the connection, if the first has not.
    let last = "GET /version HTTP/1.1\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{head}{close}\r\n{last}").as_bytes()).await.expect("the server reads");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let code = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a code");
    (code, answer)
}

#[tokio::test]
async fn a_certificate_does_not_speak_for_other_sites() {
    const EVIL: (&str, &str) = ("origin", "https://evil.example");
    const OWN: (&str, &str) = ("origin", "https://localhost");
    const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");
    const SOCKET: [(&str, &str); 4] = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let running = running().await;
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=1");
    let socket = |more: &[(&'static str, &'static str)]| [&SOCKET[..], more].concat();
    for (what, by, method, path, headers, is_refused) in [
        ("a shell", By::Certificate, "GET", EXEC, socket(&[EVIL]), true),
        ("a shell, by a browser of today", By::Certificate, "GET", EXEC, socket(&[EVIL, CROSS]), true),
        ("a shell, of a page without a site", By::Certificate, "GET", EXEC, socket(&[("origin", "null")]), true),
        ("a watch", By::Certificate, "GET", &watch, socket(&[EVIL]), true),
        ("a Pod's socket", By::Certificate, "GET", PROXY, socket(&[EVIL]), true),
        ("a form for a Pod", By::Certificate, "POST", PROXY, vec![EVIL], true),
        ("an object without a type", By::Certificate, "POST", MAPS, vec![EVIL], true),
        ("a shell for a page of this server", By::Certificate, "GET", EXEC, socket(&[OWN]), false),
        ("a shell for who is no browser", By::Certificate, "GET", EXEC, socket(&[]), false),
        ("a shell for who was given a token", By::Token, "GET", EXEC, socket(&[EVIL, CROSS]), false),
        ("what a page must ask leave for", By::Certificate, "DELETE", MAPS, vec![EVIL, CROSS], false),
        ("a link", By::Certificate, "GET", MAPS, vec![CROSS], false),
    ] {
        let (code, answer) = asked(&running, by, method, path, &headers).await;
        let says_so = answer.contains("cross-site request with a client certificate: use a token");
        assert_eq!((code == 403 && says_so, says_so), (is_refused, is_refused), "{what}: {answer}");
    }
    running.end().await;
}

/// A page that asks for leave is given none, and no answer may be read by another site.
#[tokio::test]
async fn no_other_site_is_let_in() {
    let running = running().await;
    for (method, path) in [("OPTIONS", MAPS), ("GET", MAPS), ("GET", "/version"), ("POST", MAPS), ("GET", "/none")] {
        let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        let request = request.header("origin", "https://evil.example");
        let request = request.header("access-control-request-method", "DELETE");
        let request = request
            .header("content-type", "application/json")
            .body(Full::new(json!({ "metadata": { "generateName": "a-" } }).to_string().into()));
        let answer = running.http2(request.expect("a request")).await;
        let opened = answer.headers().keys().find(|it| it.as_str().starts_with("access-control-"));
        assert_eq!(opened, None, "{method} {path}");
        assert!(method != "OPTIONS" || answer.status().is_client_error(), "{method} {path}: {}", text(answer).await);
    }
    running.end().await;
}
