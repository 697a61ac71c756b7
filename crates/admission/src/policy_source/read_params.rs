//! Parameters as expressions see them, read once for as long as they stay what they are.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use corten_cacher::watch_cache::{Stored, versions};
use corten_kinds::KindRef;
use parking_lot::Mutex;
use serde_json::Value;

/// Parameters that were read before, so that a large one is read once and not for every request.
#[derive(Default)]
pub(crate) struct ReadParams(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    bytes: usize,
    /// With what they were read of: a changed definition makes another of the same revision, with other defaults.
    by_place: BTreeMap<Place, (Weak<Stored>, Arc<Value>)>,
}

/// Version and resource, namespace, name.
type Place = (String, String, String);

/// What is kept of their JSON; what is more is forgotten, all at once.
const BYTES_MAX: usize = 16 * 1024 * 1024;

impl ReadParams {
    pub(crate) fn read(&self, row: &KindRef, stored: &Arc<Stored>) -> Arc<Value> {
        let place = (
            format!("{}/{}", row.resource.api_version(), row.resource.plural),
            stored.namespace().to_owned(),
            stored.name().to_owned(),
        );
        let is_same = |it: &Weak<Stored>| std::ptr::eq(it.as_ptr(), Arc::as_ptr(stored));
        if let Some((_, value)) = self.0.lock().by_place.get(&place).filter(|it| is_same(&it.0)) {
            return value.clone();
        }
        let mut value = stored.parse();
        versions::from_stored(row, &mut value);
        let value = Arc::new(value);
        let mut kept = self.0.lock();
        kept.bytes += stored.value().len();
        if kept.bytes > BYTES_MAX {
            *kept = Kept { bytes: stored.value().len(), ..Kept::default() };
        }
        kept.by_place.insert(place, (Arc::downgrade(stored), value.clone()));
        value
    }
}
