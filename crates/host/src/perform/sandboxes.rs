//! Sandboxes that are being made. The runtime shows one as ready while its network is still being closed: until that is done nobody
//! may see it, or containers would start in it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// By the uid of their Pods, and which of a Pod's sandboxes they are.
#[derive(Default)]
pub(super) struct Making(Arc<Mutex<BTreeSet<(String, u32)>>>);

/// One that is being made as long as this is held.
pub(super) struct Made {
    all: Arc<Mutex<BTreeSet<(String, u32)>>>,
    id: (String, u32),
}

impl Making {
    pub(super) fn begin(&self, uid: &str, attempt: u32) -> Made {
        let id = (uid.to_owned(), attempt);
        locked(&self.0).insert(id.clone());
        Made { all: self.0.clone(), id }
    }

    pub(super) fn has(&self, uid: &str, attempt: u32) -> bool {
        locked(&self.0).contains(&(uid.to_owned(), attempt))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        locked(&self.all).remove(&self.id);
    }
}

fn locked(all: &Mutex<BTreeSet<(String, u32)>>) -> MutexGuard<'_, BTreeSet<(String, u32)>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_being_made_is_known_by_its_pod_and_attempt() {
        let making = Making::default();
        let made = making.begin("u1", 1);
        assert!(making.has("u1", 1) && !making.has("u1", 0) && !making.has("u2", 1));
        drop(made);
        assert!(!making.has("u1", 1));
    }
}
