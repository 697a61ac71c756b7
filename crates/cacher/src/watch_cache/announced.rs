//! What a writer has read of an object before it is committed, so that the cache need not read it out of the bytes again.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::Mutex;

use super::record::Record;

/// By where the bytes lie. They are kept as long, so that no others can lie there.
#[derive(Default)]
pub(super) struct Announced(Mutex<HashMap<usize, (Bytes, Record)>>);

/// Held while its object is being committed. What became of no object is forgotten with it.
pub struct Announcement<'a> {
    announced: &'a Announced,
    place: usize,
}

impl Announced {
    pub(super) fn add(&self, value: &Bytes, record: Record) -> Announcement<'_> {
        let place = value.as_ptr().addr();
        self.0.lock().insert(place, (value.clone(), record));
        Announcement { announced: self, place }
    }

    /// What was announced of these bytes. A store that gives others, of the same content, costs a reading.
    pub(super) fn take(&self, value: &Bytes) -> Option<Record> {
        let mut announced = self.0.lock();
        let place = value.as_ptr().addr();
        announced
            .get(&place)
            .is_some_and(|(known, _)| known.len() == value.len())
            .then(|| announced.remove(&place))?
            .map(|it| it.1)
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        self.announced.0.lock().remove(&self.place);
    }
}
