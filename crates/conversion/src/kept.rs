//! How much of what was converted is kept beside the stored objects.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use corten_cacher::watch_cache::{Slot, Stored};
use parking_lot::Mutex;

/// Of all custom resources together. What is beyond is converted again for who asks.
const BYTES_MAX: usize = 128 << 20;

/// The oldest first.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
}

struct Entry {
    stored: Weak<Stored>,
    version: String,
    bytes: usize,
}

impl Kept {
    pub(crate) fn keep(&self, stored: &Arc<Stored>, version: &str, converted: Arc<Stored>) {
        const OVERHEAD: usize = 512;
        let bytes = converted.value().len() + OVERHEAD;
        stored.converted.set(version, Slot::Done(converted));
        let mut gone = Vec::new();
        {
            let mut ring = self.0.lock();
            ring.bytes += bytes;
            ring.entries.push_back(Entry { stored: Arc::downgrade(stored), version: version.to_owned(), bytes });
            while ring.bytes > BYTES_MAX
                && let Some(oldest) = ring.entries.pop_front()
            {
                ring.bytes -= oldest.bytes;
                gone.push(oldest);
            }
            // What went with its stored object is no longer there, whatever the ring says.
            while ring.entries.front().is_some_and(|it| it.stored.strong_count() == 0) {
                let oldest = ring.entries.pop_front().expect("it was looked at");
                ring.bytes -= oldest.bytes;
            }
        }
        for Entry { stored, version, .. } in gone {
            if let Some(stored) = stored.upgrade() {
                stored.converted.forget(&version);
            }
        }
    }
}
