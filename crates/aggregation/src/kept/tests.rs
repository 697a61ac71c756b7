use std::convert::Infallible;

use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{server, service::service_fn};

use std::os::unix::net::UnixStream;

use corten_webhook::{IDLE_CONNECTIONS_MAX, IDLE_MAX};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::Instant,
};

use super::*;
use crate::{
    share::Shares,
    silence::{IdleTimeoutBody, SILENCE_MAX},
};

fn endpoint(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 443))
}

/// To a server that answers every request with its path. It has a socket of which nothing is heard.
async fn connection(to: SocketAddr) -> Connection {
    let (socket, silent) = UnixStream::pair().expect("a pair");
    connection_over(to, Some(Socket::of(&socket).expect("a descriptor")), Some(silent)).await
}

async fn connection_over(to: SocketAddr, socket: Option<Socket>, silent: Option<UnixStream>) -> Connection {
    let (near, far) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let _open = silent;
        let service = service_fn(async |request: Request<Incoming>| {
            let path = request.uri().path().to_owned();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(path))))
        });
        let served = server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service).await;
        served.expect("the connection is served");
    });
    Connection::over(near, to, socket, Weak::new()).await.expect("a connection")
}

async fn ask(home: &Arc<KeptConnections>, over: Connection, path: &str) {
    let request = Request::get(path).body(whole("")).expect("a request");
    let Ok(answer) = over.ask(request, home).await else { panic!("{path} is not answered") };
    assert_eq!(answer.into_body().collect().await.expect("a whole body").to_bytes(), path);
    // The driver is idle again.
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_taken_again_once_its_answer_is_read() {
    let home = Arc::<KeptConnections>::default();
    let first = connection(endpoint(1)).await;
    ask(&home, first, "/first").await;
    let again = home.take(|it| it.to() == endpoint(1)).expect("it is idle");
    assert!(home.take(|_| true).is_none(), "one is taken by one request");
    // An answer that nobody reads to its end takes its connection with it.
    let unread = again.ask(Request::new(whole("")), &home).await;
    drop(unread);
    assert!(home.take(|_| true).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_idle_for_long_or_cannot_be_looked_at_is_not_taken() {
    let home = Arc::<KeptConnections>::default();
    ask(&home, connection(endpoint(1)).await, "/").await;
    tokio::time::advance(IDLE_MAX).await;
    assert!(home.take(|_| true).is_none());
    // Whether its server has just closed it nobody could say.
    ask(&home, connection_over(endpoint(1), None, None).await, "/").await;
    assert!(home.is_empty() && home.take(|_| true).is_none());
}

#[tokio::test(start_paused = true)]
async fn no_more_are_kept_than_may_be() {
    let home = Arc::<KeptConnections>::default();
    for _ in 0..=IDLE_CONNECTIONS_MAX {
        ask(&home, connection(endpoint(1)).await, "/").await;
    }
    assert_eq!(home.len(), IDLE_CONNECTIONS_MAX);
    home.end_all();
    assert!(home.take(|_| true).is_none());
}

#[test]
fn what_may_be_asked_again() {
    for (method, body, expected) in [
        (Method::GET, "", true),
        (Method::HEAD, "", true),
        (Method::GET, "{}", false),
        (Method::POST, "", false),
        (Method::DELETE, "", false),
    ] {
        let request = Request::builder().method(&method).uri("/a?b").header("x-remote-user", "jane");
        let again = repeated(&request.body(whole(body)).expect("a request"));
        assert_eq!(again.is_some(), expected, "{method} {body}");
        let is_same = |it: Request<Body>| it.uri() == "/a?b" && it.headers()["x-remote-user"] == "jane";
        assert!(again.is_none_or(is_same));
    }
}

/// A server that hangs up, also in the midst of a head, has acted where it has said anything.
#[tokio::test]
async fn what_was_answered_in_part_is_not_asked_again() {
    for (said, is_asked_again) in [
        ("", true),
        ("H", false),
        ("HTTP/1.1 200 OK\r\nContent-Le", false),
        ("HTTP/1.1 100 Continue\r\n\r\n", false),
        ("SSH-2.0-OpenSSH_9.2\r\n", false),
    ] {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let mut request = vec![0; 4096];
            assert!(far.read(&mut request).await.is_ok_and(|it| it > 0));
            far.write_all(said.as_bytes()).await.expect("it is read");
        });
        let over = Connection::over(near, endpoint(1), None, Weak::new()).await.expect("a connection");
        let request = Request::get("/").body(whole("")).expect("a request");
        let Err(failed) = over.ask(request, &Arc::default()).await else { panic!("{said:?} is no answer") };
        assert_eq!(failed.unsent.is_some(), is_asked_again, "{said:?}: {}", failed.reason);
    }
}

/// A server that says the half of its answer, and then nothing.
async fn half_answer(goes_on: bool) -> IdleTimeoutBody<Answer> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let service = service_fn(async |_: Request<Incoming>| {
            let begun = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from("half")))]);
            Ok::<_, Infallible>(Response::new(StreamBody::new(begun.chain(stream::pending()))))
        });
        let _ended = server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service).await;
    });
    let over = Connection::over(near, endpoint(1), None, Weak::new()).await.expect("a connection");
    let Ok(answer) = over.ask(Request::new(whole("")), &Arc::default()).await else { panic!("it is not answered") };
    let share = Shares::default().take("jane", 1).expect("there is one");
    IdleTimeoutBody::of(answer.into_body().of(share), goes_on)
}

#[tokio::test(start_paused = true)]
async fn a_half_answer_ends_and_a_watch_may_be_silent() {
    let begun = Instant::now();
    let mut answer = half_answer(false).await;
    let first = answer.frame().await.expect("there is one").expect("it is whole");
    assert_eq!(first.into_data().expect("it is data"), "half");
    let error = answer.frame().await.expect("it ends").expect_err("with an error");
    assert_eq!(error.to_string(), "the other API server does not go on with its answer");
    assert!(begun.elapsed() >= SILENCE_MAX);
    let mut watch = half_answer(true).await;
    watch.frame().await.expect("there is one").expect("it is whole");
    assert!(tokio::time::timeout(SILENCE_MAX * 100, watch.frame()).await.is_err());
}
