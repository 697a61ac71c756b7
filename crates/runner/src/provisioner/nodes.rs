//! The labels of all nodes, by which drivers of others say where a volume may be.

use std::task::{Context, Poll};

use corten_api::resources::NODES;
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode_projection};
use corten_meta::ObjectMeta;
use corten_provisioner::{Event, Topology};
use serde::Deserialize;

use super::BATCH;

/// `seed` spreads what many processes ask.
pub(super) fn nodes(client: &Client, seed: &str) -> Informer<Topology> {
    #[derive(Deserialize)]
    struct NodeObject {
        metadata: ObjectMeta,
    }
    Informer::decoding(client.clone(), InformerParams::all(NODES).seeded_by(seed), |bytes| {
        let NodeObject { metadata } = decode_projection(&bytes)?;
        Ok((Identity::of(&metadata), metadata.labels))
    })
}

pub(super) fn news_of_nodes(nodes: &mut Informer<Topology>, context: &mut Context<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..BATCH {
        let Poll::Ready(event) = nodes.poll_event(context) else { break };
        events.push(match event {
            InformerEvent::Applied(labels, identity) => Event::Node(identity.key.name, labels),
            InformerEvent::Deleted(meta) => Event::NodeGone(meta.name),
            InformerEvent::Synced(_) => Event::NodesSynced,
        });
    }
    events
}
