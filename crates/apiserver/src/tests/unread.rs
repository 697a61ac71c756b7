//! Clients that do not read what they asked for: their answers hold no seat, and how long they are kept.
//!
//! The clock is moved on between what is sent and read: while it stands still, waiting for the network would move it by itself.

use std::time::Duration;

use corten_pki::Credential;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use super::{
    fairness::{config_of_few_seats, narrow},
    frames::{ACK, DATA, Frames, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, get, headers},
    https::{HttpsServer, admin, plain, request, serving},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch";
/// Together more than the kernel keeps between two sockets; few enough that their list is not wide.
const N_LARGE: usize = 12;
const LARGE_BYTES: usize = 900_000;
const ALL_BYTES: usize = N_LARGE * LARGE_BYTES;
/// It has no more time than any answer.
const SMALL: &str = "/api/v1/namespaces/default";
/// Within the time that every answer has.
const SHORTLY: Duration = Duration::from_secs(45);
/// What is taken of an answer gives it more time: so much all of it.
const TIME_OF_ALL: Duration = Duration::from_secs(60 + ALL_BYTES as u64 / (16 * 1024) + 10);
/// Sooner than a watch ends by itself.
const LONG: Duration = Duration::from_secs(20 * 60);
const PATIENCE: Duration = Duration::from_secs(60);

/// A server where jane has one seat.
async fn with_one_seat() -> (HttpsServer, Credential) {
    let running = serving(config_of_few_seats()).await;
    narrow(&running.server, json!({ "type": "Reject" })).await;
    for n in 0..N_LARGE {
        let body = format!(r#"{{"metadata":{{"name":"m{n}"}},"data":{{"k":"{}"}}}}"#, "x".repeat(LARGE_BYTES));
        let answer = running.server.call(admin(), plain("POST", MAPS, body)).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    let jane = running.server.config().pki.issue_client("jane", &["jane"]).expect("a certificate");
    (running, jane)
}

async fn later(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}

/// Is there a seat for another of jane's requests?
async fn is_answered(running: &HttpsServer, jane: &Credential) -> bool {
    let answer = running.showing(jane, request("GET", &format!("{MAPS}/none"), "")).await;
    let code = answer.status();
    answer.collect().await.expect("a whole body");
    assert!(matches!(code, StatusCode::NOT_FOUND | StatusCode::TOO_MANY_REQUESTS), "{code}");
    code == StatusCode::NOT_FOUND
}

/// Asks over HTTP/1.1 and reads no more than the head.
async fn asked(running: &HttpsServer, jane: &Credential, path: &str) -> TlsStream<TcpStream> {
    let mut stream = running.connect_narrowly(jane, b"http/1.1").await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        heard.push(stream.read_u8().await.expect("the head comes"));
    }
    assert!(heard.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&heard));
    stream
}

#[tokio::test]
async fn an_unread_answer_over_http1_ends_its_connection() {
    let (running, jane) = with_one_seat().await;
    let mut stream = asked(&running, &jane, MAPS).await;
    assert!(is_answered(&running, &jane).await, "it holds no seat");
    later(TIME_OF_ALL).await;
    assert!(is_answered(&running, &jane).await);
    let mut rest = Vec::new();
    // Broken off is ended, too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection has ended");
    assert!(rest.len() < ALL_BYTES && !rest.ends_with(b"0\r\n\r\n"), "{} bytes", rest.len());
    running.end().await;
}

#[tokio::test]
async fn a_watch_over_http1_goes_on_unread() {
    let (running, jane) = with_one_seat().await;
    let mut stream = asked(&running, &jane, WATCH).await;
    assert!(is_answered(&running, &jane).await, "it holds no seat");
    later(LONG).await;
    assert!(is_answered(&running, &jane).await);
    let (mut n_heard, mut heard, mut part) = (0, Vec::new(), vec![0; 64 * 1024]);
    while n_heard < N_LARGE {
        let n = tokio::time::timeout(PATIENCE, stream.read(&mut part)).await.expect("the rest comes");
        let n = n.expect("the connection goes on");
        assert_ne!(n, 0, "the connection goes on");
        heard.extend(&part[..n]);
        n_heard += take_added(&mut heard);
    }
    drop(stream);
    running.end().await;
}

/// How many events begin there; what may be the begin of one more is left.
fn take_added(heard: &mut Vec<u8>) -> usize {
    const BEGIN: &[u8] = br#"{"type":"ADDED""#;
    let n = heard.windows(BEGIN.len()).filter(|it| *it == BEGIN).count();
    heard.drain(..heard.len().saturating_sub(BEGIN.len() - 1));
    n
}

/// An HTTP/2 connection whose client answers pings, and has no room for what it asked for.
async fn without_window(running: &HttpsServer, jane: &Credential) -> Frames {
    let mut frames = Frames::over(running.connect_narrowly(jane, b"h2").await).await;
    frames.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).await;
    frames
}

