//! What the scheduler is told of beside nodes, Pods, storage and devices.

use std::task::Context;

use corten_client::{Client, Informer};
use corten_reconcile::Projection;
use corten_scheduler::{
    ClusterObject, DisruptionBudget, Event, Namespace, PodGroup, ReplicaSet, ReplicationController, Service,
    StatefulSet,
};

use super::{informer, labelled_groups::LabelledGroups, taken_in};

pub(super) struct ClusterInformers {
    labelled_groups: LabelledGroups,
    budgets: Informer<DisruptionBudget>,
    namespaces: Informer<Namespace>,
    pod_groups: Informer<PodGroup>,
    stateful_sets: Informer<StatefulSet>,
    replica_sets: Informer<ReplicaSet>,
    replication_controllers: Informer<ReplicationController>,
    services: Informer<Service>,
}

impl ClusterInformers {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            labelled_groups: LabelledGroups::new(client),
            budgets: informer(client, DisruptionBudget::RESOURCE, true),
            namespaces: informer(client, Namespace::RESOURCE, false),
            pod_groups: informer(client, PodGroup::RESOURCE, true),
            stateful_sets: informer(client, StatefulSet::RESOURCE, true),
            replica_sets: informer(client, ReplicaSet::RESOURCE, true),
            replication_controllers: informer(client, ReplicationController::RESOURCE, false),
            services: informer(client, Service::RESOURCE, false),
        }
    }

    pub(super) fn is_synced(&self) -> bool {
        let lists = [
            self.budgets.n_lists(),
            self.namespaces.n_lists(),
            self.pod_groups.n_lists(),
            self.services.n_lists(),
            self.replication_controllers.n_lists(),
            self.replica_sets.n_lists(),
            self.stateful_sets.n_lists(),
        ];
        self.labelled_groups.is_synced() && lists.iter().all(|it| *it > 0)
    }

    /// What is new, and whether there is nothing more.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> (Vec<Event>, bool) {
        let mut events = Vec::new();
        let are_drained = [
            self.labelled_groups.poll(context, &mut events),
            poll(&mut self.namespaces, context, &mut events),
            poll(&mut self.pod_groups, context, &mut events),
            poll(&mut self.stateful_sets, context, &mut events),
            poll(&mut self.replica_sets, context, &mut events),
            poll(&mut self.replication_controllers, context, &mut events),
            poll(&mut self.services, context, &mut events),
            poll(&mut self.budgets, context, &mut events),
        ];
        (events, are_drained.iter().all(|it| *it))
    }
}

fn poll<T: Projection + Into<ClusterObject>>(
    informer: &mut Informer<T>,
    context: &mut Context<'_>,
    events: &mut Vec<Event>,
) -> bool {
    taken_in(informer, context, events, |it| Event::Cluster(Box::new(it.into())), Event::ClusterGone)
}
