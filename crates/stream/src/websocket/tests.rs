use super::*;

/// A client's frame, masked.
pub(crate) fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![head];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | u8::try_from(short).expect("short")),
        long @ 126..65536 => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(long).expect("not so long").to_be_bytes());
        }
        longer => {
            frame.push(0x80 | 127);
            frame.extend((longer as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().enumerate().map(|(at, it)| it ^ mask[at % 4]));
    frame
}

fn told(pieces: &[Piece]) -> String {
    let text = |it: &Bytes| String::from_utf8_lossy(it).into_owned();
    let word = |it: &Piece| match it {
        Piece::Data { begins, ends, bytes } => {
            format!("{}{}{}", if *begins { "<" } else { "" }, text(bytes), if *ends { ">" } else { "" })
        }
        Piece::Ping(bytes) => format!("ping:{}", text(bytes)),
        Piece::Pong => "pong".into(),
        Piece::Close => "close".into(),
    };
    pieces.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn read(bytes: &[u8], step: usize) -> Result<String, Malformed> {
    let (mut decoder, mut input, mut pieces) = (Decoder::default(), BytesMut::new(), Vec::new());
    for part in bytes.chunks(step) {
        input.extend_from_slice(part);
        while let Some(piece) = decoder.next(&mut input)? {
            pieces.push(piece);
        }
    }
    Ok(told(&pieces))
}

#[test]
fn reads_what_clients_send() {
    let parts = [frame(0x02, b"one "), frame(0x89, b"p"), frame(0x80, b"message")].concat();
    for (bytes, whole, torn) in [
        (frame(0x82, b"hi"), "<hi>", "<h i>"),
        (frame(0x82, b""), "<>", "<>"),
        (frame(0x81, b"text"), "<text>", "<t e x t>"),
        (parts, "<one  ping:p message>", "<o n e   ping:p m e s s a g e>"),
        ([frame(0x8a, b"x"), frame(0x88, &[3, 232])].concat(), "pong close", "pong close"),
    ] {
        assert_eq!(read(&bytes, usize::MAX), Ok(whole.to_owned()));
        assert_eq!(read(&bytes, 1), Ok(torn.to_owned()));
    }
    for length in [125, 126, 65535, 65536, 100_000] {
        let text = "x".repeat(length);
        assert_eq!(read(&frame(0x82, text.as_bytes()), usize::MAX), Ok(format!("<{text}>")));
    }
}

#[test]
fn refuses_what_is_none() {
    for (bytes, why) in [
        (vec![0x82, 2, b'h', b'i'], "a client's frame is not masked"),
        (vec![0xc2, 0x80], "reserved bits are set"),
        (vec![0x83, 0x80], "the opcode is unknown"),
        (vec![0x8b, 0x80], "the opcode is unknown"),
        (frame(0x80, b"x"), "nothing is continued"),
        ([frame(0x02, b"x"), frame(0x82, b"y")].concat(), "a message begins within another"),
        (frame(0x09, b""), "a control frame is too long or in parts"),
        (frame(0x89, &[0; 126]), "a control frame is too long or in parts"),
        (vec![0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], "the length is negative"),
    ] {
        assert_eq!(read(&bytes, usize::MAX), Err(Malformed(why)), "{bytes:?}");
    }
}

#[test]
fn writes_what_clients_read() {
    for (length, head) in
        [(3, vec![0x82, 3]), (126, vec![0x82, 126, 0, 126]), (65536, vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0])]
    {
        let mut out = BytesMut::new();
        put_message(&vec![7; length], &mut out);
        assert_eq!(out[..head.len()], head);
        assert_eq!(out.len(), head.len() + length);
    }
    let mut out = BytesMut::new();
    put_channel_message(1, b"hi", &mut out);
    put_close(NORMAL, &mut out);
    assert_eq!(*out, [0x82, 3, 1, b'h', b'i', 0x88, 2, 3, 232]);
    // The example of RFC 6455.
    assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
