//! Read your writes: a key is parked until the caches hold what its last plan wrote.
//!
//! So no mind ever decides on a view that lacks its own work, and none has to remember what it expects.

use std::collections::BTreeMap;

use corten_meta::{Key, Resource};
use tokio::time::{Duration, Instant};

use crate::feed::Feeds;

/// How long a cache may take to show a write before it is suspected and listed again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long that list may take, over all its retries, before the key goes on without it.
const LIST_PATIENCE: Duration = Duration::from_secs(120);

/// One thing a cache must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// This version of the resource, or a later one.
    Version { resource: Resource, version: u64 },
    /// The object with this uid gone, or on its way.
    Going { resource: Resource, key: Key, uid: String },
    /// Any object of this name.
    Present { resource: Resource, key: Key },
    /// Anything after this version: what a write conflicted with.
    Moved { resource: Resource, past: u64 },
    /// This many lists of the resource: it is not known whether a write was done.
    Listed { resource: Resource, lists: u64 },
}

/// What one parked key waits for.
pub(crate) struct Barrier {
    needs: Vec<Need>,
    not_before: Instant,
    deadline: Instant,
    has_relisted: bool,
}

impl Need {
    fn resource(&self) -> &Resource {
        match self {
            Self::Version { resource, .. }
            | Self::Going { resource, .. }
            | Self::Present { resource, .. }
            | Self::Moved { resource, .. }
            | Self::Listed { resource, .. } => resource,
        }
    }

    /// A resource that is not watched cannot be waited for, and nothing is decided from it.
    fn is_met(&self, feeds: &Feeds) -> bool {
        let Some(held) = feeds.version(self.resource()) else { return true };
        match self {
            Self::Version { version, .. } => held >= *version,
            Self::Moved { past, .. } => held > *past,
            Self::Going { resource, key, uid } => {
                feeds.view.meta(resource, key).is_none_or(|it| it.uid != *uid || it.is_deleting())
            }
            Self::Present { resource, key } => feeds.view.meta(resource, key).is_some(),
            Self::Listed { resource, lists } => feeds.n_lists(resource).is_none_or(|it| it >= *lists),
        }
    }
}

impl Barrier {
    pub(crate) fn new(needs: Vec<Need>, not_before: Instant, now: Instant) -> Self {
        let needs = newest_only(needs);
        let is_listing = needs.iter().any(|it| matches!(it, Need::Listed { .. }));
        let patience = if is_listing { LIST_PATIENCE } else { PATIENCE };
        Self { needs, not_before, deadline: now.max(not_before) + patience, has_relisted: is_listing }
    }

    /// When it must be looked at again even if no cache has moved.
    pub(crate) fn alarm(&self) -> Instant {
        if self.needs.is_empty() { self.not_before } else { self.deadline }
    }

    /// Only the caches are waited for now.
    pub(crate) fn end_rest(&mut self, now: Instant) {
        self.not_before = self.not_before.min(now);
        self.deadline = self.deadline.min(now + if self.has_relisted { LIST_PATIENCE } else { PATIENCE });
    }

    /// May the key go on? Lists again where a cache has taken too long.
    pub(crate) fn is_open(&mut self, feeds: &Feeds, now: Instant) -> bool {
        self.needs.retain(|it| !it.is_met(feeds));
        if self.needs.is_empty() {
            return now >= self.not_before;
        }
        if now < self.deadline {
            return false;
        }
        if self.has_relisted {
            tracing::warn!(waiting = ?self.needs, "the cache does not show a write, going on without");
            return true;
        }
        self.has_relisted = true;
        self.deadline = now + LIST_PATIENCE;
        let mut resources: Vec<Resource> = self.needs.iter().map(|it| it.resource().clone()).collect();
        resources.sort();
        resources.dedup();
        tracing::debug!(waiting = ?self.needs, "a cache is slow to show a write, listing again");
        self.needs = resources.into_iter().map(|it| listed_anew(feeds, it)).collect();
        false
    }
}

/// Whoever holds the newest version of a resource holds the ones before: a plan of many writes needs one of them.
fn newest_only(needs: Vec<Need>) -> Vec<Need> {
    let mut newest: BTreeMap<Resource, u64> = BTreeMap::new();
    let mut others = Vec::new();
    for need in needs {
        match need {
            Need::Version { resource, version } => {
                let known = newest.entry(resource).or_default();
                *known = version.max(*known);
            }
            other => others.push(other),
        }
    }
    let versions = newest.into_iter().map(|(resource, version)| Need::Version { resource, version });
    versions.chain(others).collect()
}

/// Begins a new list and gives the need to have it.
pub(crate) fn listed_anew(feeds: &Feeds, resource: Resource) -> Need {
    let lists = feeds.relist(&resource);
    Need::Listed { resource, lists }
}
