//! Compresses the pieces of a body as they pass.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

/// Bodies below this size are sent as they are (`defaultGzipThresholdBytes`).
pub const THRESHOLD_BYTES: usize = 128 * 1024;

pub struct Gzip<I> {
    pieces: I,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<I: Iterator<Item = Vec<u8>>> Gzip<I> {
    pub fn new(pieces: I) -> Self {
        Self { pieces, encoder: Some(GzEncoder::new(Vec::new(), Compression::new(1))) }
    }
}

impl<I: Iterator<Item = Vec<u8>>> Iterator for Gzip<I> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let encoder = self.encoder.as_mut()?;
            let Some(piece) = self.pieces.next() else {
                let encoder = self.encoder.take().expect("it was there a line above");
                return Some(encoder.finish().expect("writing to memory does not fail"));
            };
            encoder.write_all(&piece).expect("writing to memory does not fail");
            let ready = std::mem::take(encoder.get_mut());
            if !ready.is_empty() {
                return Some(ready);
            }
        }
    }
}

/// Does the client take gzip?
pub fn accepted(header: &str) -> bool {
    header.split(',').any(|it| {
        let mut parts = it.split(';').map(str::trim);
        matches!(parts.next(), Some("gzip" | "*")) && !parts.any(|it| matches!(it, "q=0" | "q=0.0"))
    })
}
