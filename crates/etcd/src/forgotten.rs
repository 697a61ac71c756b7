//! What etcd no longer keeps, as far as that is known here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use corten_store::{Error, Revision};

/// The oldest revision that etcd is known to keep.
#[derive(Default)]
pub(crate) struct Forgotten(AtomicU64);

impl Forgotten {
    pub(crate) fn oldest(&self) -> Revision {
        self.0.load(Relaxed)
    }

    pub(crate) fn note(&self, revision: Revision) {
        self.0.fetch_max(revision, Relaxed);
    }

    pub(crate) fn error(&self, asked: Revision) -> Error {
        Error::Compacted { asked, oldest: self.oldest().max(asked + 1) }
    }
}
