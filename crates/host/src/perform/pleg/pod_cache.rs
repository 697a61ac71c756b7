//! What was read of a sandbox or a container and changes no more while it is as it is. Whoever comes first asks: the one
//! who began it, or the next look at everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use corten_kubelet::{Observed, ObservedContainer, ObservedSandbox};

use crate::cri::ContainerState;

#[derive(Default)]
pub(in crate::perform) struct PodCache(Mutex<Facts>);

#[derive(Default)]
struct Facts {
    containers: BTreeMap<String, ObservedContainer>,
    /// Of sandboxes.
    addresses: BTreeMap<String, Vec<String>>,
}

impl PodCache {
    /// As it was read when it was in that state.
    pub(super) fn container(&self, id: &str, state: ContainerState) -> Option<ObservedContainer> {
        let is_same = |it: &&ObservedContainer| match it.state {
            Observed::Running { .. } => state == ContainerState::Running,
            Observed::Exited(_) => state == ContainerState::Exited,
            Observed::Created | Observed::Unknown => false,
        };
        self.facts().containers.get(id).filter(is_same).cloned()
    }

    pub(in crate::perform) fn note_container(&self, container: &ObservedContainer) {
        if matches!(container.state, Observed::Running { .. } | Observed::Exited(_)) {
            self.facts().containers.insert(container.id.clone(), container.clone());
        }
    }

    pub(super) fn addresses(&self, sandbox: &str) -> Option<Vec<String>> {
        self.facts().addresses.get(sandbox).cloned()
    }

    pub(in crate::perform) fn note_sandbox(&self, sandbox: &ObservedSandbox) {
        self.facts().addresses.insert(sandbox.id.clone(), sandbox.ips.clone());
    }

    /// Forgets what is not there any more. What has begun since the runtime was asked is asked for again.
    pub(super) fn retain(&self, ids: &BTreeSet<&String>) {
        let mut facts = self.facts();
        facts.containers.retain(|id, _| ids.contains(id));
        facts.addresses.retain(|id, _| ids.contains(id));
    }

    pub(in crate::perform) fn clear(&self) {
        *self.facts() = Facts::default();
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use corten_kubelet::{Exit, PodRef};

    use super::*;

    fn container(state: Observed) -> ObservedContainer {
        ObservedContainer {
            id: "c1".into(),
            sandbox_id: "s1".into(),
            pod: PodRef::new("default", "web", "u1"),
            name: "main".into(),
            attempt: 0,
            image: "busybox".into(),
            image_id: "sha256:1".into(),
            hash: String::new(),
            created_at: None,
            user: None,
            state,
        }
    }

    #[test]
    fn a_container_is_known_only_in_the_state_it_was_read_in() {
        let (running, ended) = (ContainerState::Running, ContainerState::Exited);
        let known = PodCache::default();
        known.note_container(&container(Observed::Created));
        assert_eq!(known.container("c1", ContainerState::Created), None);
        known.note_container(&container(Observed::Running { started_at: None }));
        assert!(known.container("c1", running).is_some());
        assert_eq!(known.container("c1", ended), None, "how it ended is not known yet");
        known.note_container(&container(Observed::Exited(Exit::default())));
        assert!(known.container("c1", ended).is_some());
        assert_eq!(known.container("c1", running), None);
        known.retain(&BTreeSet::new());
        assert_eq!(known.container("c1", ended), None);
    }
}
