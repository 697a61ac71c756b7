//! Keys by the labels of what they name, within a namespace.
//!
//! A place is a hash, so that a label costs two words: whoever looks there finds all that has the label, and may find something
//! else, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_meta::{Key, ObjectMeta, stable_hash, stable_hash_from};
use imbl::{OrdMap, OrdSet};

#[derive(Clone, Default)]
pub(super) struct Places(OrdSet<(u64, Arc<Key>)>);

/// Where a label's keys are.
pub(super) fn place_of(namespace: &str, label: &str, value: &str) -> u64 {
    // None of the three can hold a NUL.
    [label, value].into_iter().fold(stable_hash(namespace.as_bytes()), |hash, it| {
        stable_hash_from(stable_hash_from(hash, &[0]), it.as_bytes())
    })
}

/// Where keys are that no single label leads to.
pub(super) fn place_without_label(namespace: &str) -> u64 {
    stable_hash_from(stable_hash(namespace.as_bytes()), &[0])
}

impl Places {
    pub(super) fn insert(&mut self, place: u64, key: Arc<Key>) {
        self.0.insert((place, key));
    }

    pub(super) fn remove(&mut self, place: u64, key: &Arc<Key>) {
        self.0.remove(&(place, key.clone()));
    }

    /// In the order of keys.
    pub(super) fn at(&self, place: u64) -> impl Iterator<Item = &Arc<Key>> {
        // Keys without a name come before all others.
        let range = self.0.range((place, Arc::new(Key::default()))..);
        range.take_while(move |it| it.0 == place).map(|it| &it.1)
    }

    /// Of several places the keys of the one that has the fewest: all are walked side by side until one ends.
    pub(super) fn fewest(&self, places: impl Iterator<Item = u64>) -> Option<Vec<&Arc<Key>>> {
        let mut walks: Vec<_> = places.map(|it| (self.at(it), Vec::new())).collect();
        if walks.is_empty() {
            return None;
        }
        loop {
            for (walk, passed) in &mut walks {
                match walk.next() {
                    Some(key) => passed.push(key),
                    None => return Some(std::mem::take(passed)),
                }
            }
        }
    }
}

/// What a table that is looked into by labels has beside its objects.
#[derive(Clone, Default)]
pub(super) struct Labelled {
    places: Places,
    /// How many objects each namespace has.
    counts: OrdMap<String, usize>,
}

impl Labelled {
    pub(super) fn index(&mut self, key: &Arc<Key>, meta: &ObjectMeta) {
        for (label, value) in &meta.labels {
            self.places.insert(place_of(&key.namespace, label, value), key.clone());
        }
        *self.counts.entry(key.namespace.clone()).or_insert(0) += 1;
    }

    pub(super) fn unindex(&mut self, key: &Arc<Key>, meta: &ObjectMeta) {
        for (label, value) in &meta.labels {
            self.places.remove(place_of(&key.namespace, label, value), key);
        }
        match self.counts.get_mut(&key.namespace) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.counts.remove(&key.namespace)),
        }
    }

    pub(super) fn count(&self, namespace: &str) -> usize {
        self.counts.get(namespace).copied().unwrap_or(0)
    }

    /// The keys of what may have all these labels; `None` where none is named.
    pub(super) fn candidates<'a>(
        &self,
        namespace: &str,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<Vec<&Arc<Key>>> {
        self.places.fewest(labels.map(|(label, value)| place_of(namespace, label, value)))
    }
}

/// The places of all labels of these objects, each once.
pub(super) fn places_of_all<'a>(
    namespace: &str,
    labels: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeSet<u64> {
    labels.flatten().map(|(label, value)| place_of(namespace, label, value)).collect()
}
