//! Sends a body piece by piece, compressed as its pieces pass.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use crate::{
    answer,
    body::{BoxError, Response},
};

/// Bodies below this size are sent as they are (`defaultGzipThresholdBytes`).
pub const THRESHOLD_BYTES: usize = 128 * 1024;

/// Compresses one piece after another.
pub struct Compressor(GzEncoder<Vec<u8>>);

impl Default for Compressor {
    fn default() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::new(1)))
    }
}

impl Compressor {
    /// What can be sent now; often nothing yet.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.0.write_all(piece).expect("writing to memory does not fail");
        std::mem::take(self.0.get_mut())
    }

    pub fn finish(self) -> Vec<u8> {
        self.0.finish().expect("writing to memory does not fail")
    }
}

/// A body that is sent piece by piece, compressed where the client takes that.
pub fn in_pieces(
    media_type: &'static str,
    accepted_encodings: &str,
    pieces: impl Stream<Item = Vec<u8>> + Send + 'static,
) -> Response {
    let mut response = answer::with_type(StatusCode::OK, media_type, Bytes::new());
    let compressor = accepted(accepted_encodings).then(Compressor::default);
    if compressor.is_some() {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    // Behind the last piece comes what the compressor still has.
    let pieces = pieces.map(Some).chain(stream::once(std::future::ready(None)));
    let sent = pieces.scan(compressor, |compressor, piece| {
        let ready = match (piece, compressor.as_mut()) {
            (Some(piece), Some(it)) => it.push(&piece),
            (Some(piece), None) => piece,
            (None, _) => compressor.take().map(Compressor::finish).unwrap_or_default(),
        };
        std::future::ready(Some(ready))
    });
    let frames = sent.filter(|it| std::future::ready(!it.is_empty()));
    let frames = frames.map(|it| Ok::<_, BoxError>(Frame::data(Bytes::from(it))));
    *response.body_mut() = StreamBody::new(frames).boxed_unsync();
    response
}

/// Does the client take gzip?
pub fn accepted(header: &str) -> bool {
    header.split(',').any(|it| {
        let mut parts = it.split(';').map(str::trim);
        matches!(parts.next(), Some("gzip" | "*")) && !parts.any(|it| matches!(it, "q=0" | "q=0.0"))
    })
}
