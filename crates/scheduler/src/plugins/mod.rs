//! The table of plugins, in the order their filters run: as in `RunFilterPlugins`, a node is turned down for the first
//! one's reasons.

mod balanced_allocation;
mod dynamic_resources;
mod gang_scheduling;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod node_volume_limits;
mod pod_topology_spread;
mod scheduling_gates;
mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;

use crate::{Plugin, observer::PLUGINS_MAX};
pub(crate) use gang_scheduling::NAME as GANG_SCHEDULING;
pub(crate) use node_affinity::NAME as NODE_AFFINITY;
pub(crate) use node_unschedulable::NAME as NODE_UNSCHEDULABLE;
pub(crate) use taint_toleration::NAME as TAINT_TOLERATION;

pub const PLUGINS: &[Plugin] = &[
    scheduling_gates::PLUGIN,
    gang_scheduling::PLUGIN,
    node_unschedulable::PLUGIN,
    node_name::PLUGIN,
    taint_toleration::PLUGIN,
    node_affinity::PLUGIN,
    node_ports::PLUGIN,
    node_resources_fit::PLUGIN,
    volume_restrictions::PLUGIN,
    node_volume_limits::PLUGIN,
    volume_binding::PLUGIN,
    volume_zone::PLUGIN,
    pod_topology_spread::PLUGIN,
    inter_pod_affinity::PLUGIN,
    dynamic_resources::PLUGIN,
    balanced_allocation::PLUGIN,
    image_locality::PLUGIN,
    node_declared_features::PLUGIN,
];

const _: () = assert!(PLUGINS.len() <= PLUGINS_MAX, "a `PluginSet` has a bit for each plugin");
