//! Takes in what bears on placement beside nodes, pods, storage and devices.

use corten_meta::{Key, Resource, Time};
use corten_reconcile::Projection;

use crate::{
    Effect, Scheduler,
    budgets::DisruptionBudget,
    cluster_object::ClusterObject,
    labelled_group::{self, LabelledGroup},
    namespaces::Namespace,
    observer::{Change, QueueEvent, Subject},
    parked::ParkedGroup,
    pod_groups::PodGroup,
};

impl Scheduler {
    pub(crate) fn cluster_seen(&mut self, object: ClusterObject, now: Time) -> Vec<Effect> {
        match object {
            ClusterObject::Budget(it) => self.budgets.set(it),
            ClusterObject::Grouping(it) => self.snapshot.groupings.set(it),
            ClusterObject::PodGroup(it) => {
                let key = it.metadata.key();
                let is_known = self.snapshot.pod_groups.get(&key).is_some();
                self.queue
                    .because(QueueEvent::Of(Subject::PodGroup, if is_known { Change::Update } else { Change::Add }));
                if self.snapshot.pod_groups.set(it) {
                    return self.group_moved(&key, now);
                }
            }
            ClusterObject::Namespace(it) => {
                self.queue.because(QueueEvent::Of(Subject::Namespace, Change::Update));
                if self.snapshot.namespaces.set(it) {
                    self.wake_selecting(now);
                }
            }
        }
        Vec::new()
    }

    pub(crate) fn cluster_gone(&mut self, resource: &Resource, key: &Key) -> Vec<Effect> {
        if *resource == DisruptionBudget::RESOURCE {
            self.budgets.remove(key);
        } else if *resource == Namespace::RESOURCE {
            self.snapshot.namespaces.remove(&key.name);
        } else if *resource == PodGroup::RESOURCE {
            self.snapshot.pod_groups.remove(key);
        } else if *resource == LabelledGroup::RESOURCE {
            self.snapshot.pod_groups.remove(&labelled_group::key_of(key));
        } else {
            self.snapshot.groupings.remove(resource, key);
        }
        Vec::new()
    }

    /// Labels say which group a pod is of, or do not say so any more.
    pub(crate) fn labelled_groups_served(&mut self, are_served: bool, now: Time) -> Vec<Effect> {
        self.queue.because(QueueEvent::Of(Subject::PodGroup, Change::Update));
        let groups = self.snapshot.pod_groups.serve_labelled(are_served);
        groups.iter().flat_map(|it| self.group_moved(it, now)).collect()
    }

    /// Wakes the parked pods to which the labels of a namespace may matter.
    fn wake_selecting(&mut self, now: Time) {
        let is_any_repelled = self.snapshot.has_repelling_pods();
        let selects =
            |it: &ParkedGroup| it.refused_by.may_be_helped(|| is_any_repelled || it.info.selects_namespaces());
        self.queue.wake(selects, now);
    }
}
