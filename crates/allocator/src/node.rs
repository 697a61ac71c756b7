//! From which nodes a device can be used.

use std::collections::BTreeMap;

use corten_api::{
    core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm},
    resource::v1::{Device, ResourceSliceSpec},
    scheduling::{node_field, requirement_holds, term_matches},
};

/// The node for which devices are wanted.
#[derive(Clone, Copy, Debug)]
pub struct TargetNode<'a> {
    pub name: &'a str,
    pub labels: &'a BTreeMap<String, String>,
}

/// Does the selector select the node?
pub fn selects(selector: &NodeSelector, node: TargetNode<'_>) -> bool {
    selector.node_selector_terms.iter().any(|it| matches(it, node))
}

fn matches(term: &NodeSelectorTerm, node: TargetNode<'_>) -> bool {
    let holds = |it: &NodeSelectorRequirement, value: Option<&str>| {
        requirement_holds(&it.operator, it.values.iter().flatten().map(String::as_str), value)
    };
    let labels = term.match_expressions.iter().flatten();
    let labels = labels.map(|it| holds(it, node.labels.get(&it.key).map(String::as_str)));
    let fields = term.match_fields.iter().flatten().map(|it| holds(it, node_field(&it.key, node.name)));
    term_matches(labels.chain(fields))
}

/// Can the node use the device?
pub(crate) fn reaches(slice: &ResourceSliceSpec, device: &Device, node: TargetNode<'_>) -> bool {
    if slice.per_device_node_selection == Some(true) {
        return is_on(device.all_nodes, device.node_name.as_deref(), device.node_selector.as_ref(), node);
    }
    is_on(slice.all_nodes, slice.node_name.as_deref(), slice.node_selector.as_ref(), node)
}

fn is_on(all: Option<bool>, name: Option<&str>, selector: Option<&NodeSelector>, node: TargetNode<'_>) -> bool {
    all == Some(true)
        || name.is_some_and(|it| !it.is_empty() && it == node.name)
        || selector.is_some_and(|it| selects(it, node))
}

/// Can every node use it?
pub(crate) fn is_everywhere(slice: &ResourceSliceSpec, device: &Device) -> bool {
    let of_slice = slice.per_device_node_selection != Some(true) && slice.all_nodes == Some(true);
    of_slice || device.all_nodes == Some(true)
}

/// Selects this node alone.
pub(crate) fn only(node: TargetNode<'_>) -> NodeSelector {
    let name = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.name.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![name]), ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}
