//! What a writer has read of an object before it is committed, so that the cache need not read it out of the bytes again.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::Mutex;

use super::record::Record;

/// By where the bytes lie. They are kept as long, so that no others can lie there.
#[derive(Default)]
pub(super) struct Announced(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    records: HashMap<usize, (Bytes, Record)>,
    /// Announcements that are held.
    held: usize,
}

/// Held while its object is being committed. What became of no object is forgotten with it.
pub struct Announcement<'a> {
    announced: &'a Announced,
    place: usize,
}

impl Announced {
    pub(super) fn add(&self, value: &Bytes, record: Option<Record>) -> Announcement<'_> {
        let place = value.as_ptr().addr();
        let mut pending = self.0.lock();
        if let Some(record) = record {
            pending.records.insert(place, (value.clone(), record));
        }
        pending.held += 1;
        Announcement { announced: self, place }
    }

    /// May what was announced still be committed, or has the cache not yet taken it in?
    pub(super) fn is_pending(&self) -> bool {
        self.0.lock().held > 0
    }

    /// What was announced of these bytes. A store that gives others, of the same content, costs a reading.
    pub(super) fn take(&self, value: &Bytes) -> Option<Record> {
        let announced = &mut self.0.lock().records;
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
        let mut pending = self.announced.0.lock();
        pending.records.remove(&self.place);
        pending.held -= 1;
    }
}
