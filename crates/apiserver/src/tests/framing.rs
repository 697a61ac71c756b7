//! How requests are written on the wire: what means two things is refused, and a connection that breaks the rules ends alone.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::{
    frames::{self, Frames, Heard, field, frame, get, headers},
    https::{HttpsServer, running},
};

const PATIENCE: Duration = Duration::from_secs(20);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const OBJECT: &str = r#"{"metadata":{"generateName":"a-"}}"#;

/// All that comes until the other side ends.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut all = Vec::new();
    // Broken off is ended, too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("the connection ends");
    all
}

/// The status codes of all answers to what is sent at once over HTTP/1.1, until the server hangs up.
async fn answers(running: &HttpsServer, sent: &[u8]) -> Vec<u16> {
    let mut stream = running.connect(b"http/1.1").await;
    // The server may hang up before all is sent.
    let _ = stream.write_all(sent).await;
    let _ = stream.flush().await;
    let text = String::from_utf8_lossy(&rest(&mut stream).await).into_owned();
    text.split("HTTP/1.1 ").skip(1).map(|it| it[..3].parse().expect("a code")).collect()
}

#[tokio::test]
async fn a_request_that_means_two_things_is_one_or_none() {
    let running = running().await;
    let chunked = format!("{:x}\r\n{OBJECT}\r\n0\r\n\r\n", OBJECT.len());
    let length = format!("Content-Length: {}", OBJECT.len());
    // What stands behind the body in one reading, and in the other is the next request.
    let next = format!("DELETE {MAPS}/none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let longer = format!("Transfer-Encoding: chunked\r\nContent-Length: {}", chunked.len() + next.len());
    let two = format!("{length}\r\nContent-Length: 4");
    let signed = format!("Content-Length: +{}", OBJECT.len());
    let (folded, null, returned) =
        (format!("X: y\r\n {length}"), format!("X: a\0b\r\n{length}"), format!("X: a\rb\r\n{length}"));
    let whole = |headers: &str, body: &str| {
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\r\n\r\n{body}")
    };
    for (what, headers, body, expected) in [
        ("two requests, one after the other", &*length, format!("{OBJECT}{next}"), &[201, 404][..]),
        // As RFC 9112 (6.1) has it: the chunks count, and the connection ends.
        ("length and chunks", "Content-Length: 4\r\nTransfer-Encoding: chunked", format!("{chunked}{next}"), &[201]),
        ("chunks and a longer length", &longer, format!("{chunked}{next}"), &[201]),
        ("two lengths", &two, format!("{OBJECT}{next}"), &[400]),
        ("a list of lengths", "Content-Length: 4, 5", OBJECT.into(), &[400]),
        ("a length with a sign", &signed, OBJECT.into(), &[400]),
        ("a negative length", "Content-Length: -1", OBJECT.into(), &[400]),
        ("a length past all numbers", "Content-Length: 99999999999999999999", OBJECT.into(), &[400]),
        ("a length in hexadecimal digits", "Content-Length: 0x22", OBJECT.into(), &[400]),
        ("an encoding nobody knows", "Transfer-Encoding: xchunked", chunked.clone(), &[400]),
        (
            "chunked twice",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            format!("{chunked}{next}"),
            &[400],
        ),
        ("chunked twice in one", "Transfer-Encoding: chunked, chunked", format!("{chunked}{next}"), &[400]),
        ("two hosts", &format!("Host: y\r\n{length}"), OBJECT.into(), &[400]),
        (
            "two credentials",
            &format!("Authorization: Bearer a\r\nauthorization: Bearer b\r\n{length}"),
            OBJECT.into(),
            &[400],
        ),
        (
            "two of the same",
            &format!("Authorization: Bearer a\r\nAuthorization: Bearer a\r\n{length}"),
            OBJECT.into(),
            &[400],
        ),
        (
            "two who are meant",
            &format!("Impersonate-User: a\r\nImpersonate-User: b\r\n{length}"),
            OBJECT.into(),
            &[400],
        ),
        (
            "two uids",
            &format!("Impersonate-User: a\r\nImpersonate-Uid: a\r\nimpersonate-uid: b\r\n{length}"),
            OBJECT.into(),
            &[400],
        ),
        ("two types", &format!("Content-Type: application/yaml\r\n{length}"), OBJECT.into(), &[400]),
        ("chunked is not the last", "Transfer-Encoding: chunked, identity", chunked.clone(), &[400]),
        ("a space before the colon", "Transfer-Encoding : chunked", chunked.clone(), &[400]),
        ("a tab before the value", "Transfer-Encoding:\u{b}chunked", chunked.clone(), &[400]),
        ("a folded header", &folded, OBJECT.into(), &[400]),
        ("a chunk's length past all numbers", "Transfer-Encoding: chunked", "fffffffffffffffff\r\n".into(), &[400]),
        ("a chunk's length with a sign", "Transfer-Encoding: chunked", format!("+{chunked}"), &[400]),
        ("a null in a header", &null, OBJECT.into(), &[400]),
        ("a carriage return in a header", &returned, OBJECT.into(), &[400]),
    ] {
        assert_eq!(answers(&running, whole(headers, &body).as_bytes()).await, expected, "{what}");
    }
    let chunks = whole("Transfer-Encoding: chunked", &format!("{chunked}{next}"));
    assert_eq!(answers(&running, chunks.replacen("HTTP/1.1", "HTTP/1.0", 1).as_bytes()).await, [400]);
    running.end().await;
}

#[tokio::test]
async fn a_request_line_leads_where_it_says() {
    let running = running().await;
    for (line, more, expected) in [
        ("GET /version HTTP/1.1", "Host: x\r\n", 200),
        // The host is whatever the client calls us.
        ("GET https://elsewhere/version HTTP/1.1", "Host: x\r\n", 200),
        ("GET /version HTTP/1.1", "", 200),
        ("GET /version#/api HTTP/1.1", "Host: x\r\n", 200),
        ("GET //elsewhere/version HTTP/1.1", "Host: x\r\n", 404),
        ("OPTIONS * HTTP/1.1", "Host: x\r\n", 404),
        ("CONNECT x:443 HTTP/1.1", "Host: x\r\n", 404),
        ("GET version HTTP/1.1", "Host: x\r\n", 400),
        ("GET /ver sion HTTP/1.1", "Host: x\r\n", 400),
        ("GET /version\0 HTTP/1.1", "Host: x\r\n", 400),
        ("GET /version HTTP/2.0", "Host: x\r\n", 400),
        ("GET /version HTTP/1.1 ", "Host: x\r\n", 400),
        ("GET /version", "", 400),
        ("PRI * HTTP/2.0", "", 400),
        ("G\u{e4}T /version HTTP/1.1", "Host: x\r\n", 400),
    ] {
        let sent = format!("{line}\r\n{more}Connection: close\r\n\r\n");
        assert_eq!(answers(&running, sent.as_bytes()).await, [expected], "{line}");
    }
    running.end().await;
}

#[tokio::test]
async fn a_stream_that_breaks_the_rules_is_refused() {
    let running = running().await;
    let with = |more: &[(&'static str, &'static str)]| [get("/version"), more.to_vec()].concat();
    let without = |name: &str| get("/version").into_iter().filter(|it| it.0 != name).collect::<Vec<_>>();
    let path = |path: &'static str| vec![(":method", "GET"), (":scheme", "https"), (":path", path)];
    let tunnel = vec![(":method", "CONNECT"), (":authority", "elsewhere:443")];
    let tunnel_with_path = [tunnel.clone(), vec![(":scheme", "https"), (":path", "/version")]].concat();
    let websocket = [tunnel_with_path.clone(), vec![(":protocol", "websocket")]].concat();
    for (what, fields, expected) in [
        ("a plain request", get("/version"), Ok(200)),
        // The host is whatever the client calls us.
        ("another host", with(&[("host", "elsewhere")]), Ok(200)),
        ("an unknown scheme", vec![(":method", "GET"), (":scheme", "ftp"), (":path", "/version")], Ok(200)),
        ("two credentials", with(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]), Ok(400)),
        ("two who are meant", with(&[("impersonate-user", "a"), ("impersonate-user", "b")]), Ok(400)),
        ("two hosts", with(&[("host", "a"), ("host", "b")]), Ok(400)),
        ("two that may be many", with(&[("accept", "a/b"), ("accept", "*/*")]), Ok(200)),
        ("trailers are welcome", with(&[("te", "trailers")]), Ok(200)),
        ("a path with a fragment", path("/version#/api"), Ok(200)),
        ("a star", path("*"), Ok(404)),
        ("a tunnel", tunnel, Ok(404)),
        ("no path", without(":path"), Err(Reset)),
        ("no method", without(":method"), Err(Reset)),
        ("an empty path", path(""), Err(Reset)),
        ("two paths", with(&[(":path", "/api")]), Err(Reset)),
        ("two methods", with(&[(":method", "DELETE")]), Err(Reset)),
        ("an answer's pseudo header", with(&[(":status", "200")]), Err(Reset)),
        ("a pseudo header after the others", [vec![("x", "y")], get("/version")].concat(), Err(Reset)),
        ("a header of the connection", with(&[("connection", "close")]), Err(Reset)),
        ("another one", with(&[("transfer-encoding", "chunked")]), Err(Reset)),
        ("an upgrade", with(&[("upgrade", "websocket")]), Err(Reset)),
        ("te says more than trailers", with(&[("te", "gzip")]), Err(Reset)),
        ("an address as path", path("https://elsewhere/version"), Err(Reset)),
        ("a path without a slash", path("version"), Err(Reset)),
        ("a path with a space", path("/ver sion"), Err(Reset)),
        ("a path with a null", path("/version\0"), Err(Reset)),
        ("a tunnel with a path", tunnel_with_path, Err(Reset)),
        ("a websocket in a stream", websocket, Err(Reset)),
        ("a pseudo header nobody knows", with(&[(":user", "x")]), Err(Ended)),
        ("a name in capitals", with(&[("X-Y", "z")]), Err(Ended)),
        ("a name with a space", with(&[("x y", "z")]), Err(Ended)),
        ("an empty name", with(&[("", "z")]), Err(Ended)),
        ("a value with a line break", with(&[("x", "y\r\nz: 1")]), Err(Ended)),
        ("a value with a null", with(&[("x", "y\0")]), Err(Ended)),
    ] {
        let mut frames = Frames::open(&running).await;
        frames.send(&headers(1, true, &fields)).await;
        assert_eq!(came_of(frames.hear(1).await), expected, "{what}");
        if expected != Err(Ended) {
            frames.send(&headers(3, true, &get("/version"))).await;
            assert_eq!(came_of(frames.hear(3).await), Ok(200), "{what}: the connection goes on");
        }
    }
    running.end().await;
}

