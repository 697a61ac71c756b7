//! Keeps one pod of each DaemonSet on every node that it may run on.
//!
//! ```text
//! reconcile: claim pods -> find or make the revision -> nodes that lack a pod, pods that must go
//!                       -> (nothing of that to do) one step of the rolling update -> history -> status
//! ```
//! Each pod is bound to its node by node affinity, and placed there by the scheduler.

mod daemons;
mod eligible;
mod manage;
mod pods;
mod rolling;
mod status;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Plan, Verb, View, Wake, Watch, Write};

use daemons::Daemons;

use crate::{
    ownership::{claim_pods_and_revisions, controlled_by, selects_all},
    projections::{ControllerRevision, DaemonNode, DaemonSet, DaemonSetStatus, Pod},
};

pub struct DaemonSets;

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemon-set"
    }

    fn component(&self) -> String {
        "daemonset-controller".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<DaemonSet>(Wake::Itself),
            Watch::new::<Pod>(Wake::With(sets_of)),
            Watch::new::<DaemonNode>(Wake::With(all_sets)).telling_changes_of::<DaemonNode>(),
            Watch::new::<ControllerRevision>(Wake::Controller("DaemonSet")),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["metadata.ownerReferences"] },
                Write { verb: Verb::Create, resource: resources::CONTROLLER_REVISIONS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::CONTROLLER_REVISIONS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::CONTROLLER_REVISIONS,
                    fields: &["metadata.ownerReferences", "revision"],
                },
                Write { verb: Verb::Patch, resource: resources::DAEMON_SETS, fields: &["status"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(set) = view.get::<DaemonSet>(key) else { return Plan::default() };
        let selector = &set.spec.selector;
        if selector.is_empty() {
            let observed_generation = set.metadata.generation;
            let observed = DaemonSetStatus { observed_generation, ..set.status.clone() };
            return selects_all(set, "daemon set", &set.status, &observed);
        }
        if set.metadata.is_deleting() {
            return Plan::default();
        }
        let kept = match claim_pods_and_revisions(view, set, selector, |_| true) {
            Ok(kept) => kept,
            Err(first) => return first,
        };
        match Daemons::new(view, set, kept, now) {
            Ok(daemons) => daemons.run(),
            Err(collided) => collided,
        }
    }
}

/// A pod's controller, or the sets that may adopt it.
fn sets_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    if pod.controller().is_some() {
        return controlled_by(pod, "DaemonSet");
    }
    let sets = view.in_namespace::<DaemonSet>(&pod.namespace);
    let adopts = |it: &&DaemonSet| !it.spec.selector.is_empty() && it.spec.selector.matches(&pod.labels);
    sets.filter(adopts).map(|it| it.metadata.key()).collect()
}

fn all_sets(view: &View, _node: &ObjectMeta) -> Vec<Key> {
    view.list::<DaemonSet>().map(|it| it.metadata.key()).collect()
}
