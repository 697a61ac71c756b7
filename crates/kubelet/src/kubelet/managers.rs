//! Who hands out what belongs to certain CPUs and NUMA nodes, asked together: the pod has all of it, or is not taken.

use corten_api::core::v1::Pod;

use crate::{
    ManagersConfig,
    node::{
        admission::Rejection,
        topology::{self, HintProvider, Numa},
    },
};

/// Those who hand out by NUMA nodes.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    numa: Numa,
}

impl Managers {
    pub(crate) fn new(config: &ManagersConfig) -> Self {
        let distances = config.machine.numa_nodes.iter().map(|(node, it)| (*node, it.distances.clone())).collect();
        Self { numa: Numa { nodes: config.machine.nodes(), distances } }
    }

    /// Gives the pod what it asks for; where not all of it can be given, nothing is.
    pub(crate) fn admit(&mut self, config: &ManagersConfig, pod: &Pod) -> Result<(), Rejection> {
        let mut providers: Vec<&mut dyn HintProvider> = Vec::new();
        topology::admit(&config.topology, &self.numa, pod, &mut providers)
    }
}
