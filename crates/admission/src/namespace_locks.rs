//! Turns for writes that all change one object of their namespace.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Namespaces share these by hash. Who shares one waits a little longer, and nothing else.
pub struct NamespaceLocks([Semaphore; LOCKS]);

const LOCKS: usize = 64;

impl Default for NamespaceLocks {
    fn default() -> Self {
        Self([const { Semaphore::const_new(1) }; LOCKS])
    }
}

impl NamespaceLocks {
    pub async fn acquire(&self, namespace: &str) -> SemaphorePermit<'_> {
        let hash = corten_meta::stable_hash(namespace.as_bytes());
        let place = usize::try_from(hash % LOCKS as u64).expect("less than the number of locks");
        self.0[place].acquire().await.expect("it is never closed")
    }
}
