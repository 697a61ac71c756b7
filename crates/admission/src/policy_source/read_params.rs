//! Parameters as expressions see them, read once for as long as they stay what they are.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use corten_cacher::{
    sweeps::Sweeps,
    watch_cache::{Stored, versions},
};
use corten_kinds::KindRef;
use parking_lot::Mutex;
use serde_json::Value;

/// Parameters that were read before, so that a large one is read once and not for every request.
#[derive(Default)]
pub(crate) struct ReadParams(Mutex<ParamCache<Stored>>);

struct ParamCache<O> {
    bytes: usize,
    by_place: BTreeMap<ParamKey, CachedParam<O>>,
    sweeps: Sweeps,
}

struct CachedParam<O> {
    /// What it was read of: a changed definition makes another of the same revision, with other defaults.
    of: Weak<O>,
    value: Arc<Value>,
    bytes: usize,
}

/// Version and resource, namespace, name.
type ParamKey = (String, String, String);

/// What is kept of their JSON; what is more is forgotten, all at once.
const BYTES_MAX: usize = 16 * 1024 * 1024;

impl ReadParams {
    pub(crate) fn read(&self, row: &KindRef, stored: &Arc<Stored>) -> Arc<Value> {
        let place = (
            format!("{}/{}", row.resource.api_version(), row.resource.plural),
            stored.namespace().to_owned(),
            stored.name().to_owned(),
        );
        if let Some(value) = self.0.lock().get(&place, stored) {
            return value;
        }
        let mut value = stored.parse();
        versions::from_stored(row, &mut value);
        let value = Arc::new(value);
        let read = CachedParam { of: Arc::downgrade(stored), value: value.clone(), bytes: stored.value().len() };
        self.0.lock().put(place, read, BYTES_MAX);
        value
    }

    /// Throws away those of objects that are gone.
    pub(crate) fn sweep(&self) {
        self.0.lock().sweep();
    }
}

impl<O> Default for ParamCache<O> {
    fn default() -> Self {
        Self { bytes: 0, by_place: BTreeMap::new(), sweeps: Sweeps::default() }
    }
}

impl<O> ParamCache<O> {
    fn get(&self, place: &ParamKey, stored: &Arc<O>) -> Option<Arc<Value>> {
        let is_same = |it: &&CachedParam<O>| std::ptr::eq(it.of.as_ptr(), Arc::as_ptr(stored));
        self.by_place.get(place).filter(is_same).map(|it| it.value.clone())
    }

    fn put(&mut self, place: ParamKey, read: CachedParam<O>, bytes_max: usize) {
        self.bytes += read.bytes;
        if let Some(before) = self.by_place.insert(place.clone(), read) {
            self.bytes -= before.bytes;
        }
        if self.sweeps.is_due(self.by_place.len()) || self.bytes > bytes_max {
            self.sweep();
        }
        if self.bytes > bytes_max {
            self.by_place.retain(|it, _| *it == place);
            self.count();
        }
    }

    fn sweep(&mut self) {
        self.by_place.retain(|_, it| it.of.strong_count() > 0);
        self.count();
    }

    fn count(&mut self) {
        self.bytes = self.by_place.values().map(|it| it.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(of: &Arc<usize>) -> CachedParam<usize> {
        CachedParam { of: Arc::downgrade(of), value: Arc::default(), bytes: 10 }
    }

    fn place(name: usize) -> ParamKey {
        ("v1/as".into(), String::new(), name.to_string())
    }

    #[test]
    fn what_is_gone_or_was_replaced_takes_no_room() {
        let (mut kept, stays) = (ParamCache::default(), Arc::new(0));
        kept.put(place(0), read(&stays), 100);
        for n in 1..1000 {
            kept.put(place(n), read(&Arc::new(n)), 100);
            kept.put(place(0), read(&stays), 100);
            assert!(kept.by_place.len() <= 4 && kept.bytes <= 40, "{} {}", kept.by_place.len(), kept.bytes);
            assert!(kept.get(&place(0), &stays).is_some(), "what is there is not pushed out by what is not");
        }
        assert!(kept.get(&place(0), &Arc::new(0)).is_none(), "another one was read of another object");
    }

    #[test]
    fn what_is_too_much_is_forgotten() {
        let (mut kept, all) = (ParamCache::default(), (0..50).map(Arc::new).collect::<Vec<_>>());
        for (n, it) in all.iter().enumerate() {
            kept.put(place(n), read(it), 100);
            assert!(kept.bytes <= 100 && kept.bytes == 10 * kept.by_place.len());
            assert!(kept.get(&place(n), it).is_some());
        }
    }
}
