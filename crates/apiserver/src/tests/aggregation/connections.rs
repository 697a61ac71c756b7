//! Connections to another API server: each takes one request after another, or becomes a tunnel; and where one ends it is known what may
//! be asked again.

use futures_util::stream;
use http_body_util::StreamBody;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{super::https, *};

#[tokio::test]
async fn a_connection_takes_one_request_after_another_for_whoever_asks() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, |request| {
        Box::pin(async move {
            match request.uri().query() {
                Some("watch") => http::Response::new(StreamBody::new(stream::pending()).boxed_unsync()),
                Some("close") => coded(200, "connection", "close"),
                _ => echo(request).await,
            }
        })
    })
    .await;
    register(&server, &backend).await;
    // What is never read to its end stays whose it is.
    let watch = Request::builder().uri(format!("{FLUNDERS}?watch")).body(whole("")).expect("a request");
    let watched = server.answer(watch, None, Some(admin())).await;
    assert_eq!(watched.status(), 200);
    for n in 0..20 {
        let who = Identity::new(format!("user-{n}"), &["system:masters", "system:authenticated"]);
        let request = Request::builder().method("POST").uri(FLUNDERS).header("content-type", "application/json");
        let (code, passed_on) = answered(&server, who, request, &json!({ "n": n })).await;
        assert_eq!((code, &passed_on["body"]), (201, &json!(format!("{{\"n\":{n}}}"))));
        assert_eq!(passed_on["headers"]["x-remote-user"], json!([format!("user-{n}")]));
    }
    let n_kept = backend.connections() - 1;
    assert!((1..10).contains(&n_kept), "20 requests one after another took {n_kept} connections");
    for _ in 0..3 {
        // None is asked again: a connection that is about to end was not kept.
        assert_eq!(ask(&server, "POST", &format!("{FLUNDERS}?close"), &json!({})).await.0, 200);
        assert_eq!(ask(&server, "POST", FLUNDERS, &json!({})).await.0, 201);
    }
    drop(watched);
    server.stop().await;
}

/// The other server may end a connection in the very moment in which a request is sent over it.
#[tokio::test]
async fn what_may_be_asked_twice_is_where_a_kept_connection_ends() {
    let server = started().await;
    let n_ended = Arc::new(AtomicUsize::new(0));
    let counted = n_ended.clone();
    let backend = Backend::start(&server.config().pki, move |request| {
        let counted = counted.clone();
        Box::pin(async move {
            let ends = request.uri().query() == Some("end") || request.headers().contains_key("end");
            if ends && counted.fetch_add(1, Relaxed).is_multiple_of(2) {
                // The task that serves the connection ends with it.
                std::panic::resume_unwind(Box::new(()));
            }
            echo(request).await
        })
    })
    .await;
    register(&server, &backend).await;
    let end = format!("{FLUNDERS}?end");
    let kept = async || {
        // Until the next one goes over a connection that is there.
        let goes_over_it = async {
            loop {
                let before = backend.connections();
                assert_eq!(ask(&server, "GET", FLUNDERS, &Value::Null).await.0, 201);
                if backend.connections() == before {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, goes_over_it).await.expect("a connection is kept");
    };
    kept().await;
    assert_eq!(ask(&server, "GET", &end, &Value::Null).await.0, 201);
    assert_eq!(n_ended.load(Relaxed), 2);
    // One that writes is not: it may have been done.
    kept().await;
    let (code, body) = ask(&server, "POST", &end, &json!({})).await;
    let is_told = body.as_str().is_some_and(|it| it.starts_with("error trying to reach service"));
    assert!(code == 503 && is_told && n_ended.load(Relaxed) == 3, "{code} {body}");
    server.stop().await;
}

#[tokio::test]
async fn what_switches_protocols_is_a_tunnel() {
    let mut config = server::config();
    config.webhook_dial = Some(to_this_machine());
    let running = https::serving(config).await;
    let server = running.server.clone();
    let backend = Backend::start(&server.config().pki, |mut request| {
        Box::pin(async move {
            if request.uri().query() == Some("other") {
                return coded(101, "upgrade", "h2c");
            }
            let upgrading = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut io = TokioIo::new(upgrading.await.expect("an upgrade"));
                let mut word = [0; 4];
                io.read_exact(&mut word).await.expect("a word");
                io.write_all(&word).await.expect("it is heard");
            });
            let response = http::Response::builder().status(101).header("connection", "Upgrade");
            let response = response.header("access-control-allow-origin", "*");
            response.header("upgrade", "websocket").body(whole("")).expect("a response")
        })
    })
    .await;
    register(&server, &backend).await;
    let mut request = https::request("GET", &format!("{FLUNDERS}/a/exec"), "");
    request.headers_mut().insert("connection", http::HeaderValue::from_static("Upgrade"));
    request.headers_mut().insert("upgrade", http::HeaderValue::from_static("websocket"));
    let response = running.upgraded(request).await;
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["upgrade"], "websocket");
    assert!(!response.headers().contains_key("access-control-allow-origin"));
    let mut io = TokioIo::new(hyper::upgrade::on(response).await.expect("an upgrade"));
    io.write_all(b"ping").await.expect("it is sent");
    let mut word = [0; 4];
    io.read_exact(&mut word).await.expect("it comes back");
    assert_eq!(&word, b"ping");
    drop(io);
    // Nobody asked for that.
    let mut request = https::request("GET", &format!("{FLUNDERS}/a/exec?other"), "");
    request.headers_mut().insert("connection", http::HeaderValue::from_static("Upgrade"));
    request.headers_mut().insert("upgrade", http::HeaderValue::from_static("websocket"));
    assert_eq!(running.upgraded(request).await.status(), 502);
    running.end().await;
}