/// How a request fails that gets no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Failure {
    /// Its stream is reset.
    Reset,
    /// Its connection is ended.
    Ended,
}
use Failure::{Ended, Reset};

fn came_of(heard: Heard) -> Result<u16, Failure> {
    match heard {
        Heard::Answer(code, _) => Ok(code),
        Heard::Reset(_) => Err(Reset),
        Heard::Ended => Err(Ended),
    }
}

#[tokio::test]
async fn a_body_is_as_long_as_it_says() {
    let running = running().await;
    let post = |length: &'static str| {
        let fields = [(":method", "POST"), (":scheme", "https"), (":path", MAPS), ("content-type", "application/json")];
        [&fields[..], &[("content-length", length)]].concat()
    };
    let right = "34";
    assert_eq!(right.parse(), Ok(OBJECT.len()));
    let two: Vec<_> = [post(right), vec![("content-length", "4")]].concat();
    for (what, fields, parts, expected) in [
        ("as long", post(right), &[OBJECT][..], Ok(201)),
        ("in parts", post(right), &[&OBJECT[..9], &OBJECT[9..]], Ok(201)),
        ("less", post("35"), &[OBJECT], Err(Reset)),
        ("more", post("33"), &[OBJECT], Err(Reset)),
        ("no number", post("x"), &[OBJECT], Err(Reset)),
        ("two numbers", two, &[OBJECT], Err(Reset)),
    ] {
        let mut frames = Frames::open(&running).await;
        frames.send(&headers(1, false, &fields)).await;
        for (at, part) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len();
            frames.send(&frame(frames::DATA, if is_last { frames::END_STREAM } else { 0 }, 1, part.as_bytes())).await;
        }
        assert_eq!(came_of(frames.hear(1).await), expected, "{what}");
    }
    running.end().await;
}

