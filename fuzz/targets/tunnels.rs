//! Frames of WebSocket clients and SPDY servers: however they are torn on the way, they say the same, and nothing is held
//! that was not sent.

#![no_main]

use std::collections::BTreeMap;

use bytes::BytesMut;
use corten_stream::{spdy, websocket};
use libfuzzer_sys::fuzz_target;

/// What was said, with the pieces of one message or stream joined.
fn client_said(data: &[u8], step: usize) -> (Vec<String>, bool) {
    let (mut decoder, mut input, mut said) = (websocket::Decoder::default(), BytesMut::new(), Vec::new());
    let mut message = String::new();
    for part in data.chunks(step) {
        input.extend_from_slice(part);
        loop {
            match decoder.next(&mut input) {
                Ok(Some(websocket::Piece::Data { begins, ends, bytes })) => {
                    assert!(!begins || message.is_empty(), "a message begins within another");
                    message += if begins { "<" } else { "" };
                    message += &format!("{bytes:x}");
                    if ends {
                        said.push(std::mem::take(&mut message));
                    }
                }
                Ok(Some(other)) => said.push(format!("{other:?}")),
                Ok(None) => break,
                Err(_) => return (said, false),
            }
        }
        assert!(input.len() < 140, "only the head of a frame, or a control frame, is waited for");
    }
    (said, true)
}

/// The bytes of each stream, and all else in order.
fn server_said(data: &[u8], step: usize) -> (BTreeMap<u32, Vec<u8>>, Vec<String>, bool) {
    let (mut decoder, mut input) = (spdy::Decoder::default(), BytesMut::new());
    let (mut streams, mut said) = (BTreeMap::<u32, Vec<u8>>::new(), Vec::new());
    for part in data.chunks(step) {
        input.extend_from_slice(part);
        loop {
            match decoder.next(&mut input) {
                Ok(Some(spdy::Piece::Data { stream, fin, bytes })) => {
                    assert!(stream > 0 && stream >> 31 == 0);
                    streams.entry(stream).or_default().extend_from_slice(&bytes);
                    said.extend(fin.then(|| format!("the end of {stream}")));
                }
                Ok(Some(other)) => said.push(format!("{other:?}")),
                Ok(None) => break,
                Err(_) => return (streams, said, false),
            }
        }
        assert!(input.len() < 32, "only the head of a frame is waited for");
    }
    (streams, said, true)
}

fuzz_target!(|data: &[u8]| {
    let whole = client_said(data, data.len().max(1));
    for step in [1, 3, 7] {
        assert_eq!(client_said(data, step), whole);
    }
    let whole = server_said(data, data.len().max(1));
    for step in [1, 3, 7] {
        assert_eq!(server_said(data, step), whole);
    }
});
