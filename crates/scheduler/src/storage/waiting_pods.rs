//! Pods that have their node and wait there for their volumes: what upstream's `BindPodVolumes` waits for, as a state.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::volumes::is_reachable;
use corten_meta::{Key, Time};

use super::{Decisions, Storage};

/// The pods that wait, and who is to be told when a claim moves.
#[derive(Default)]
pub(crate) struct WaitingPods {
    pods: BTreeMap<Key, Wait>,
    by_claim: BTreeMap<Key, BTreeSet<Key>>,
    until: BTreeSet<(Time, Key)>,
}

struct Wait {
    node: String,
    claims: Vec<Awaited>,
    until: Time,
}

struct Awaited {
    claim: Key,
    /// Its volume is to be made for the node.
    is_to_be_made: bool,
    /// The claim has been seen to name the node: from then on it must.
    named_node: bool,
}

/// How far one pod's volumes are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// This claim is not bound yet.
    Open(Key),
    Bound,
    Failed(String),
}

impl WaitingPods {
    pub(crate) fn begin(&mut self, pod: &Key, node: &str, decisions: &Decisions, until: Time) {
        let awaited = |claim: &Key, is_to_be_made| Awaited { claim: claim.clone(), is_to_be_made, named_node: false };
        let chosen = decisions.volumes.iter().map(|it| awaited(&it.1, false));
        let claims: Vec<Awaited> = chosen.chain(decisions.to_be_made.iter().map(|it| awaited(it, true))).collect();
        for it in &claims {
            self.by_claim.entry(it.claim.clone()).or_default().insert(pod.clone());
        }
        self.until.insert((until, pod.clone()));
        self.pods.insert(pod.clone(), Wait { node: node.to_owned(), claims, until });
    }

    /// Ends a pod's wait, and gives the claims it waited for.
    pub(crate) fn end(&mut self, pod: &Key) -> Vec<Key> {
        let Some(wait) = self.pods.remove(pod) else { return Vec::new() };
        self.until.remove(&(wait.until, pod.clone()));
        for it in &wait.claims {
            if let Some(pods) = self.by_claim.get_mut(&it.claim) {
                pods.remove(pod);
                if pods.is_empty() {
                    self.by_claim.remove(&it.claim);
                }
            }
        }
        wait.claims.into_iter().map(|it| it.claim).collect()
    }

    pub(crate) fn pods_of(&self, claim: &Key) -> Vec<Key> {
        self.by_claim.get(claim).into_iter().flatten().cloned().collect()
    }

    /// When the next pod has waited long enough, and which that is.
    pub(crate) fn next(&self) -> Option<&(Time, Key)> {
        self.until.first()
    }

    /// Nothing, where the pod waits for no volumes (`checkBindings`, in its words).
    pub(crate) fn progress(
        &mut self,
        pod: &Key,
        storage: &Storage,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Option<Progress> {
        let wait = self.pods.get_mut(pod)?;
        let Some(labels) = labels else { return Some(Progress::Failed(format!("node {:?} not found", wait.node))) };
        let mut open = None;
        for awaited in &mut wait.claims {
            match awaited.progress(&wait.node, labels, storage) {
                Progress::Bound => {}
                Progress::Open(claim) => open = open.or(Some(claim)),
                failed @ Progress::Failed(_) => return Some(failed),
            }
        }
        Some(open.map_or(Progress::Bound, Progress::Open))
    }
}

impl Awaited {
    fn progress(&mut self, node: &str, labels: &BTreeMap<String, String>, storage: &Storage) -> Progress {
        let name = &self.claim.name;
        let Some(claim) = storage.claim(&self.claim) else {
            return Progress::Failed(format!("persistentvolumeclaim {name:?} not found"));
        };
        if claim.metadata.is_deleting() {
            return Progress::Failed(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if self.is_to_be_made {
            let named = claim.selected_node().unwrap_or_default();
            if self.named_node && named != node {
                let said = format!("selectedNode annotation value {named:?} not set to scheduled node {node:?}");
                return Progress::Failed(said);
            }
            self.named_node |= named == node;
        }
        // A claim may be seen before its volume is.
        let volume = storage.volume(&claim.spec.volume_name).filter(|_| claim.is_bound());
        match volume {
            None => Progress::Open(self.claim.clone()),
            Some(volume) if !is_reachable(&volume.spec, labels) => Progress::Failed(format!(
                "pv {:?} node affinity doesn't match node {node:?}: no matching NodeSelectorTerms",
                volume.metadata.name
            )),
            Some(_) => Progress::Bound,
        }
    }
}
