//! What strangers and guests may try: each attempt is refused or bounded, and everybody else is served meanwhile.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    frames::{self, Frames, GOAWAY, HEADERS, RST_STREAM, SETTINGS, frame, get, headers},
    https::{HttpsServer, request, running, serving, text},
    server,
};
use crate::{Config, Limits};
use corten_fairness::{Budget, Sender};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PATIENCE: Duration = Duration::from_secs(30);

async fn is_served(running: &HttpsServer) {
    let answer = tokio::time::timeout(PATIENCE, running.http1(request("GET", CONFIG_MAPS, ""))).await;
    assert_eq!(answer.expect("others are served").status(), StatusCode::OK);
}

fn with_type(method: &str, path: &str, media_type: &str, body: impl Into<bytes::Bytes>) -> Request<Full<bytes::Bytes>> {
    let mut request = request(method, path, body);
    request.headers_mut().insert("content-type", media_type.parse().expect("a media type"));
    request
}

#[tokio::test]
async fn a_path_leads_nowhere_else() {
    let running = running().await;
    for path in [
        "/api/v1/namespaces/default/configmaps/..%2f..%2fkube-system%2fsecrets%2fs",
        "/api/v1/namespaces/default/configmaps/%2e%2e",
        "/api/v1/namespaces/..%2fkube-system/configmaps/kube-root-ca.crt",
        "/api/v1/namespaces/default/configmaps/a%00b",
        "/api/v1/namespaces/default/../../../etc/passwd",
    ] {
        let answer = running.http1(request("GET", path, "")).await;
        assert!(answer.status().is_client_error(), "{path} was answered {}", answer.status());
    }
    for name in ["..", "a/b", "../x", "a%2fb", "a\\u0000b", ""] {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let refused = running.http1(request("POST", CONFIG_MAPS, body)).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{name}");
    }
    is_served(&running).await;
    running.end().await;
}

#[tokio::test]
async fn no_header_makes_anybody_somebody_else() {
    let running = running().await;
    for (name, value) in [
        ("X-Remote-User", "kubernetes-admin"),
        ("X-Remote-Group", "system:masters"),
        ("X-Forwarded-User", "kubernetes-admin"),
        ("Impersonate-User", "kubernetes-admin"),
        ("Impersonate-Group", "system:masters"),
    ] {
        let mut guest = request("GET", "/api/v1/secrets", "");
        guest.headers_mut().insert("authorization", "Bearer s3cret".parse().expect("a header"));
        guest
            .headers_mut()
            .insert(http::HeaderName::from_bytes(name.as_bytes()).expect("a name"), value.parse().expect("a value"));
        let answer = running.as_stranger(guest).await;
        assert!(
            matches!(
                answer.status(),
                StatusCode::FORBIDDEN | StatusCode::INTERNAL_SERVER_ERROR | StatusCode::BAD_REQUEST
            ),
            "{name}: {}",
            answer.status()
        );
        assert!(!text(answer).await.contains("SecretList"), "{name}");
    }
    running.end().await;
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    // As the program's own threads.
    let threads = tokio::runtime::Builder::new_multi_thread().thread_stack_size(8 << 20).enable_all().build();
    let threads = threads.expect("threads");
    threads.block_on(threads.spawn(bombs())).expect("no panic");
}

