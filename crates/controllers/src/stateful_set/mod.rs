//! Keeps a row of pods with names, storage and an order of their own for each StatefulSet.
//!
//! ```text
//! reconcile: claim pods -> find or make the revision -> lowest ordinal to highest: keep each
//!                       -> surplus, highest first -> update, highest first -> status
//! ```
//! With the policy `OrderedReady` each step waits until all before it are available; with `Parallel` none waits.

mod claims;
mod identity;
mod rollout;
mod status;
mod update;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Plan, Verb, View, Wake, Watch, Write};

use rollout::Rollout;

use crate::{
    ownership::{claim_pods_and_revisions, controlled_by},
    projections::{ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet},
};

pub struct StatefulSets;

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<StatefulSet>(Wake::Itself),
            Watch::new::<Pod>(Wake::With(sets_of_pod)),
            Watch::new::<PersistentVolumeClaim>(Wake::With(sets_of_claim)),
            Watch::new::<ControllerRevision>(Wake::Controller("StatefulSet")),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::PODS,
                    fields: &["metadata.labels", "metadata.ownerReferences"],
                },
                Write { verb: Verb::Create, resource: resources::PERSISTENT_VOLUME_CLAIMS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::PERSISTENT_VOLUME_CLAIMS,
                    fields: &["metadata.ownerReferences"],
                },
                Write { verb: Verb::Create, resource: resources::CONTROLLER_REVISIONS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::CONTROLLER_REVISIONS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::CONTROLLER_REVISIONS,
                    fields: &["metadata.ownerReferences", "revision"],
                },
                Write { verb: Verb::Patch, resource: resources::STATEFUL_SETS, fields: &["status"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(set) = view.get::<StatefulSet>(key) else { return Plan::default() };
        let selector = &set.spec.selector.selector;
        let is_named_so = |it: &Pod| identity::ordinal(&set.metadata.name, &it.metadata.name).is_some();
        let kept = match claim_pods_and_revisions(view, set, selector, is_named_so) {
            Ok(kept) => kept,
            Err(first) => return first,
        };
        match Rollout::new(view, set, kept, now) {
            Ok(rollout) => rollout.run(),
            Err(collided) => collided,
        }
    }
}

/// A pod's controller, or the sets that may adopt it.
fn sets_of_pod(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    if pod.controller().is_some() {
        return controlled_by(pod, "StatefulSet");
    }
    let Some((parent, _)) = identity::parts(&pod.name) else { return Vec::new() };
    let key = Key::new(&*pod.namespace, parent);
    let set = view.get::<StatefulSet>(&key).filter(|it| it.spec.selector.selector.matches(&pod.labels));
    set.map(|_| key).into_iter().collect()
}

/// By its name: a claim need not have owners.
fn sets_of_claim(view: &View, claim: &ObjectMeta) -> Vec<Key> {
    let Some((of, _)) = identity::parts(&claim.name) else { return Vec::new() };
    let sets = view.in_namespace::<StatefulSet>(&claim.namespace);
    let is_of = |it: &&StatefulSet| {
        !it.spec.volume_claim_templates.is_empty()
            && of.strip_suffix(&*it.metadata.name).is_some_and(|template| template.ends_with('-'))
    };
    sets.filter(is_of).map(|it| it.metadata.key()).collect()
}
