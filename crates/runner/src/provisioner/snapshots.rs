//! Snapshots: fed to the provisioner where their kinds are served, taken and removed by the node's drivers, and the kinds
//! themselves, which a cluster is given once.

use std::{sync::Arc, task::Context, time::Duration};

use corten_api::{
    resources::CUSTOM_RESOURCE_DEFINITIONS,
    snapshots::{
        VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, VolumeSnapshot, VolumeSnapshotClass,
        VolumeSnapshotContent,
    },
};
use corten_client::{BoxFuture, Client, Error, Informer};
use corten_meta::{Key, Resource};
use corten_provisioner::{Event, default_snapshot_class, snapshot_definitions};
use futures_util::FutureExt;
use serde_json::Value;

use super::{
    jobs::there,
    storage_source::{drain, informer},
};

/// After which pauses it is looked whether the kinds are served: the first, which doubles up to the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];

/// All snapshots, contents and classes, as soon as there can be some.
pub(super) struct Feed {
    client: Client,
    seed: String,
    /// Ready when the kinds are served.
    served: Option<BoxFuture<'static, ()>>,
    kinds: Option<Kinds>,
}

struct Kinds {
    snapshots: Informer<Arc<VolumeSnapshot>>,
    contents: Informer<Arc<VolumeSnapshotContent>>,
    classes: Informer<Arc<VolumeSnapshotClass>>,
    synced: [bool; 3],
}

impl Feed {
    pub(super) fn new(client: &Client, seed: &str) -> Self {
        let served = Some(served(client.clone()).boxed());
        Self { client: client.clone(), seed: seed.to_owned(), served, kinds: None }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        if self.served.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready()) {
            self.served = None;
            let (client, seed) = (&self.client, &*self.seed);
            self.kinds = Some(Kinds {
                snapshots: informer(client, VOLUME_SNAPSHOTS, seed),
                contents: informer(client, VOLUME_SNAPSHOT_CONTENTS, seed),
                classes: informer(client, VOLUME_SNAPSHOT_CLASSES, seed),
                synced: [false; 3],
            });
        }
        self.kinds.as_mut().map(|it| it.poll(context)).unwrap_or_default()
    }
}

impl Kinds {
    fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        let was_synced = self.synced == [true; 3];
        let all = &mut events;
        self.synced[0] |=
            drain(&mut self.classes, context, all, Event::SnapshotClass, |it| Event::SnapshotClassGone(it.name));
        self.synced[1] |= drain(&mut self.snapshots, context, all, Event::Snapshot, |it| Event::SnapshotGone(it.key()));
        self.synced[2] |= drain(&mut self.contents, context, all, Event::Content, |it| Event::ContentGone(it.name));
        if !was_synced && self.synced == [true; 3] {
            events.push(Event::SnapshotsSynced);
        }
        events
    }
}

fn definition_of(resource: &Resource) -> Key {
    Key::cluster(format!("{}.{}", resource.plural, resource.group))
}

/// Returns when all three kinds are served, whoever brought them.
async fn served(client: Client) {
    let [mut pause, longest] = PAUSES;
    for resource in [VOLUME_SNAPSHOTS, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOT_CLASSES] {
        while !is_served(&client, &resource).await {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

async fn is_served(client: &Client, resource: &Resource) -> bool {
    let Ok(found) = client.get_as::<Value>(&CUSTOM_RESOURCE_DEFINITIONS, &definition_of(resource)).await else {
        return false;
    };
    let has = |list: &Value, is_it: &dyn Fn(&Value) -> bool| list.as_array().into_iter().flatten().any(is_it);
    has(&found["status"]["conditions"], &|it| it["type"] == "Established" && it["status"] == "True")
        && has(&found["spec"]["versions"], &|it| it["name"] == *resource.version && it["served"] == true)
}

/// Gives the cluster the kinds of snapshots and a class, where it has none of that name. Who takes them away later, or brings
/// others, has the last word.
pub(super) async fn introduce(client: &Client, driver: &str) -> Result<(), Error> {
    for definition in snapshot_definitions() {
        there(client.create(&CUSTOM_RESOURCE_DEFINITIONS, "", &definition).await)?;
    }
    served(client.clone()).await;
    there(client.create(&VOLUME_SNAPSHOT_CLASSES, "", &default_snapshot_class(driver)).await)
}