async fn bombs() {
    let running = running().await;
    let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        aliases.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let deep_json = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let deep_object = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let deep_yaml = "- ".repeat(200_000);
    for (media_type, body) in [
        ("application/yaml", aliases),
        ("application/json", deep_json),
        ("application/json", deep_object),
        ("application/yaml", deep_yaml),
    ] {
        let refused = running.http2(with_type("POST", CONFIG_MAPS, media_type, body)).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{media_type}");
    }

    let object = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#, "x".repeat(1000));
    assert_eq!(running.http1(request("POST", CONFIG_MAPS, object)).await.status(), StatusCode::CREATED);
    let doubling: Vec<String> =
        (0..40).map(|it| format!(r#"{{"op":"copy","from":"/data","path":"/data/k{it}"}}"#)).collect();
    let one = format!("{CONFIG_MAPS}/a");
    let bomb = with_type("PATCH", &one, "application/json-patch+json", format!("[{}]", doubling.join(",")));
    let refused = running.http2(bomb).await;
    assert!(refused.status().is_client_error(), "{}", refused.status());
    let many = vec![r#"{"op":"test","path":"/data/k","value":"y"}"#; 10_001].join(",");
    let refused = running.http2(with_type("PATCH", &one, "application/json-patch+json", format!("[{many}]"))).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    is_served(&running).await;
    running.end().await;
}

/// Who may not send a body takes no room by one, and no time: it is not waited for.
#[tokio::test]
async fn the_body_of_who_may_not_send_it_is_not_received() {
    let config = Config { limits: Limits { body_bytes: 0, ..Limits::default() }, ..server::config() };
    let running = serving(config).await;
    let mut stream = running.connect_as_stranger(b"http/1.1").await;
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer s3cret\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n1\r\n{{\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    let answered = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await;
    answered.expect("the rest is not waited for").expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 403");
    is_served(&running).await;
    running.end().await;
}

#[tokio::test]
async fn a_flood_of_headers_ends_its_own_connection() {
    let running = running().await;
    let mut stream = running.connect(b"http/1.1").await;
    let mut flood = String::from("GET /version HTTP/1.1\r\nhost: x\r\n");
    for idx in 0..5000 {
        flood.push_str(&format!("x-{idx}: {}\r\n", "y".repeat(100)));
    }
    flood.push_str("\r\n");
    // The server may hang up before all is sent.
    let sent = stream.write_all(flood.as_bytes()).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection ends");
    let said = String::from_utf8_lossy(&answer);
    assert!(said.starts_with("HTTP/1.1 431") || (said.is_empty() && (sent.is_err() || read.is_err())), "{said}");
    is_served(&running).await;
    running.end().await;
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_at_once_end_their_connection() {
    let running = running().await;
    let mut stream = running.connect(b"h2").await;
    let mut attack = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    attack.extend(frame(SETTINGS, 0, 0, &[]));
    // GET, https, /version, from HPACK's static table and a literal.
    let mut block = vec![0x82, 0x87, 0x04, 8];
    block.extend(b"/version");
    block.extend([0x01, 1, b'x']);
    for idx in 0..5000 {
        let id = idx * 2 + 1;
        attack.extend(frame(HEADERS, 0x5, id, &block));
        attack.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
    }
    let sent = stream.write_all(&attack).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection ends");
    let mut said_goodbye = false;
    let mut rest = &answer[..];
    while let [a, b, c, kind, _, _, _, _, _, ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        said_goodbye |= *kind == GOAWAY;
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    assert!(said_goodbye || sent.is_err() || read.is_err(), "the attacker is shut out");
    is_served(&running).await;
    running.end().await;
}

#[tokio::test]
async fn watches_beyond_the_bound_are_refused_and_places_come_free() {
    // Half of them are for one user.
    let config = Config { limits: Limits { watches: 6, ..Limits::default() }, ..server::config() };
    let running = serving(config).await;
    let watch = || request("GET", "/api/v1/configmaps?watch=true", "");
    let mut open = Vec::new();
    for _ in 0..3 {
        let answer = running.http2(watch()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        open.push(answer);
    }
    let refused = running.http2(watch()).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    is_served(&running).await;
    open.clear();
    let again = async {
        while running.http2(watch()).await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("a place comes free");
    running.end().await;
}

#[tokio::test]
async fn who_takes_all_connections_of_an_address_keeps_nobody_else_out() {
    let limits = Limits { connections_of_address: 4, ..Limits::default() };
    let running = serving(Config { limits, ..server::config() }).await;
    // They say nothing, and wait for the end of the handshake's time.
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(running.connect_from("127.0.0.1").await);
    }
    let mut refused = running.connect_from("127.0.0.1").await;
    let read = tokio::time::timeout(PATIENCE, refused.read(&mut [0; 1])).await.expect("the server hangs up");
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    let other = running.connect_from("127.0.0.2").await;
    let answer = tokio::time::timeout(PATIENCE, running.over(other, request("GET", CONFIG_MAPS, ""))).await;
    assert_eq!(answer.expect("others are served").status(), StatusCode::OK);
    drop((silent, refused));
    running.end().await;
}

#[tokio::test]
async fn who_reads_nothing_holds_up_nobody() {
    let running = running().await;
    for n in 0..8 {
        let body = format!(r#"{{"metadata":{{"name":"m{n}"}},"data":{{"k":"{}"}}}}"#, "x".repeat(100_000));
        assert_eq!(running.http1(request("POST", CONFIG_MAPS, body)).await.status(), StatusCode::CREATED);
    }
    // Every stream has a window of nothing, and none is ever opened.
    let mut stalled = Frames::open(&running).await;
    stalled.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).await;
    for n in 0..100 {
        let path = if n % 2 == 0 { CONFIG_MAPS } else { "/api/v1/namespaces/default/configmaps?watch=true" };
        stalled.send(&headers(1 + 2 * n, true, &get(path))).await;
    }
    let mut n_heard = 0;
    while n_heard < 100 {
        let (kind, ..) = stalled.next().await.expect("the connection goes on");
        n_heard += usize::from(kind == frames::HEADERS);
        assert_ne!(kind, frames::DATA, "there is no window");
    }
    is_served(&running).await;
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn bodies_wait_for_room_and_are_sent_away_where_none_comes() {
    const KIB: usize = 1024;
    let room = Budget::new(Limits { body_bytes: 400 * KIB, watches: 0, ..Limits::default() });
    let sent = async |party: &str, is_of_system: bool, before: usize, bytes: usize| {
        room.for_body(Sender { party, is_of_system }, before * KIB, bytes * KIB).await
    };
    let large = async |party: &str, bytes: usize| sent(party, false, 64, bytes).await;
    // A quarter is for one party.
    let first = large("a", 80).await.expect("there is room");
    assert!(large("a", 20).await.is_ok());
    let refused = large("a", 30).await.err().expect("there is none");
    assert_eq!((refused.code, refused.reason.as_str()), (429, "TooManyRequests"));
    assert!(large("b", 100).await.is_ok(), "others have theirs");
    drop(first);
    assert!(large("a", 100).await.is_ok());

    let mut held = Vec::new();
    for party in ["a", "b", "c", "d"] {
        held.push(large(party, 100).await.expect("there is room for four"));
    }
    assert_eq!(large("e", 1).await.err().expect("there is none for all").code, 429);
    let small = sent("e", false, 0, 5).await.expect("small ones have room of their own");
    assert!(sent("a", false, 0, 5).await.is_ok());
    assert_eq!(sent("e", false, 0, 6).await.err().expect("and each party its share of it").code, 429);
    drop(small);
    assert!(sent("system:node:n", true, 64, 20).await.is_ok(), "as the cluster's parts have");
    held.clear();
    assert!(large("e", 1).await.is_ok());
}

#[tokio::test]
async fn a_body_takes_what_its_bytes_take_however_it_comes() {
    let room = Budget::new(Limits { body_bytes: 256 * 1024, watches: 0, ..Limits::default() });
    let sender = Sender { party: "a", is_of_system: false };
    let mut held = corten_fairness::Permit::default();
    for before in 0..4096 {
        held.merge(room.for_body(sender, before, 1).await.expect("four pieces of 1 KiB"));
    }
    assert!(room.for_body(sender, 4096, 1).await.is_err(), "a sixteenth of the quarter for small ones is 4 KiB");
    drop(held);
    assert!(room.for_body(sender, 4096, 1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn large_objects_are_worked_on_a_few_at_a_time() {
    const MIB: usize = 1024 * 1024;
    let room = Budget::new(Limits { work_bytes: 8 * MIB, watches: 0, ..Limits::default() });
    let work = async |party: &str, bytes: usize| room.for_work(Sender { party, is_of_system: false }, bytes).await;
    let first = work("a", MIB).await.expect("there is room");
    let second = work("a", MIB).await.expect("a quarter is for one party");
    assert_eq!(work("a", MIB).await.err().expect("and no more").code, 429);
    assert!(work("b", 3 * MIB).await.is_ok(), "others have theirs, also for what is larger than that");
    let system = Sender { party: "system:node:n", is_of_system: true };
    assert!(room.for_work(system, MIB).await.is_ok(), "as the cluster's parts have");
    drop(first);
    assert!(work("a", MIB).await.is_ok());
    drop(second);
}

#[test]
fn places_for_watches_are_shared() {
    let room = Budget::new(Limits { body_bytes: 0, watches: 6, ..Limits::default() });
    let place = |user: &str| room.for_watch(user, 0);
    // A long selector takes the places of several.
    let long = room.for_watch("a", 1024).expect("three places");
    assert!(place("a").is_err() && room.for_watch("b", 1536).is_err() && room.for_watch("b", 1024).is_ok());
    drop(long);
    let held: Vec<_> = ["a", "a", "a", "b", "b", "c"].map(place).into_iter().collect::<Result<_, _>>().expect("six");
    assert!(place("d").is_err(), "there are no more");
    drop(held);
    let _held: Vec<_> = ["a", "a", "a"].map(place).into_iter().collect::<Result<_, _>>().expect("three");
    assert!(place("a").is_err() && place("b").is_ok());
    // Who holds nothing is forgotten where there are many, and who holds something is not.
    for n in 0..5000 {
        assert!(place(&format!("user-{n}")).is_ok());
    }
    assert!(place("a").is_err());
}
