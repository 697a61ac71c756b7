//! Which volumes VolumeAttachments name on which nodes: they take a place there beside those of Pods, which may have left.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::Attachment;

#[derive(Default)]
pub(super) struct Attachments {
    /// By name: the node, and the volume.
    all: BTreeMap<String, (String, String)>,
    of_nodes: BTreeMap<String, BTreeSet<String>>,
}

impl Attachments {
    pub(super) fn knows(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// One of a volume that is in a Pod itself names none.
    pub(super) fn set(&mut self, attachment: Attachment) {
        let (name, spec) = (attachment.metadata.name, attachment.spec);
        self.remove(&name);
        let Some(volume) = spec.source.persistent_volume_name else { return };
        self.of_nodes.entry(spec.node_name.clone()).or_default().insert(name.clone());
        self.all.insert(name, (spec.node_name, volume));
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some((node, _)) = self.all.remove(name) {
            super::forget(&mut self.of_nodes, &node, name);
        }
    }

    /// The names of the node's volumes.
    pub(super) fn on(&self, node: &str) -> impl Iterator<Item = &str> {
        let names = self.of_nodes.get(node).into_iter().flatten();
        names.filter_map(move |it| self.all.get(it)).map(|it| &*it.1)
    }
}
