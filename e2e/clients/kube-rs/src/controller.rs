//! A controller as operators have them: it owns objects, has a finalizer, writes status and events.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        controller::Action,
        events::{EventType, Recorder, Reporter},
        finalizer::{self, finalizer},
        wait::{await_condition, conditions},
        watcher,
    },
};
use tokio::time::timeout;

use crate::{PATIENCE, Room, config_map};

const FINALIZER: &str = "test.example.com/copy";

/// Keeps a Secret with the same data beside each ConfigMap.
async fn reconcile(config_map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, finalizer::Error<kube::Error>> {
    let namespace = config_map.namespace().unwrap_or_default();
    let config_maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    finalizer(&config_maps, FINALIZER, config_map, |event| async {
        match event {
            finalizer::Event::Apply(it) => copy(&client, &namespace, &it).await,
            finalizer::Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
}

async fn copy(client: &Client, namespace: &str, config_map: &ConfigMap) -> kube::Result<Action> {
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(config_map.name_any()),
            owner_references: config_map.controller_owner_ref(&()).map(|it| vec![it]),
            ..ObjectMeta::default()
        },
        string_data: config_map.data.clone(),
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    secrets.patch(&config_map.name_any(), &PatchParams::apply("copier").force(), &Patch::Apply(secret)).await?;
    let recorder = Recorder::new(client.clone(), Reporter::from("copier"));
    let note = kube::runtime::events::Event {
        type_: EventType::Normal,
        reason: "Copied".into(),
        note: None,
        action: "Copying".into(),
        secondary: None,
    };
    recorder.publish(&note, &config_map.object_ref(&())).await?;
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_controller_keeps_what_it_owns() -> Result<()> {
    let room = Room::new("controller").await?;
    let config_maps = room.config_maps();
    let secrets: Api<Secret> = Api::namespaced(room.client.clone(), &room.name);
    let controller = Controller::new(config_maps.clone(), watcher::Config::default().labels("test=yes"))
        .owns(secrets.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(200)), Arc::new(room.client.clone()))
        .for_each(|_| async {});
    let controller = tokio::spawn(controller);

    config_maps.create(&PostParams::default(), &config_map("a", &[("k", "1")])).await?;
    let has = |wanted: &'static str| {
        move |it: Option<&Secret>| {
            let data = it.and_then(|it| it.data.as_ref());
            data.and_then(|it| it.get("k")).is_some_and(|it| it.0 == wanted.as_bytes())
        }
    };
    timeout(PATIENCE, await_condition(secrets.clone(), "a", has("1"))).await??;
    // What it owns comes back, and follows.
    let gone = secrets.get("a").await?.uid().unwrap_or_default();
    secrets.delete("a", &DeleteParams::default()).await?;
    timeout(PATIENCE, await_condition(secrets.clone(), "a", conditions::is_deleted(&gone))).await??;
    timeout(PATIENCE, await_condition(secrets.clone(), "a", has("1"))).await??;
    let events: Api<Event> = Api::namespaced(room.client.clone(), &room.name);
    let events = events.list(&ListParams::default().fields("reason=Copied")).await?;
    assert!(!events.items.is_empty(), "it told of what it did");

    // The finalizer lets go, and the garbage collector takes the Secret.
    let (owner, owned) = (config_maps.get("a").await?, secrets.get("a").await?);
    config_maps.delete("a", &DeleteParams::default()).await?;
    let owner = owner.uid().unwrap_or_default();
    timeout(PATIENCE, await_condition(config_maps, "a", conditions::is_deleted(&owner))).await??;
    let owned = owned.uid().unwrap_or_default();
    timeout(PATIENCE, await_condition(secrets, "a", conditions::is_deleted(&owned))).await??;
    controller.abort();
    room.leave().await
}
