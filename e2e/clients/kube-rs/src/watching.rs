//! Watches and copies of what is watched.

use std::pin::pin;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, reflector, watcher},
};
use serde_json::json;
use tokio::time::timeout;

use crate::{PATIENCE, Room, config_map};

#[tokio::test]
async fn a_watch_goes_on_where_it_was_left() -> Result<()> {
    let room = Room::new("watch").await?;
    let api = room.config_maps();
    let params = WatchParams::default().labels("test=yes");
    let mut version = api.list(&ListParams::default()).await?.metadata.resource_version.context("a version")?;
    api.create(&PostParams::default(), &config_map("a", &[])).await?;
    api.create(&PostParams::default(), &config_map("b", &[])).await?;
    api.delete("a", &DeleteParams::default()).await?;
    let mut seen = Vec::new();
    // One event, and then another watch: nothing is lost or comes twice.
    while seen.len() < 3 {
        let mut events = pin!(api.watch(&params, &version).await?);
        let event = timeout(PATIENCE, events.try_next()).await??.context("the watch ended")?;
        let (what, object) = match event {
            WatchEvent::Added(object) => ("added", object),
            WatchEvent::Deleted(object) => ("deleted", object),
            other => panic!("{other:?}"),
        };
        version = object.resource_version().context("a version")?;
        seen.push(format!("{what} {}", object.name_any()));
    }
    assert_eq!(seen, ["added a", "added b", "deleted a"]);
    room.leave().await
}

/// Lists first and watches then, or asks the watch for what is there.
async fn reflects(name: &str, config: watcher::Config) -> Result<()> {
    let room = Room::new(name).await?;
    let api = room.config_maps();
    api.create(&PostParams::default(), &config_map("before", &[])).await?;
    let (store, writer) = reflector::store::<ConfigMap>();
    let mut events =
        pin!(watcher(api.clone(), config.labels("test=yes")).default_backoff().reflect(writer).applied_objects());
    let mut next = async || timeout(PATIENCE, events.try_next()).await?.map_err(anyhow::Error::from);
    assert_eq!(next().await?.context("an object")?.name_any(), "before");
    api.create(&PostParams::default(), &config_map("after", &[])).await?;
    assert_eq!(next().await?.context("an object")?.name_any(), "after");
    api.patch("before", &PatchParams::default(), &Patch::Merge(json!({ "data": { "k": "1" } }))).await?;
    assert_eq!(next().await?.context("an object")?.data.unwrap_or_default()["k"], "1");
    assert_eq!(store.state().len(), 2);
    room.leave().await
}

#[tokio::test]
async fn a_reflector_lists_and_watches() -> Result<()> {
    reflects("reflector", watcher::Config::default().page_size(1)).await
}

#[tokio::test]
async fn a_reflector_streams_its_list() -> Result<()> {
    reflects("streaming", watcher::Config::default().streaming_lists()).await
}

#[tokio::test]
async fn a_reflector_keeps_metadata() -> Result<()> {
    let room = Room::new("metadata").await?;
    let api = room.config_maps();
    api.create(&PostParams::default(), &config_map("a", &[("k", "1")])).await?;
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(room.client.clone(), &room.name);
    let events = watcher(metadata, watcher::Config::default().labels("test=yes"));
    let mut events = pin!(events.applied_objects());
    let object = timeout(PATIENCE, events.next()).await?.context("an object")??;
    assert_eq!(object.name_any(), "a");
    room.leave().await
}
