//! Objects that are in the store and cannot be read: encrypted by a key that is not here, or damaged. Whoever asks for one is told
//! so; that it is not there would not be true.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use corten_store::Revision;

/// By key as [`super::Stored`] has it, with the reason. Nearly always there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Unreadables {
    all: Option<Arc<BTreeMap<Arc<str>, Arc<str>>>>,
    /// When the first of them was found after all could be read.
    begun: Option<Instant>,
}

impl Unreadables {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_none()
    }

    /// What the state at `revision` is called. As long as some objects cannot be read it is called an older one: when they can, at
    /// the same revision of the store, whoever made something of it sees that it is another state.
    pub(super) fn revision(&self, revision: Revision) -> Revision {
        if self.is_empty() { revision } else { revision.saturating_sub(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.all.as_ref().map_or(0, |it| it.len())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<str>> {
        self.all.as_ref()?.get(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.all.iter().flat_map(|it| it.keys())
    }

    /// The first that a list or watch would hold, as far as that can be told of what cannot be read: the one of a key, or any in a
    /// namespace (empty: in all).
    pub(super) fn within(&self, key: Option<&str>, namespace: &str) -> Option<&Arc<str>> {
        let all = self.all.as_ref()?;
        if let Some(key) = key {
            return all.get(key);
        }
        let is_there = |key: &str| key.split_once('/').is_some_and(|it| it.0 == namespace);
        all.iter().find(|(key, _)| namespace.is_empty() || is_there(key)).map(|it| it.1)
    }

    pub(super) fn first(&self) -> Option<&Arc<str>> {
        self.all.as_ref()?.values().next()
    }

    pub(super) fn insert(&mut self, key: Arc<str>, reason: Arc<str>) {
        self.begun.get_or_insert_with(Instant::now);
        Arc::make_mut(self.all.get_or_insert_default()).insert(key, reason);
    }

    /// What is read anew goes on from what was known before.
    pub(super) fn following(self, before: &Self) -> Self {
        let begun = self.begun.and_then(|it| Some(before.begun?.min(it))).or(self.begun);
        Self { begun, ..self }
    }

    /// How long ago the first was found.
    pub(super) fn since(&self) -> Option<Duration> {
        self.begun.map(|it| it.elapsed())
    }

    /// Was it one of them?
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let Some(all) = self.all.as_mut().filter(|it| it.contains_key(key)) else { return false };
        let all = Arc::make_mut(all);
        all.remove(key);
        if all.is_empty() {
            *self = Self::default();
        }
        true
    }
}
