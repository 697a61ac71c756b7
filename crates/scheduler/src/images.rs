//! Which images the nodes have, and how large they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::projections::ContainerImage;

/// An image that some node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageState {
    /// As the node that has had it longest says.
    pub(crate) bytes: i64,
    pub(crate) n_nodes: usize,
}

/// All images of all nodes, by name.
#[derive(Debug, Default)]
pub(crate) struct ImageStates(BTreeMap<String, ImageState>);

impl ImageStates {
    pub(crate) fn get(&self, image: &str) -> Option<ImageState> {
        self.0.get(image).copied()
    }

    /// A node had the images named `before` and has these now. Gives their names.
    pub(crate) fn replace(&mut self, before: &BTreeSet<String>, now: &[ContainerImage]) -> BTreeSet<String> {
        let names: BTreeSet<String> = now.iter().flat_map(|it| it.names.iter().cloned()).collect();
        for image in now {
            for name in image.names.iter().filter(|it| !before.contains(*it)) {
                let state = self.0.entry(name.clone()).or_insert(ImageState { bytes: image.size_bytes, n_nodes: 0 });
                state.n_nodes += 1;
            }
        }
        before.difference(&names).for_each(|it| self.drop_one(it));
        names
    }

    pub(crate) fn remove(&mut self, names: &BTreeSet<String>) {
        names.iter().for_each(|it| self.drop_one(it));
    }

    fn drop_one(&mut self, name: &str) {
        if let Some(state) = self.0.get_mut(name) {
            state.n_nodes -= 1;
            if state.n_nodes == 0 {
                self.0.remove(name);
            }
        }
    }
}

/// As the runtime names it: with a tag (`normalizedImageName`).
pub(crate) fn normalized(image: &str) -> String {
    if image.rfind(':') > image.rfind('/') { image.to_owned() } else { format!("{image}:latest") }
}
