//! The Pods of all nodes, by which a driver's sidecars are found.

use std::task::{Context, Poll};

use corten_api::resources::{MIRROR_POD, PODS};
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode};
use corten_meta::ObjectMeta;
use corten_provisioner::{DriverPod, Event, PodContainer};
use serde::Deserialize;

use super::BATCH;

/// Pods, as far as they show drivers and sidecars.
pub(super) fn pods(client: &Client, node: &str) -> Informer<DriverPod> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PodObject {
        metadata: ObjectMeta,
        spec: Spec,
        #[serde(default)]
        status: Status,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        node_name: String,
        #[serde(default)]
        volumes: Vec<Volume>,
        #[serde(default)]
        containers: Vec<Container>,
        #[serde(default)]
        init_containers: Vec<Container>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Volume {
        host_path: Option<HostPath>,
    }
    #[derive(Deserialize)]
    struct HostPath {
        path: String,
    }
    #[derive(Deserialize)]
    struct Container {
        #[serde(default)]
        image: String,
        #[serde(default)]
        command: Vec<String>,
    }
    #[derive(Default, Deserialize)]
    struct Status {
        #[serde(default)]
        phase: String,
    }
    let container =
        |it: Container| PodContainer { image: it.image, program: it.command.into_iter().next().unwrap_or_default() };
    Informer::decoding(client.clone(), InformerParams::all(PODS).seeded_by(node), move |bytes| {
        let PodObject { metadata, mut spec, status } = decode(&bytes)?;
        // One that a node runs from its files: what stands in it is the node's word, and not that of somebody who may make Pods there.
        if metadata.annotations.contains_key(MIRROR_POD) {
            spec = Spec::default();
        }
        let pod = DriverPod {
            node: spec.node_name,
            folders: spec.volumes.into_iter().filter_map(|it| Some(it.host_path?.path)).collect(),
            containers: spec.containers.into_iter().chain(spec.init_containers).map(container).collect(),
            is_finished: matches!(&*status.phase, "Succeeded" | "Failed"),
        };
        Ok((Identity::of(&metadata), pod))
    })
}

pub(super) fn news_of_pods(pods: &mut Informer<DriverPod>, context: &mut Context<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..BATCH {
        let Poll::Ready(event) = pods.poll_event(context) else { break };
        events.push(match event {
            InformerEvent::Applied(it, identity) => Event::Pod(identity.key, it),
            InformerEvent::Deleted(meta) => Event::PodGone(meta.key()),
            InformerEvent::Synced(_) => Event::PodsSynced,
        });
    }
    events
}