#[tokio::test]
async fn trailers_say_nothing() {
    let running = running().await;
    for trailers in [
        [("x-remote-user", "kubernetes-admin"), ("authorization", "Bearer s3cret")],
        [("impersonate-user", "nobody"), ("content-length", "1")],
        [(":path", "/api"), (":status", "400")],
    ] {
        let mut frames = Frames::open(&running).await;
        let fields = [(":method", "POST"), (":scheme", "https"), (":path", MAPS), ("content-type", "application/json")];
        frames.send(&headers(1, false, &fields)).await;
        frames.send(&frame(frames::DATA, 0, 1, OBJECT.as_bytes())).await;
        frames.send(&headers(1, true, &trailers)).await;
        let heard = frames.hear(1).await;
        assert!(matches!(&heard, Heard::Answer(201, it) if it.contains("a-")), "{trailers:?}: {heard:?}");
    }
    running.end().await;
}

/// Who floods a connection has it ended, or is answered: in time, and with all others.
#[tokio::test]
async fn a_flood_ends_its_own_connection_or_nothing() {
    let running = running().await;
    let open = || headers(1, false, &get("/version"));
    let block = field("x", &"y".repeat(1000));
    let bomb = {
        // One large entry of the table, and then a byte for each time it is meant.
        let mut block: Vec<u8> = get("/version").iter().flat_map(|(name, value)| field(name, value)).collect();
        block.extend([&[0x40][..], &field("x", &"y".repeat(3000))[1..]].concat());
        block.extend(vec![0x80 | 62; 12_000]);
        frame(frames::HEADERS, frames::END_HEADERS | frames::END_STREAM, 1, &block)
    };
    let settings = |id: u8, value: u32| frame(frames::SETTINGS, 0, 0, &[&[0, id][..], &value.to_be_bytes()].concat());
    let window = |bytes: u32| frame(frames::WINDOW_UPDATE, 0, 1, &bytes.to_be_bytes());
    for (what, first, then, n, expected) in [
        ("settings", Vec::new(), settings(3, 9), 50_000, Ok(200)),
        ("pings", Vec::new(), frame(frames::PING, 0, 0, &[0; 8]), 50_000, Ok(200)),
        ("a table of all memory", Vec::new(), settings(1, u32::MAX), 1, Ok(200)),
        ("windows past all numbers", open(), window(0x7fff_ffff), 3, Ok(200)),
        ("a window of nothing", open(), window(0), 1, Err(Ended)),
        ("a window for all past all numbers", settings(4, u32::MAX), Vec::new(), 1, Err(Ended)),
        (
            "continuations",
            frame(frames::HEADERS, 0, 1, &block),
            frame(frames::CONTINUATION, 0, 1, &block),
            5000,
            Err(Ended),
        ),
        (
            "empty continuations",
            frame(frames::HEADERS, 0, 1, &block),
            frame(frames::CONTINUATION, 0, 1, &[]),
            50_000,
            Err(Ended),
        ),
        ("empty data", open(), frame(frames::DATA, 0, 1, &[]), 50_000, Err(Ended)),
        ("a header bomb", Vec::new(), bomb, 1, Err(Ended)),
        ("a frame too large", Vec::new(), frame(frames::HEADERS, 4, 1, &vec![0; 1 << 17]), 1, Err(Ended)),
        ("data of no stream", Vec::new(), frame(frames::DATA, 0, 5, b"x"), 1, Err(Ended)),
        ("an even stream", Vec::new(), headers(2, true, &get("/version")), 1, Err(Ended)),
    ] {
        let mut frames = Frames::open(&running).await;
        frames.send(&first).await;
        let steps = n.min(50);
        for _ in 0..steps {
            frames.send(&then.repeat(n / steps)).await;
        }
        frames.send(&headers(101, true, &get("/version"))).await;
        let heard = tokio::time::timeout(PATIENCE, frames.hear(101)).await.expect("in time");
        assert_eq!(came_of(heard), expected, "{what}");
        let mut other = Frames::open(&running).await;
        other.send(&headers(1, true, &get("/version"))).await;
        assert_eq!(came_of(other.hear(1).await), Ok(200), "{what}: others are served");
    }
    running.end().await;
}