async fn hears_head(frames: &mut Frames, stream: u32) {
    loop {
        let (kind, _, of, payload) = frames.next().await.expect("the connection goes on");
        match kind {
            HEADERS if of == stream => return assert_eq!(payload[0], 0x88, "200"),
            DATA | RST_STREAM => panic!("there is no window"),
            _ => {}
        }
    }
}

/// Moves the clock on in small steps, as pings come and are answered. False where the connection has ended.
async fn goes_on(frames: &mut Frames, by: Duration) -> bool {
    const STEP: Duration = Duration::from_secs(15);
    const OWN: &[u8] = b"are you?";
    let mut passed = Duration::ZERO;
    while passed < by {
        later(STEP.min(by - passed)).await;
        passed += STEP;
        frames.send(&frame(PING, 0, 0, OWN)).await;
        loop {
            match frames.next().await {
                Some((PING, ACK, _, payload)) if payload == OWN => break,
                Some((PING, 0, _, payload)) => frames.send(&frame(PING, ACK, 0, &payload)).await,
                Some((DATA | RST_STREAM, ..)) => panic!("there is no window"),
                Some(_) => {}
                None => return false,
            }
        }
    }
    true
}

#[tokio::test]
async fn an_unread_answer_over_http2_ends_its_connection() {
    let (running, jane) = with_one_seat().await;
    let mut frames = without_window(&running, &jane).await;
    frames.send(&headers(1, true, &get(WATCH))).await;
    hears_head(&mut frames, 1).await;
    frames.send(&headers(3, true, &get(SMALL))).await;
    hears_head(&mut frames, 3).await;
    assert!(is_answered(&running, &jane).await, "it holds no seat");
    assert!(goes_on(&mut frames, SHORTLY).await, "its time is not over");
    assert!(!goes_on(&mut frames, Duration::from_secs(30)).await, "the connection ends, with the watch");
    running.end().await;
}

#[tokio::test]
async fn a_watch_over_http2_goes_on_unread() {
    let (running, jane) = with_one_seat().await;
    let mut frames = without_window(&running, &jane).await;
    frames.send(&headers(1, true, &get(WATCH))).await;
    hears_head(&mut frames, 1).await;
    assert!(is_answered(&running, &jane).await, "it holds no seat");
    assert!(goes_on(&mut frames, LONG).await);
    let window = u32::try_from(2 * ALL_BYTES).expect("it fits").to_be_bytes();
    let opened = [frame(WINDOW_UPDATE, 0, 0, &window), frame(WINDOW_UPDATE, 0, 1, &window)].concat();
    frames.send(&opened).await;
    let (mut n_heard, mut heard) = (0, Vec::new());
    while n_heard < N_LARGE {
        let (kind, _, of, payload) = frames.next().await.expect("the connection goes on");
        if (kind, of) == (DATA, 1) {
            heard.extend(payload);
            n_heard += take_added(&mut heard);
        }
    }
    drop(frames);
    running.end().await;
}

/// Whoever has most of the room loses a connection, and nobody else does.
#[tokio::test]
async fn unread_answers_have_a_room_of_which_none_takes_all() {
    let mut config = config_of_few_seats();
    config.limits.unread_bytes = ALL_BYTES / 2;
    let running = serving(config).await;
    for n in 0..N_LARGE {
        let body = format!(r#"{{"metadata":{{"name":"m{n}"}},"data":{{"k":"{}"}}}}"#, "x".repeat(LARGE_BYTES));
        assert_eq!(running.server.call(admin(), plain("POST", MAPS, body)).await.status(), StatusCode::CREATED);
    }
    let [jane, joe] = ["jane", "joe"]
        .map(|it| running.server.config().pki.issue_client(it, &["system:masters"]).expect("a certificate"));
    let mut few = without_window(&running, &joe).await;
    let path = format!("{MAPS}/m0");
    few.send(&headers(1, true, &get(&path))).await;
    hears_head(&mut few, 1).await;
    let mut many = without_window(&running, &jane).await;
    for n in 0..N_LARGE {
        let stream = u32::try_from(2 * n + 1).expect("it fits");
        let path = format!("{MAPS}/m{n}");
        many.send(&headers(stream, true, &get(&path))).await;
    }
    while let Some((kind, ..)) = many.next().await {
        assert_ne!(kind, DATA, "there is no window");
    }
    assert!(goes_on(&mut few, Duration::from_secs(15)).await, "another's connection goes on");
    running.end().await;
}
