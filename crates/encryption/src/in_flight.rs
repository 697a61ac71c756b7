//! What this process has encrypted and not yet been told of by the store: it need not be decrypted, and the bytes are the very
//! ones that the writer has.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use parking_lot::Mutex;

/// Nobody may ever ask: a store need not be watched.
const MAX: usize = 1024;
const BYTES_MAX: usize = 64 << 20;

/// By where the encrypted bytes lie. They are kept as long, so that no others can lie there.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<State>);

#[derive(Default)]
struct State {
    by_place: HashMap<usize, EncryptedPair>,
    /// The oldest first; of some that are gone, too.
    order: VecDeque<usize>,
    bytes: usize,
}

struct EncryptedPair {
    sealed: Bytes,
    plain: Bytes,
}

impl InFlight {
    pub(crate) fn add(&self, sealed: &Bytes, plain: &Bytes) {
        let place = sealed.as_ptr().addr();
        let mut state = self.0.lock();
        state.bytes += sealed.len() + plain.len();
        let written = EncryptedPair { sealed: sealed.clone(), plain: plain.clone() };
        if let Some(before) = state.by_place.insert(place, written) {
            state.bytes -= before.bytes();
        }
        state.order.push_back(place);
        while state.order.len() > MAX || (state.bytes > BYTES_MAX && state.order.len() > 1) {
            let Some(oldest) = state.order.pop_front() else { return };
            state.remove(oldest);
        }
    }

    /// What was encrypted to exactly these bytes in memory.
    pub(crate) fn take(&self, sealed: &Bytes) -> Option<Bytes> {
        let place = sealed.as_ptr().addr();
        let mut state = self.0.lock();
        state.by_place.get(&place).filter(|it| it.sealed.len() == sealed.len())?;
        state.remove(place).map(|it| it.plain)
    }
}

impl State {
    fn remove(&mut self, place: usize) -> Option<EncryptedPair> {
        let written = self.by_place.remove(&place)?;
        self.bytes -= written.bytes();
        Some(written)
    }
}

impl EncryptedPair {
    fn bytes(&self) -> usize {
        self.sealed.len() + self.plain.len()
    }
}
