//! A Pod learns from its binding where its node stands: the zone and the region, as labels.

use corten_api::resources::NODES;
use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use serde_json::{Value, json};

use super::{Admission, Attributes};

pub(crate) struct PodTopologyLabels;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

impl Admission for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, binding: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !request.binds_pod() {
                return Ok(());
            }
            let nodes = request.cluster.caches().get(&NODES).expect("nodes are a row of the table");
            let name = binding["target"]["name"].as_str().unwrap_or_default();
            let Some(node) = nodes.get("", name) else { return Ok(()) };
            for label in LABELS {
                if let Some(value) = node.labels().get(label) {
                    if !binding["metadata"]["labels"].is_object() {
                        binding["metadata"]["labels"] = json!({});
                    }
                    binding["metadata"]["labels"][label] = json!(value);
                }
            }
            Ok(())
        })
    }
}
