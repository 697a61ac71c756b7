//! What was fetched: for one key, or for all keys of a controller.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use corten_meta::{Key, Time};
use imbl::OrdMap;

use super::Fetched;
use crate::ApiPath;

/// For so long all keys are shown what was fetched for all.
pub const SHARED_FOR: Duration = Duration::from_secs(1);

/// What a fetch brought, and what was read of it.
pub struct Brought {
    fetched: Fetched,
    at: Option<Time>,
    read: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fetched.fmt(f)
    }
}

impl Brought {
    fn new(fetched: Fetched, at: Option<Time>) -> Self {
        Self { fetched, at, read: OnceLock::new() }
    }

    pub fn fetched(&self) -> &Fetched {
        &self.fetched
    }

    /// The body as `read` reads it, which is done once however many look; or why there is none.
    ///
    /// # Panics
    /// It was read as another type before.
    pub fn read_as<T: Any + Send + Sync>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<&T, &str> {
        let body = self.fetched.as_ref().map_err(|it| &**it)?;
        let value = self.read.get_or_init(|| Box::new(read(body)));
        Ok(value.downcast_ref().expect("whoever fetches a path reads it as one type"))
    }

    /// A clock that was set back does not make it last.
    fn is_fresh(&self, now: Time) -> bool {
        self.at.is_some_and(|at| at <= now && now.since(at) <= SHARED_FOR)
    }
}

/// As tables, it is a value: a clone costs nothing.
#[derive(Clone, Default)]
pub(super) struct AllBrought {
    by_key: OrdMap<Key, BTreeMap<ApiPath, Arc<Brought>>>,
    shared: OrdMap<ApiPath, Arc<Brought>>,
}

impl AllBrought {
    pub(super) fn get(&self, key: &Key, path: &ApiPath) -> Option<&Brought> {
        self.by_key.get(key)?.get(path).map(|it| &**it)
    }

    /// What the key itself has fetched counts however long ago that was: else a busy loop would only ever fetch.
    pub(super) fn get_shared(&self, key: &Key, path: &ApiPath, now: Time) -> Option<&Brought> {
        let shared = || self.shared.get(path).map(|it| &**it).filter(|it| it.is_fresh(now));
        self.get(key, path).or_else(shared)
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    pub(super) fn insert(&mut self, key: &Key, path: ApiPath, fetched: Fetched) {
        self.by_key.entry(key.clone()).or_default().insert(path, Arc::new(Brought::new(fetched, None)));
    }

    pub(super) fn insert_shared(&mut self, key: &Key, path: ApiPath, fetched: Fetched, now: Time) {
        self.forget_old(now);
        let brought = Arc::new(Brought::new(fetched, Some(now)));
        self.shared.insert(path.clone(), brought.clone());
        self.by_key.entry(key.clone()).or_default().insert(path, brought);
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.by_key.remove(key);
    }

    pub(super) fn has_old(&self, now: Time) -> bool {
        self.shared.values().any(|it| !it.is_fresh(now))
    }

    pub(super) fn forget_old(&mut self, now: Time) {
        if self.has_old(now) {
            self.shared = self
                .shared
                .iter()
                .filter(|it| it.1.is_fresh(now))
                .map(|(path, it)| (path.clone(), it.clone()))
                .collect();
        }
    }
}
