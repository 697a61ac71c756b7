//! The machines of patterns that are written down, by their texts: so many bytes of them, whatever is stored.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use super::Machine;

/// What all machines may take together; what was made first is forgotten first.
const BYTES_MAX: usize = 64 << 20;
/// A machine is there for both directions, and has room to work in.
const TIMES: usize = 3;
const ROOM_BYTES: usize = 16 << 10;

static CACHE: Mutex<MachineCache> =
    Mutex::new(MachineCache { by_text: BTreeMap::new(), order: VecDeque::new(), bytes: 0 });

struct MachineCache {
    by_text: BTreeMap<Arc<str>, Arc<Machine>>,
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

pub(super) fn find(text: &str) -> Option<Arc<Machine>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner).by_text.get(text).cloned()
}

pub(super) fn keep(text: &Arc<str>, machine: &Arc<Machine>) {
    let mut kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.by_text.contains_key(text) {
        return;
    }
    kept.bytes += weight(machine);
    kept.by_text.insert(text.clone(), machine.clone());
    kept.order.push_back(text.clone());
    while kept.bytes > BYTES_MAX {
        let Some(oldest) = kept.order.pop_front() else { return };
        if let Some(machine) = kept.by_text.remove(&oldest) {
            kept.bytes -= weight(&machine);
        }
    }
}

fn weight(machine: &Machine) -> usize {
    machine.bytes * TIMES + ROOM_BYTES
}
