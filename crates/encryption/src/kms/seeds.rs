//! The seeds that a plugin has decrypted, so that it is asked once for each; and those for which it was asked in vain.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use crate::envelope::{Opener, SeedId};

/// There is one for each key of the plugin and start of a server; of Kubernetes before 1.27, one for each object.
const MAX: usize = 16 * 1024;
/// So long a plugin is not asked again in vain.
const RETRY: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Seeds {
    known: HashMap<SeedId, Seed>,
    /// The oldest first.
    order: VecDeque<SeedId>,
    failed: HashMap<SeedId, (Instant, String)>,
}

#[derive(Clone)]
pub(super) struct Seed {
    pub(super) opener: Arc<Opener>,
    /// It has opened an object, or was made here: whatever it does not open now is damaged.
    pub(super) is_proven: bool,
}

pub(super) enum SeedLookup {
    Known(Seed),
    Failed(String),
    Unknown,
}

impl Seeds {
    pub(super) fn find(&self, id: &SeedId) -> SeedLookup {
        if let Some(seed) = self.known.get(id) {
            return SeedLookup::Known(seed.clone());
        }
        match self.failed.get(id) {
            Some((at, error)) if at.elapsed() < RETRY => SeedLookup::Failed(error.clone()),
            _ => SeedLookup::Unknown,
        }
    }

    pub(super) fn known(&mut self, id: SeedId, seed: Seed) {
        self.failed.remove(&id);
        if self.known.insert(id, seed).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    pub(super) fn proven(&mut self, id: &SeedId) {
        if let Some(seed) = self.known.get_mut(id) {
            seed.is_proven = true;
        }
    }

    pub(super) fn failed(&mut self, id: SeedId, error: String) {
        if self.known.remove(&id).is_some() {
            self.order.retain(|it| *it != id);
        }
        if self.failed.len() >= MAX {
            self.failed.clear();
        }
        self.failed.insert(id, (Instant::now(), error));
    }

    pub(super) fn forget_failures(&mut self) {
        self.failed.clear();
    }
}
