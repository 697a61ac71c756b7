//! What is known of the sandboxes of this node.

use std::{collections::BTreeMap, net::IpAddr};

use corten_meta::Key;

use crate::projections::id;

/// A Pod's sandbox, plugged into the network of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSandbox {
    pub sandbox: String,
    pub pod: Key,
    pub uid: String,
    pub addresses: Vec<IpAddr>,
    /// For a Pod that the API does not know. Without them such a one stays cut off.
    pub labels: Option<BTreeMap<String, String>>,
}

impl PodSandbox {
    /// The Pod's: see [`crate::projections::Pod::id`].
    pub fn id(&self) -> String {
        id(&self.uid, &self.pod)
    }
}
