//! What there is of memory, and who has it: for whoever asks.

use std::collections::BTreeMap;

use super::{Block, MemoryManager};
use crate::MemoryBlock;

impl MemoryManager {
    /// `GetAllocatableMemory`: what pods can have of each node.
    pub(crate) fn allocatable(&self) -> Vec<MemoryBlock> {
        let mut blocks = Vec::new();
        for (node, state) in self.machine_state() {
            for (kind, table) in state.memory_map {
                if table.allocatable > 0 {
                    blocks.push(MemoryBlock { kind, size: table.allocatable, nodes: [node].into_iter().collect() });
                }
            }
        }
        blocks
    }

    /// By the pods' uids and the containers' names.
    pub(crate) fn given(&self) -> BTreeMap<&str, BTreeMap<&str, Vec<MemoryBlock>>> {
        let block = |it: &Block| MemoryBlock { kind: it.kind.clone(), size: it.size, nodes: it.nodes() };
        let mut given: BTreeMap<&str, BTreeMap<&str, Vec<MemoryBlock>>> = BTreeMap::new();
        for (uid, containers) in &self.assigned {
            for (name, blocks) in containers {
                given.entry(uid).or_default().insert(name, blocks.iter().map(block).collect());
            }
        }
        given
    }
}
