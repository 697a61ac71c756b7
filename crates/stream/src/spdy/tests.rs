use std::io::Read;

use super::*;

fn read(bytes: &[u8], step: usize) -> Result<Vec<Piece>, Malformed> {
    let (mut decoder, mut input, mut pieces) = (Decoder::default(), BytesMut::new(), Vec::new());
    for part in bytes.chunks(step) {
        input.extend_from_slice(part);
        while let Some(piece) = decoder.next(&mut input)? {
            pieces.push(piece);
        }
    }
    Ok(pieces)
}

fn control(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    [&[0x80, 3, 0, kind, flags, 0, 0, length], content].concat()
}

#[test]
fn reads_what_servers_send() {
    let data = |stream: u8, fin: u8, text: &str| {
        let length = u8::try_from(text.len()).expect("short");
        [&[0, 0, 0, stream, fin, 0, 0, length], text.as_bytes()].concat()
    };
    let bytes = [
        control(2, 0, &[0, 0, 0, 1, 9, 9, 9, 9, 9, 9]),
        data(3, 0, "hello"),
        control(4, 0, &[0; 12]),
        control(9, 0, &[0; 8]),
        control(6, 0, &[0, 0, 0, 2]),
        data(3, 1, ""),
        control(3, 0, &[0, 0, 0, 5, 0, 0, 0, 5]),
        control(7, 0, &[0; 8]),
        control(200, 0, &[1, 2, 3]),
        control(2, 1, &[0, 0, 0, 7]),
    ];
    let whole = vec![
        Piece::Reply { stream: 1, fin: false },
        Piece::Data { stream: 3, fin: false, bytes: Bytes::from_static(b"hello") },
        Piece::Ping(2),
        Piece::Data { stream: 3, fin: true, bytes: Bytes::new() },
        Piece::Reset { stream: 5 },
        Piece::GoAway,
        Piece::Reply { stream: 7, fin: true },
    ];
    assert_eq!(read(&bytes.concat(), usize::MAX), Ok(whole.clone()));
    // Torn into single bytes it says the same, data aside, which comes as it comes.
    let torn = read(&bytes.concat(), 1).expect("valid");
    let without_data = |it: &[Piece]| {
        let it = it.iter().filter(|it| !matches!(it, Piece::Data { fin: false, .. }));
        it.cloned().collect::<Vec<_>>()
    };
    assert_eq!(without_data(&torn), without_data(&whole));
}

#[test]
fn refuses_what_is_none() {
    for (bytes, why) in [
        (vec![0, 0, 0, 0, 0, 0, 0, 0], "data for no stream"),
        (vec![0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1], "another version"),
        (control(6, 0, &[1, 2]), "a control frame is too short"),
        (control(3, 0, &[0, 0, 0, 1]), "a control frame is too short"),
        // HTTP, where an upgrade was not meant.
        (b"HTTP/1.1 400 Bad Request".to_vec(), ""),
    ] {
        let read = read(&bytes, usize::MAX);
        if why.is_empty() {
            // Its first letters read as a frame of data for a stream that nobody has opened.
            assert!(matches!(read.as_deref(), Ok([Piece::Data { .. }])), "{read:?}");
        } else {
            assert_eq!(read, Err(Malformed(why)), "{bytes:?}");
        }
    }
}

/// As a server reads it, with a zlib of its own.
#[test]
fn headers_are_a_zlib_stream() {
    let (mut encoder, mut out) = (Encoder::default(), BytesMut::new());
    encoder.open(1, &[("streamtype", "error")], &mut out);
    encoder.open(3, &[("streamtype", "stdin"), ("a", "")], &mut out);
    let mut inflate = flate2::read::ZlibDecoder::new(std::collections::VecDeque::new());
    let mut names = Vec::new();
    while !out.is_empty() {
        let head = out.split_to(18);
        assert_eq!(head[..4], [0x80, 3, 0, 1]);
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize - 10;
        names.push(u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
        inflate.get_mut().extend(out.split_to(length));
        let mut word = [0; 4];
        inflate.read_exact(&mut word).expect("a count");
        for _ in 0..u32::from_be_bytes(word) * 2 {
            inflate.read_exact(&mut word).expect("a length");
            let mut text = vec![0; u32::from_be_bytes(word) as usize];
            inflate.read_exact(&mut text).expect("a text");
            if text == b"stdin" {
                names.push(0);
            }
        }
    }
    assert_eq!(names, [1, 3, 0]);
}

#[test]
fn long_data_goes_in_parts() {
    let mut out = BytesMut::new();
    put_data(5, &vec![1; DATA_BYTES_MAX + 1], true, &mut out);
    let pieces = read(&out, usize::MAX).expect("valid");
    let told: Vec<_> = pieces
        .iter()
        .map(|it| match it {
            Piece::Data { stream, fin, bytes } => (*stream, *fin, bytes.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(5, false, DATA_BYTES_MAX), (5, true, 1)]);
    out.clear();
    put_data(5, &[], false, &mut out);
    assert!(out.is_empty());
}
