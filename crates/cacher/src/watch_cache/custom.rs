//! The caches of custom resources. They come and go with their definitions, while the one watch on the store goes on.

use std::{
    collections::BTreeMap,
    ops::{Bound, Deref},
    sync::Arc,
};

use corten_kinds::KindRef;
use corten_meta::Resource;
use corten_store::{Error, Range, Revision, Store, registry::ROOT};

use super::{Caches, ResourceCache, log::Log, resource::Change};

/// A cache for as long as it is looked at.
#[derive(Clone)]
pub enum CacheRef<'a> {
    BuiltIn(&'a ResourceCache),
    Custom(Arc<ResourceCache>),
}

impl Deref for CacheRef<'_> {
    type Target = ResourceCache;

    fn deref(&self) -> &ResourceCache {
        match self {
            Self::BuiltIn(cache) => cache,
            Self::Custom(cache) => cache,
        }
    }
}

/// By what every key of the resource begins with in the store. A value that is replaced as a whole.
#[derive(Clone, Default)]
pub(super) struct CustomCaches(BTreeMap<String, Pair>);

#[derive(Clone, Default)]
pub(super) struct Pair {
    /// What requests read.
    current: Option<Arc<ResourceCache>>,
    /// What takes its place once it is filled.
    coming: Option<Arc<ResourceCache>>,
}

impl CustomCaches {
    pub(super) fn current(&self, resource: &Resource) -> Option<Arc<ResourceCache>> {
        self.0.get(&prefix_of(resource))?.current.clone()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Arc<ResourceCache>> {
        self.0.values().filter_map(|it| it.current.clone())
    }

    /// What takes a change of this key in.
    pub(super) fn locate<'k>(&self, key: &'k [u8]) -> Option<(&str, &Pair, &'k str)> {
        let key = std::str::from_utf8(key).ok()?;
        let (prefix, pair) = self.0.range::<str, _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        Some((prefix, pair, key.strip_prefix(&**prefix)?))
    }

    fn with(&self, prefix: &str, change: impl FnOnce(&mut Pair)) -> Self {
        let mut caches = self.clone();
        let pair = caches.0.entry(prefix.to_owned()).or_default();
        change(pair);
        if pair.current.is_none() && pair.coming.is_none() {
            caches.0.remove(prefix);
        }
        caches
    }
}

impl Pair {
    /// Takes changes of the store in; gives the logs whose watchers are to be woken.
    pub(super) fn apply(&self, changes: &[&corten_store::Change]) -> Vec<Arc<Log>> {
        let mut unheard = Vec::new();
        for cache in self.current.iter().chain(&self.coming) {
            let changes = changes.iter().filter_map(|it| {
                let key = std::str::from_utf8(&it.key).ok()?.strip_prefix(cache.prefix())?;
                let content = it.entry.as_ref().and_then(|it| cache.content(it));
                Some(Change { key: key.into(), revision: it.revision, content })
            });
            unheard.extend(cache.apply_or_wait(changes.collect()));
        }
        unheard
    }
}

/// `/registry/stable.example.com/crontabs/`: whatever the group is called, nothing built in is there.
pub(super) fn prefix_of(resource: &Resource) -> String {
    format!("{}{}/{}/", ROOT, resource.group, resource.plural)
}

impl Caches {
    /// Serves the objects of a definition's stored version from now on, in the place of what served them before.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn add(&self, store: &dyn Store, kind: KindRef) -> Result<(), Error> {
        let prefix = prefix_of(&kind.resource);
        loop {
            let cache = Arc::new(ResourceCache::to_be_filled(kind.clone()));
            self.custom.rcu(|it| it.with(&prefix, |pair| pair.coming = Some(cache.clone())));
            let page = store.range(Range::prefix(prefix.clone()), None, 0).await?;
            if !cache.fill_up(&page.entries, page.revision) {
                continue;
            }
            let before = self
                .custom
                .rcu(|it| it.with(&prefix, |pair| *pair = Pair { current: Some(cache.clone()), coming: None }));
            before.close(&prefix);
            self.advanced.notify_waiters();
            return Ok(());
        }
    }

    /// Ends what serves the objects of a definition that is gone, with every watch on them.
    pub fn remove(&self, resource: &Resource) {
        let prefix = prefix_of(resource);
        let before = self.custom.rcu(|it| it.with(&prefix, |pair| *pair = Pair::default()));
        before.close(&prefix);
        self.advanced.notify_waiters();
    }
}

impl CustomCaches {
    fn close(&self, prefix: &str) {
        if let Some(cache) = self.0.get(prefix).and_then(|it| it.current.as_ref()) {
            cache.close();
        }
    }

    /// After changes were lost: what is not filled yet must begin anew.
    pub(super) fn lost(&self) {
        self.0.values().filter_map(|it| it.coming.as_ref()).for_each(|it| it.lose());
    }
}

/// What came while the store was read.
#[derive(Default)]
pub(super) struct PendingChanges {
    pub(super) changes: Vec<Change>,
    pub(super) is_lost: bool,
}

impl PendingChanges {
    /// What the store's state at a revision does not hold.
    pub(super) fn after(self, revision: Revision) -> Vec<Change> {
        self.changes.into_iter().filter(|it| it.revision > revision).collect()
    }
}
