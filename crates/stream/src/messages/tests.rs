use std::time::Duration;

use http::HeaderName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const LIMITS: Limits = Limits {
    idle: Duration::from_secs(60),
    half_closed: Duration::from_secs(5),
    switch: Duration::from_secs(5),
    buffer_bytes: 8,
    head_start: Duration::from_millis(20),
};

fn asking(for_what: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let all = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "x"),
        ("sec-websocket-protocol", for_what),
    ];
    for (name, value) in all {
        headers.insert(HeaderName::from_static(name), value.parse().expect("a header's value"));
    }
    headers
}

/// What a client hears of an answer that comes in these parts, and then ends.
async fn heard(kind: Kind, parts: &[&str]) -> Vec<u8> {
    let (near, mut client) = duplex(4096);
    let (mut source, body) = duplex(4096);
    let server = tokio::io::join(body, tokio::io::sink());
    let sending = tokio::spawn(run(near, server, (Ignored, Pieces { kind, searched: 0 }), LIMITS));
    for part in parts {
        source.write_all(part.as_bytes()).await.expect("it is read");
        // All of it is taken before more comes.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(source);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.expect("an end");
    drop(client);
    sending.await.expect("no panic").expect("it ends well");
    heard
}

const GOODBYE: &[u8] = &[0x88, 2, 0x03, 0xe8];

#[tokio::test(start_paused = true)]
async fn a_line_is_a_message_however_it_comes() {
    let heard = heard(Kind::Line, &["{\"a\"", ":1}\n{}\n{\"longer than\":\"a buffer\"}\n"]).await;
    let expected: &[&[u8]] =
        &[b"\x81\x08{\"a\":1}\n", b"\x81\x03{}\n", b"\x81\x1b{\"longer than\":\"a buffer\"}\n", GOODBYE];
    assert_eq!(String::from_utf8_lossy(&heard), String::from_utf8_lossy(&expected.concat()));
}

#[tokio::test(start_paused = true)]
async fn what_comes_at_once_is_a_message_after_a_sign_of_life() {
    let bytes: &[&[u8]] = &[b"\x82\x00", b"\x82\x05one\nt", b"\x82\x03wo\n", GOODBYE];
    assert_eq!(heard(Kind::Bytes, &["one\nt", "wo\n"]).await, bytes.concat());
    let base64: &[&[u8]] = &[b"\x81\x00", b"\x81\x08b25lCnQ=", b"\x81\x04d28K", GOODBYE];
    assert_eq!(heard(Kind::Base64, &["one\nt", "wo\n"]).await, base64.concat());
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_client_leaves() {
    let (near, mut client) = duplex(4096);
    let (_source, body) = duplex(4096);
    let server = tokio::io::join(body, tokio::io::sink());
    let sending = tokio::spawn(run(near, server, (Ignored, Pieces { kind: Kind::Line, searched: 0 }), LIMITS));
    // A ping, then a message for nobody, then goodbye.
    client.write_all(b"\x89\x82\0\0\0\0hi\x81\x81\0\0\0\0x\x88\x80\0\0\0\0").await.expect("it is read");
    sending.await.expect("no panic").expect("it ends well");
}

#[test]
fn subprotocols_are_agreed_upon() {
    type Accept = fn(&HeaderMap, Option<OnUpgrade>) -> Result<(http::Response<()>, Messages), Refusal>;
    let cases: &[(Accept, &str, Refusal)] = &[
        (Messages::of_lines, "anything, else", Refusal::NoConnection),
        (Messages::of_pieces, "", Refusal::NoConnection),
        (Messages::of_pieces, "x, base64.binary.k8s.io", Refusal::NoConnection),
        (Messages::of_pieces, "x, y", Refusal::UnknownSubprotocols("x, y".into())),
    ];
    for (accept, offer, refusal) in cases {
        let refused = accept(&asking(offer), None).expect_err("there is no connection");
        assert_eq!(refused, *refusal, "{offer}");
    }
    let mut old = asking("");
    old.insert("sec-websocket-version", "8".parse().expect("a header's value"));
    assert_eq!(Messages::of_lines(&old, None).expect_err("too old"), Refusal::NotAHandshake);
    assert!(Messages::are_wanted(&asking("")) && !Messages::are_wanted(&HeaderMap::new()));
}
