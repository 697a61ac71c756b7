//! What is known of drivers, and of the Pods that they may be in.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Handles of volumes, each with the driver's name for a node.
pub type AttachedTo = BTreeSet<(String, String)>;

/// Labels of nodes.
pub type Topology = BTreeMap<String, String>;

/// What a driver of this node can do, of what concerns volumes as such.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DriverFacts {
    pub name: String,
    /// Makes and removes volumes, and nobody else does it for this driver.
    pub provisions: bool,
    /// Grows volumes, and nobody else does it for this driver.
    pub expands: bool,
    /// A volume is grown by the node alone: nothing is asked of the controller, and nobody else says so for it.
    pub expands_nothing: bool,
    /// The file system on a volume is grown by the node after it.
    pub node_expands: bool,
    pub tells_capacity: bool,
    /// Makes volumes known to nodes before they are staged, and nobody else does it for this driver.
    pub attaches: bool,
    /// Attaches volumes that are read only as such.
    pub attaches_read_only: bool,
    /// Has nothing to do when a volume is attached, and nobody else says so for it.
    pub attaches_nothing: bool,
    /// Says where its volumes are attached, and nobody else asks for it.
    pub tells_attached: bool,
    /// Keeps snapshots, and nobody else does it for this driver.
    pub snapshots: bool,
    /// Makes volumes with what others hold.
    pub clones: bool,
    /// Changes parameters of volumes, and nobody else does it for this driver.
    pub modifies: bool,
    /// Says of all volumes whether they are well, and nobody else asks for it.
    pub tells_conditions: bool,
    /// Where a program of somebody else's listens, as its Pods name that; `None`: it is built in.
    pub socket: Option<String>,
    /// This node's labels of the driver's own keys.
    pub topology: Topology,
}

impl DriverFacts {
    /// Is it Corten's own? Others are programs of somebody else's.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.socket.is_none()
    }
}

/// What a CSIDriver says, in Corten's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsiDriverSettings {
    /// Its driver is told for whom it makes what it makes.
    pub wants_metadata: bool,
    /// The nodes that may act for it, between commas; `*`: all.
    pub controller_nodes: String,
}

/// What a Pod shows of the drivers and sidecars in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverPod {
    pub node: String,
    /// Folders of the node that it mounts.
    pub folders: Vec<String>,
    pub containers: Vec<PodContainer>,
    pub is_finished: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodContainer {
    pub image: String,
    /// The first word of its command; empty: the image's own.
    pub program: String,
}
