//! What is remembered of keys. A note that names a `selector` is found by the labels which that selects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_meta::{Key, Requirement, Selector, selector::requirements};
use imbl::OrdMap;
use serde_json::Value;

use super::labels::{Places, place_of, place_without_label, places_of_all};

/// As tables, it is a value: a clone costs nothing.
#[derive(Clone, Default)]
pub(super) struct Notes {
    by_key: OrdMap<Arc<Key>, Note>,
    places: Places,
}

#[derive(Clone)]
struct Note {
    value: Arc<Value>,
    selects: Option<Arc<Selects>>,
}

/// The selector of a note, read once.
struct Selects {
    text: String,
    selector: Selector,
    place: u64,
}

impl Selects {
    /// `None`: what cannot be read selects nothing.
    fn read(namespace: &str, text: &str) -> Option<Self> {
        let requirements = requirements(text).ok()?;
        let place = requirements.iter().find_map(|it| only_value(it).map(|(label, it)| place_of(namespace, label, it)));
        let place = place.unwrap_or_else(|| place_without_label(namespace));
        Some(Self { text: text.to_owned(), selector: requirements.into_iter().collect(), place })
    }
}

/// The label that a requirement asks for, where that is just one.
pub(super) fn only_value(requirement: &Requirement) -> Option<(&str, &str)> {
    match requirement {
        Requirement::In(label, values) if values.len() == 1 => values.first().map(|it| (&**label, &**it)),
        _ => None,
    }
}

impl Notes {
    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.by_key.get(key).map(|it| &*it.value)
    }

    /// The keys of a namespace whose notes select some of these labels, in their order.
    pub(super) fn selecting<'a>(
        &self,
        namespace: &str,
        labels: impl Iterator<Item = &'a BTreeMap<String, String>> + Clone,
    ) -> Vec<&Key> {
        let mut places = places_of_all(namespace, labels.clone());
        places.insert(place_without_label(namespace));
        let candidates: BTreeSet<&Arc<Key>> = places.into_iter().flat_map(|it| self.places.at(it)).collect();
        let selects = |key: &Arc<Key>| {
            let selects = self.by_key.get(&**key).and_then(|it| it.selects.as_ref());
            key.namespace == namespace && selects.is_some_and(|it| labels.clone().any(|of| it.selector.matches(of)))
        };
        candidates.into_iter().filter(|it| selects(it)).map(|it| &**it).collect()
    }

    pub(super) fn insert(&mut self, key: &Key, value: Value) {
        let known = self.by_key.get_key_value(key).map(|(key, it)| (key.clone(), it.selects.clone()));
        let (key, old) = known.unwrap_or_else(|| (Arc::new(key.clone()), None));
        let text = value["selector"].as_str();
        let selects = match old {
            Some(old) if Some(&*old.text) == text => Some(old),
            old => {
                if let Some(old) = old {
                    self.places.remove(old.place, &key);
                }
                let new = text.and_then(|it| Selects::read(&key.namespace, it)).map(Arc::new);
                if let Some(new) = &new {
                    self.places.insert(new.place, key.clone());
                }
                new
            }
        };
        self.by_key.insert(key, Note { value: Arc::new(value), selects });
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let Some((key, note)) = self.by_key.remove_with_key(key) else { return };
        if let Some(selects) = note.selects {
            self.places.remove(selects.place, &key);
        }
    }
}
