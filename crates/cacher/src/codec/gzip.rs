//! Compresses the pieces of a body as they pass.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

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

pub struct Gzip<I> {
    pieces: I,
    compressor: Option<Compressor>,
}

impl<I: Iterator<Item = Vec<u8>>> Gzip<I> {
    pub fn new(pieces: I) -> Self {
        Self { pieces, compressor: Some(Compressor::default()) }
    }
}

impl<I: Iterator<Item = Vec<u8>>> Iterator for Gzip<I> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let compressor = self.compressor.as_mut()?;
            let Some(piece) = self.pieces.next() else {
                return self.compressor.take().map(Compressor::finish);
            };
            let ready = compressor.push(&piece);
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
