//! What the scheduler is told of storage: claims, volumes, and what says where volumes can be made; and of devices.

use std::task::Context;

use corten_client::{Client, Informer};
use corten_reconcile::Projection;
use corten_scheduler::{
    Attachment, Claim, CsiDriver, CsiNode, DeviceClaim, DeviceClass, DeviceSlice, DeviceTaintRule, Event,
    StorageCapacity, StorageClass, StorageObject, Volume,
};

use super::{informer, taken_in};

pub(super) struct StorageInformers {
    claims: Informer<Claim>,
    volumes: Informer<Volume>,
    classes: Informer<StorageClass>,
    drivers: Informer<CsiDriver>,
    nodes: Informer<CsiNode>,
    capacities: Informer<StorageCapacity>,
    attachments: Informer<Attachment>,
    device_slices: Informer<DeviceSlice>,
    device_classes: Informer<DeviceClass>,
    device_claims: Informer<DeviceClaim>,
    device_taint_rules: Informer<DeviceTaintRule>,
}

impl StorageInformers {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            claims: informer(client, Claim::RESOURCE, false),
            volumes: informer(client, Volume::RESOURCE, false),
            classes: informer(client, StorageClass::RESOURCE, true),
            drivers: informer(client, CsiDriver::RESOURCE, true),
            nodes: informer(client, CsiNode::RESOURCE, true),
            capacities: informer(client, StorageCapacity::RESOURCE, true),
            attachments: informer(client, Attachment::RESOURCE, true),
            device_slices: informer(client, DeviceSlice::RESOURCE, true),
            device_classes: informer(client, DeviceClass::RESOURCE, true),
            device_claims: informer(client, DeviceClaim::RESOURCE, true),
            device_taint_rules: informer(client, DeviceTaintRule::RESOURCE, true),
        }
    }

    pub(super) fn is_synced(&self) -> bool {
        let lists = [
            self.claims.n_lists(),
            self.volumes.n_lists(),
            self.classes.n_lists(),
            self.drivers.n_lists(),
            self.nodes.n_lists(),
            self.capacities.n_lists(),
            self.attachments.n_lists(),
            self.device_slices.n_lists(),
            self.device_classes.n_lists(),
            self.device_claims.n_lists(),
            self.device_taint_rules.n_lists(),
        ];
        lists.iter().all(|it| *it > 0)
    }

    /// What is new, in the order in which it is of use, and whether there is nothing more.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> (Vec<Event>, bool) {
        let mut events = Vec::new();
        let are_drained = [
            poll(&mut self.classes, context, &mut events),
            poll(&mut self.drivers, context, &mut events),
            poll(&mut self.nodes, context, &mut events),
            poll(&mut self.capacities, context, &mut events),
            poll(&mut self.volumes, context, &mut events),
            poll(&mut self.attachments, context, &mut events),
            poll(&mut self.claims, context, &mut events),
            poll(&mut self.device_classes, context, &mut events),
            poll(&mut self.device_taint_rules, context, &mut events),
            poll(&mut self.device_slices, context, &mut events),
            poll(&mut self.device_claims, context, &mut events),
        ];
        (events, are_drained.iter().all(|it| *it))
    }
}

fn poll<T: Projection + Into<StorageObject>>(
    informer: &mut Informer<T>,
    context: &mut Context<'_>,
    events: &mut Vec<Event>,
) -> bool {
    taken_in(informer, context, events, |it| Event::Storage(Box::new(it.into())), Event::StorageGone)
}
