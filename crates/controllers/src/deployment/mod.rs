//! Rolls each Deployment out through ReplicaSets, one for every version of its pod template.
//!
//! ```text
//! reconcile: claim sets -> find the new set -> paused or resized? scale what is there
//!                                           -> else one step of the strategy -> status
//! ```
//! One call makes one step; the changes it causes wake it for the next.

mod progress;
mod recreate;
mod revision;
mod rollback;
mod rolling;
mod rollout;
mod scale;
mod template;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Plan, Verb, View, Wake, Watch, Write};

use rollout::Rollout;

use crate::{
    ownership::{claim, controlled_by, selects_all},
    projections::{Deployment, DeploymentStatus, Pod, ReplicaSet},
};

pub struct Deployments;

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Deployment>(Wake::Itself),
            Watch::new::<ReplicaSet>(Wake::With(deployments_of_set)),
            Watch::new::<Pod>(Wake::With(outlived_by)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::REPLICA_SETS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::REPLICA_SETS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::REPLICA_SETS,
                    fields: &[
                        "metadata.annotations",
                        "metadata.ownerReferences",
                        "spec.replicas",
                        "spec.minReadySeconds",
                    ],
                },
                Write {
                    verb: Verb::Patch,
                    resource: resources::DEPLOYMENTS,
                    fields: &["metadata.annotations", "spec.template", "status"],
                },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(deployment) = view.get::<Deployment>(key) else { return Plan::default() };
        let selector = &deployment.spec.selector.selector;
        if selector.is_empty() {
            let observed_generation = deployment.metadata.generation;
            let observed = DeploymentStatus { observed_generation, ..deployment.status.clone() };
            return selects_all(deployment, "deployment", &deployment.status, &observed);
        }
        let claim = claim::<Deployment, ReplicaSet>(view, deployment, selector, |_| true);
        if !claim.effects.is_empty() {
            // The rollout begins when the view shows which sets belong here.
            return Plan { effects: claim.effects, ..Plan::default() };
        }
        let rollout = Rollout::new(view, deployment, claim.owned, now);
        if deployment.metadata.is_deleting() {
            return rollout.with_counts();
        }
        if deployment.spec.paused {
            return scale::run(rollout);
        }
        if let Some(to) = rollback::asked(deployment) {
            return rollback::run(rollout, to);
        }
        if rollout.is_resized() && !replaces_several(&rollout) {
            return scale::run(rollout);
        }
        match &*deployment.spec.strategy.r#type {
            "Recreate" => recreate::run(rollout),
            _ => rolling::run(rollout),
        }
    }
}

/// A deployment that recreates has taken over the sets of a rollout that was under way: which of them is to be resized
/// nobody can say, and replacing them settles the size. (Upstream waits for ever.)
fn replaces_several(rollout: &Rollout<'_>) -> bool {
    rollout.deployment.spec.strategy.r#type == "Recreate" && rollout.active().count() > 1
}

/// A set's controller, or the deployments that may adopt it.
fn deployments_of_set(view: &View, set: &ObjectMeta) -> Vec<Key> {
    if set.controller().is_some() {
        return controlled_by(set, "Deployment");
    }
    let deployments = view.in_namespace::<Deployment>(&set.namespace);
    let adopts = |it: &&Deployment| {
        let selector = &it.spec.selector.selector;
        !selector.is_empty() && selector.matches(&set.labels)
    };
    deployments.filter(adopts).map(|it| it.metadata.key()).collect()
}

/// Deployments wait for single pods in one case: the last ones of a set that wants none have to go.
fn outlived_by(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let set = pod.controller().filter(|it| it.kind == "ReplicaSet");
    let set = set.and_then(|it| view.get::<ReplicaSet>(&Key::new(&*pod.namespace, &*it.name)));
    let owner = set.filter(|it| it.spec.replicas == 0).and_then(|it| it.metadata.controller());
    owner.filter(|it| it.kind == "Deployment").map(|it| Key::new(&*pod.namespace, &*it.name)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use corten_reconcile::fixture::World;

    use super::*;

    #[test]
    fn a_pod_that_outlives_its_version_wakes_the_deployment_that_waits_for_it() {
        let text = "deployment web replicas=1 image=b\n\
                    replica-set web-1 owner=deployment/web replicas=0\n\
                    replica-set web-2 owner=deployment/web replicas=1\n\
                    replica-set alone replicas=0\n\
                    pod old owner=replica-set/web-1 deleting\n\
                    pod new owner=replica-set/web-2\n\
                    pod other owner=replica-set/alone";
        let world = World::parse(text).expect("the world can be read");
        let view = world.view(&Deployments.watches());
        let woken = |pod: &str| {
            let pod = view.get::<Pod>(&Key::new("default", pod)).expect("it is there");
            outlived_by(&view, &pod.metadata)
        };
        assert_eq!(woken("old"), [Key::new("default", "web")]);
        assert!(woken("new").is_empty() && woken("other").is_empty());
    }
}
