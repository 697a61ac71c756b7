use std::convert::Infallible;

use http_body_util::{BodyExt, Empty, Full};
use hyper::{server, service::service_fn};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::{Limits, Upgrade};

const DEADLINE: Duration = Duration::from_secs(5);

/// A kubelet: `/exec` becomes an echo, anything else is refused.
async fn kubelet(io: DuplexStream) {
    let service = service_fn(|mut request: Request<Incoming>| async move {
        let mut response = Response::new(Full::new(Bytes::new()));
        if request.uri().path() == "/exec" {
            let protocol = request.headers()["upgrade"].clone();
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut io = TokioIo::new(upgrade.await.expect("the client switches"));
                let mut word = [0; 5];
                io.read_exact(&mut word).await.expect("five bytes come");
                io.write_all(&word.map(|it| it.to_ascii_uppercase())).await.expect("the client reads");
            });
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("connection", "Upgrade".parse().expect("valid"));
            response.headers_mut().insert("upgrade", protocol);
        } else {
            *response.status_mut() = StatusCode::NOT_FOUND;
            *response.body_mut() = Full::new("no such pod".into());
        }
        Ok::<_, Infallible>(response)
    });
    let connection = server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service);
    connection.with_upgrades().await.expect("the connection is served");
}

/// An API server: takes the client's upgrade over to the kubelet.
async fn front(io: DuplexStream) {
    let service = service_fn(|mut request: Request<Incoming>| async move {
        let connection = request.extensions_mut().remove();
        let upgrade = Upgrade::from_request(request.headers(), connection, crate::Purpose::PortForward)
            .expect("the client asks for an upgrade");
        let (near, far) = tokio::io::duplex(1024);
        tokio::spawn(kubelet(far));
        let mut onward = Request::get(request.uri().path()).header("host", "node").body(Empty::new()).expect("valid");
        onward.headers_mut().extend(upgrade.headers().clone());
        let Dialed::Switched(head, io) = dial(near, onward, DEADLINE).await.expect("the kubelet answers") else {
            panic!("the kubelet does not switch")
        };
        let (response, accepted) = upgrade.accept(&head);
        tokio::spawn(async move { accepted.tunnel(io, Limits::default()).await });
        Ok::<_, Infallible>(response.map(|()| Empty::<Bytes>::new()))
    });
    let connection = server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service);
    connection.with_upgrades().await.expect("the connection is served");
}

#[tokio::test]
async fn an_upgrade_goes_through_two_servers() {
    let (near, far) = tokio::io::duplex(1024);
    tokio::spawn(front(far));
    let request = Request::get("/exec").header("host", "api").header("connection", "Upgrade");
    let request = request.header("upgrade", "SPDY/3.1").body(Empty::new()).expect("valid");
    let Dialed::Switched(head, io) = dial(near, request, DEADLINE).await.expect("an answer comes") else {
        panic!("the server does not switch")
    };
    assert_eq!(head.headers["upgrade"], "SPDY/3.1");
    let mut io = TokioIo::new(io);
    io.write_all(b"hello").await.expect("the tunnel reads");
    let mut answer = String::new();
    io.read_to_string(&mut answer).await.expect("the tunnel ends");
    assert_eq!(answer, "HELLO");
}

#[tokio::test]
async fn an_answer_that_is_no_upgrade_is_passed_on() {
    let (near, far) = tokio::io::duplex(1024);
    tokio::spawn(kubelet(far));
    let request = Request::get("/containerLogs/x").header("host", "node").body(Empty::new()).expect("valid");
    let Dialed::Answered(answer) = dial(near, request, DEADLINE).await.expect("an answer comes") else {
        panic!("nobody asked for a switch")
    };
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let body = answer.into_body().collect().await.expect("the body comes").to_bytes();
    assert_eq!(body, "no such pod");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up() {
    let (near, _far) = tokio::io::duplex(1024);
    let request = Request::get("/").header("host", "node").body(Empty::new()).expect("valid");
    let error = dial(near, request, DEADLINE).await.expect_err("nobody answers");
    assert_eq!(error.to_string(), "no answer within 5s");
}
