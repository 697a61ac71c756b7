//! Tells what goes on that rights may have ended.

use std::{sync::Arc, time::Duration};

use corten_cacher::watch_cache::{Caches, Events, ResourceCache};
use tokio::sync::{Notify, watch};

use crate::authorizer::Authorizer;

/// Changes that come closer together than this are answered by one round of questions.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells everything that goes on that RBAC objects have changed, or who decides.
pub struct RightsChanged {
    sources: Vec<Events>,
    authorizers: watch::Receiver<u64>,
    told: Notify,
}

impl RightsChanged {
    pub fn new(caches: &Caches, authorizers: watch::Receiver<u64>) -> Self {
        let sources = Authorizer::sources(caches).map(ResourceCache::events).collect();
        Self { sources, authorizers, told: Notify::new() }
    }

    /// A larger number after each change: before the change is answered, and before any event that comes after it.
    pub fn count(&self) -> u64 {
        self.sources.iter().map(Events::count).sum::<u64>() + *self.authorizers.borrow()
    }

    pub(crate) async fn after(&self, count: u64) {
        let mut told = std::pin::pin!(self.told.notified());
        // Before the look: a change that comes after it wakes.
        told.as_mut().enable();
        if self.count() == count {
            told.await;
        }
    }

    /// Wakes those who wait for something else, until the server ends.
    pub async fn run(self: Arc<Self>, caches: Arc<Caches>, mut ended: watch::Receiver<bool>) {
        let telling = async {
            let mut counts: Vec<u64> = self.sources.iter().map(Events::count).collect();
            let mut authorizers = self.authorizers.clone();
            loop {
                let any = self.sources.iter().zip(&counts).map(|(it, count)| Box::pin(it.after(*count)));
                tokio::select! {
                    _ = futures_util::future::select_all(any) => {}
                    Ok(()) = authorizers.changed() => {}
                }
                counts = self.sources.iter().map(Events::count).collect();
                caches.wake_watchers();
                self.told.notify_waiters();
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => {}
            () = telling => {}
        }
    }
}
