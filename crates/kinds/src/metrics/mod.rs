//! What nodes and pods use just now (`metrics.k8s.io`): measured when somebody asks, never stored.

pub(crate) mod node_metrics;
pub(crate) mod pod_metrics;

use corten_meta::Quantity;
use serde_json::{Value, json};

use crate::{Column, columns::column};

/// As in metrics-server: resources are columns by their own names.
const CPU: Column = Column { format: "quantity", ..column("cpu", "", |object, _| json!(sum(object, "cpu"))) };
const MEMORY: Column = Column { format: "quantity", ..column("memory", "", |object, _| json!(sum(object, "memory"))) };
const WINDOW: Column = Column { format: "duration", ..column("Window", "", |object, _| object["window"].clone()) };

/// What the object uses; of a pod: what its containers use together.
fn sum(object: &Value, resource: &str) -> String {
    if let Some(text) = object["usage"][resource].as_str() {
        return text.to_owned();
    }
    let containers = object["containers"].as_array().into_iter().flatten();
    let used = containers.filter_map(|it| it["usage"][resource].as_str()?.parse().ok());
    used.fold(Quantity::ZERO, Quantity::plus).to_string()
}
