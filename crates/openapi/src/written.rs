//! Documents as they are kept, written piece by piece through a compressor, so that none is ever whole in memory.

use std::{
    io::{Read, Write},
    sync::{Arc, OnceLock, Weak},
};

use aws_lc_rs::digest::{self, SHA512};
use bytes::Bytes;
use corten_cacher::apart::apart;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use parking_lot::Mutex;
use serde_json::Value;

use crate::gnostic::v3;

/// What is kept, made by the first who asks. The others wait for it, and none of them holds up what else its thread has to do.
pub(super) fn made<T>(kept: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    kept.get().unwrap_or_else(|| apart(|| kept.get_or_init(make)))
}

/// One document, compressed, and the hash of its plain text.
pub(super) struct Document {
    pub(super) compressed: Bytes,
    pub(super) hash: String,
    /// The plain text, as long as somebody is sent it.
    plain: Mutex<Weak<Plain>>,
    /// The same document in protobuf; `None`: it has no such form, as what cannot be read.
    protobuf: OnceLock<Option<Box<Document>>>,
}

struct Plain(Vec<u8>);

/// What an answer holds of a text.
struct Shared(Arc<Plain>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0.0
    }
}

impl Document {
    /// Those who are sent the text at the same time share one: it is made for the first of them, and gone with the last.
    pub(super) fn plain(&self) -> Bytes {
        let mut kept = self.plain.lock();
        let plain = kept.upgrade().unwrap_or_else(|| {
            let plain = Arc::new(Plain(self.decompressed()));
            *kept = Arc::downgrade(&plain);
            plain
        });
        Bytes::from_owner(Shared(plain))
    }

    fn decompressed(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        GzDecoder::new(&*self.compressed).read_to_end(&mut plain).expect("we compressed it ourselves");
        plain
    }

    /// Of a document of OpenAPI v3, which is made by the first who asks, one at a time: meanwhile the whole of it is in memory.
    pub(super) fn v3_protobuf(&self) -> Option<&Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let protobuf = made(&self.protobuf, || {
            let _turn = TURN.lock();
            let value: Value = serde_json::from_slice(&self.decompressed()).ok()?;
            let mut writer = Writer::new();
            writer.write(&v3::document(&value));
            Some(Box::new(writer.finish()))
        });
        protobuf.as_deref()
    }

    /// It is too large for one.
    pub(super) fn has_no_protobuf(&self) {
        // It is new: nobody has asked yet.
        let _ = self.protobuf.set(None);
    }

    #[cfg(test)]
    pub(super) fn is_read(&self) -> bool {
        self.plain.lock().strong_count() > 0
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
        Document { compressed: compressed.into(), hash, plain: Mutex::default(), protobuf: OnceLock::new() }
    }
}
