//! Documents as they are kept, written piece by piece through a compressor, so that none is ever whole in memory.

use std::io::{Read, Write};

use aws_lc_rs::digest::{self, SHA512};
use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::Value;

/// One document, compressed, and the hash of its plain text.
pub(super) struct Document {
    pub(super) compressed: Bytes,
    pub(super) hash: String,
}

impl Document {
    pub(super) fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        GzDecoder::new(&*self.compressed).read_to_end(&mut plain).expect("we compressed it ourselves");
        plain
    }
}

/// Compresses and hashes what is written.
pub(super) struct Writer {
    compressor: GzEncoder<Vec<u8>>,
    hash: digest::Context,
}

impl Writer {
    pub(super) fn new() -> Self {
        let compressor = GzEncoder::new(Vec::new(), Compression::default());
        Self { compressor, hash: digest::Context::new(&SHA512) }
    }

    pub(super) fn write(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        self.compressor.write_all(piece).expect("memory takes every write");
    }

    pub(super) fn write_members(&mut self, members: impl IntoIterator<Item = (String, String)>) {
        self.write(b"{");
        for (n, (name, value)) in members.into_iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            self.write(format!("{comma}{}:{value}", Value::String(name)).as_bytes());
        }
        self.write(b"}");
    }

    pub(super) fn finish(self) -> Document {
        let mut compressed = self.compressor.finish().expect("memory takes every write");
        compressed.shrink_to_fit();
        let hash = self.hash.finish().as_ref().iter().map(|it| format!("{it:02X}")).collect();
        Document { compressed: compressed.into(), hash }
    }
}
