//! Claims, volumes, their classes, attachments and snapshots, as provisioners are told of them: seen by the loop of one node alone, or
//! once for those of many.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    resources::{
        CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_ATTACHMENTS,
        VOLUME_ATTRIBUTES_CLASSES,
    },
    storage::v1::{StorageClass, VolumeAttachment, VolumeAttributesClass},
    volumes::{CONTROLLER_NODES, EXTRA_CREATE_METADATA},
};
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode, decode_projection};
use corten_meta::{ObjectMeta, Resource};
use corten_provisioner::{CsiDriverSettings, DriverPod, Event, Topology};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    BATCH,
    driver_pods::{news_of_pods, pods},
    nodes::{news_of_nodes, nodes},
    shared::StorageReader,
    snapshots,
};

pub(super) enum StorageSource {
    Alone(Box<Informers>),
    Together(StorageReader),
}

impl StorageSource {
    /// What is new; where nothing is, whoever asks is woken when there is something to decide.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        match self {
            Self::Alone(informers) => informers.poll(context),
            Self::Together(reader) => reader.poll(context),
        }
    }

    /// Drivers of others are to be asked from now on: what shows their sidecars is told, too, and where nodes are, once one has places.
    pub(super) fn show_drivers(&mut self, viewer: &Client, node: &str, are_placed: bool) {
        match self {
            Self::Alone(informers) => informers.show_drivers(viewer, node, are_placed),
            Self::Together(reader) => reader.show_drivers(viewer, are_placed),
        }
    }
}

pub(super) struct Informers {
    claims: Informer<Arc<PersistentVolumeClaim>>,
    volumes: Informer<Arc<PersistentVolume>>,
    classes: Informer<Arc<StorageClass>>,
    attributes_classes: Informer<Arc<VolumeAttributesClass>>,
    attachments: Informer<Arc<VolumeAttachment>>,
    csi_drivers: Informer<(String, CsiDriverSettings)>,
    synced: [bool; 6],
    snapshots: snapshots::Feed,
    /// Of all nodes, once there is a driver that may have sidecars.
    pods: Option<Informer<DriverPod>>,
    /// Their labels, once there is a driver of others that says by labels where a node is.
    nodes: Option<Informer<Topology>>,
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

fn csi_drivers(client: &Client, seed: &str) -> Informer<(String, CsiDriverSettings)> {
    let params = InformerParams::all(CSI_DRIVERS).seeded_by(seed);
    Informer::decoding(client.clone(), params, |bytes| {
        let OnlyMeta { metadata } = decode_projection(&bytes)?;
        let annotation = |name| metadata.annotations.get(name).cloned().unwrap_or_default();
        let settings = CsiDriverSettings {
            wants_metadata: annotation(EXTRA_CREATE_METADATA) == "true",
            controller_nodes: annotation(CONTROLLER_NODES),
        };
        Ok((Identity::of(&metadata), (metadata.name, settings)))
    })
}

pub(super) fn informer<T: DeserializeOwned + 'static>(
    client: &Client,
    resource: Resource,
    seed: &str,
) -> Informer<Arc<T>> {
    let params = InformerParams::all(resource).seeded_by(seed);
    Informer::decoding(client.clone(), params, |bytes| {
        let meta: OnlyMeta = decode_projection(&bytes)?;
        Ok((Identity::of(&meta.metadata), Arc::new(decode(&bytes)?)))
    })
}

/// Takes in what an informer has. True: it has told of all there is.
pub(super) fn drain<T>(
    informer: &mut Informer<T>,
    context: &mut Context<'_>,
    events: &mut Vec<Event>,
    applied: fn(T) -> Event,
    gone: fn(ObjectMeta) -> Event,
) -> bool {
    let mut is_synced = false;
    for _ in 0..BATCH {
        let Poll::Ready(event) = informer.poll_event(context) else { break };
        match event {
            InformerEvent::Applied(it, _) => events.push(applied(it)),
            InformerEvent::Deleted(meta) => events.push(gone(meta)),
            InformerEvent::Synced(_) => is_synced = true,
        }
    }
    is_synced
}

impl Informers {
    /// `seed` spreads what many processes ask.
    pub(super) fn new(client: &Client, seed: &str) -> Self {
        Self {
            claims: informer(client, PERSISTENT_VOLUME_CLAIMS, seed),
            volumes: informer(client, PERSISTENT_VOLUMES, seed),
            classes: informer(client, STORAGE_CLASSES, seed),
            attributes_classes: informer(client, VOLUME_ATTRIBUTES_CLASSES, seed),
            attachments: informer(client, VOLUME_ATTACHMENTS, seed),
            csi_drivers: csi_drivers(client, seed),
            synced: [false; 6],
            snapshots: snapshots::Feed::new(client, seed),
            pods: None,
            nodes: None,
        }
    }

    pub(super) fn show_drivers(&mut self, viewer: &Client, seed: &str, are_placed: bool) {
        self.pods.get_or_insert_with(|| pods(viewer, seed));
        if are_placed {
            self.nodes.get_or_insert_with(|| nodes(viewer, seed));
        }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        let was_synced = self.synced == [true; 6];
        let (on, all) = (&mut *context, &mut events);
        self.synced[0] |= drain(&mut self.classes, on, all, Event::Class, |it| Event::ClassGone(it.name));
        self.synced[1] |= drain(&mut self.volumes, on, all, Event::Volume, |it| Event::VolumeGone(it.name));
        self.synced[2] |= drain(&mut self.claims, on, all, Event::Claim, |it| Event::ClaimGone(it.key()));
        self.synced[3] |= drain(&mut self.attachments, on, all, Event::Attachment, |it| Event::AttachmentGone(it.name));
        let classes = &mut self.attributes_classes;
        self.synced[4] |= drain(classes, on, all, Event::AttributesClass, |it| Event::AttributesClassGone(it.name));
        let drivers = &mut self.csi_drivers;
        let told = |it: (String, CsiDriverSettings)| Event::CsiDriver(it.0, it.1);
        self.synced[5] |= drain(drivers, on, all, told, |it| Event::CsiDriverGone(it.name));
        if !was_synced && self.synced == [true; 6] {
            events.push(Event::Synced);
        }
        events.extend(self.snapshots.poll(context));
        events.extend(self.pods.as_mut().map(|it| news_of_pods(it, context)).into_iter().flatten());
        events.extend(self.nodes.as_mut().map(|it| news_of_nodes(it, context)).into_iter().flatten());
        events
    }
}
