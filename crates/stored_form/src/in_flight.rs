//! What this process has written and not yet been told of by the store: it need not be read again, and the bytes are the very ones
//! that the writer has.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use parking_lot::Mutex;

/// Nobody may ever ask: a store need not be watched.
const MAX: usize = 1024;
const BYTES_MAX: usize = 64 << 20;

/// The newest write of each key. A store over a network tells of it in other bytes of the same content.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<State>);

#[derive(Default)]
struct State {
    by_key: HashMap<Bytes, WrittenPair>,
    /// The oldest first; of some that are gone, too.
    order: VecDeque<Bytes>,
    bytes: usize,
}

struct WrittenPair {
    stored: Bytes,
    json: Bytes,
}

impl InFlight {
    pub(crate) fn add(&self, key: &Bytes, stored: &Bytes, json: &Bytes) {
        let mut state = self.0.lock();
        state.bytes += stored.len() + json.len();
        let written = WrittenPair { stored: stored.clone(), json: json.clone() };
        if let Some(before) = state.by_key.insert(key.clone(), written) {
            state.bytes -= before.bytes();
        }
        state.order.push_back(key.clone());
        while state.order.len() > MAX || (state.bytes > BYTES_MAX && state.order.len() > 1) {
            let Some(oldest) = state.order.pop_front() else { return };
            state.remove(&oldest);
        }
    }

    /// The JSON that was written to this key as exactly these bytes.
    pub(crate) fn take(&self, key: &Bytes, stored: &Bytes) -> Option<Bytes> {
        let mut state = self.0.lock();
        state.by_key.get(key).filter(|it| it.stored == stored)?;
        state.remove(key).map(|it| it.json)
    }

    pub(crate) fn forget(&self, key: &Bytes) {
        self.0.lock().remove(key);
    }
}

impl State {
    fn remove(&mut self, key: &Bytes) -> Option<WrittenPair> {
        let written = self.by_key.remove(key)?;
        self.bytes -= written.bytes();
        Some(written)
    }
}

impl WrittenPair {
    fn bytes(&self) -> usize {
        self.stored.len() + self.json.len()
    }
}
