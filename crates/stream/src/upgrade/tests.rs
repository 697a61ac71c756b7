use super::*;

fn headers(text: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in text.lines() {
        let (name, value) = line.split_once(": ").expect("a header");
        let name: HeaderName = name.parse().expect("a header's name");
        headers.append(name, value.parse().expect("a header's value"));
    }
    headers
}

#[test]
fn tells_upgrades_apart() {
    let websocket = "Connection: keep-alive, Upgrade\nUpgrade: websocket\nSec-WebSocket-Protocol: ";
    for (request, expected) in [
        ("Accept: */*".to_owned(), Err(Refusal::NotAnUpgrade)),
        ("Connection: close\nUpgrade: SPDY/3.1".into(), Err(Refusal::NotAnUpgrade)),
        ("Connection: Upgrade\nUpgrade: h2c".into(), Err(Refusal::UnknownProtocol("h2c".into()))),
        ("Connection: Upgrade\nUpgrade: SPDY/3.1".into(), Ok(None)),
        ("Connection: Upgrade\nUpgrade: WebSocket".into(), Ok(None)),
        (format!("{websocket}v4.channel.k8s.io"), Ok(Some("v4.channel.k8s.io"))),
        (format!("{websocket}v4.channel.k8s.io, v5.channel.k8s.io"), Ok(Some("translated"))),
        (format!("{websocket}v6.channel.k8s.io"), Err(Refusal::UnknownSubprotocols("v6.channel.k8s.io".into()))),
        (
            format!("{websocket}SPDY/3.1+portforward.k8s.io"),
            Err(Refusal::UnknownSubprotocols("SPDY/3.1+portforward.k8s.io".into())),
        ),
    ] {
        let headers = headers(&request);
        let got = protocol(&headers).and_then(|it| match it {
            Protocol::Spdy => Ok(None),
            Protocol::WebSocket => handling(&headers, Purpose::RemoteCommand(Streams::default())).map(|it| match it {
                WebSocketHandling::Through(offer) => offer.map(|it| it.to_str().expect("plain text").to_owned()),
                WebSocketHandling::Translated(_) => Some("translated".to_owned()),
            }),
        });
        assert_eq!(got, expected.map(|it| it.map(str::to_owned)), "{request}");
    }
}

#[test]
fn every_offer_is_replayed() {
    let offers = headers(
        "X-Stream-Protocol-Version: v4.channel.k8s.io\nX-Stream-Protocol-Version: channel.k8s.io\nAuthorization: Bearer x",
    );
    let copies = copies(&offers, &REPLAYED);
    assert_eq!(copies.get_all("x-stream-protocol-version").iter().count(), 2);
    assert!(!copies.contains_key("authorization"));
}

#[test]
fn http_2_cannot_be_left() {
    let headers = headers("Connection: Upgrade\nUpgrade: SPDY/3.1");
    let refusal = Upgrade::from_request(&headers, None, Purpose::PortForward).expect_err("there is no connection");
    assert_eq!((&refusal, refusal.to_string().as_str()), (&Refusal::NoConnection, "Upgrade request required"));
}

#[test]
fn a_handshake_of_ours_is_proven() {
    let asked = "Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let answer = handshake(&headers(asked), Some(TUNNELLED)).expect("a handshake");
    assert_eq!(answer["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(answer["sec-websocket-protocol"], "SPDY/3.1+portforward.k8s.io");
    for wrong in [asked.replace("13", "8"), asked.replace("dGhlIHNhbXBsZSBub25jZQ==", " ")] {
        assert_eq!(handshake(&headers(&wrong), Some(TUNNELLED)), Err(Refusal::NotAHandshake));
    }
}
