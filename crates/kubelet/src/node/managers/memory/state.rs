//! The file `memory_manager_state`, in upstream's form.

use serde::{Deserialize, Serialize};

use super::{Assignments, MachineState, MemoryManager, Table};
use crate::node::managers::cpu::state::fnv1a;

/// Upstream's `MemoryManagerCheckpoint`: the state as fields for older versions, and as text, which newer ones read.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Checkpoint {
    policy_name: String,
    machine_state: MachineState,
    #[serde(default, skip_serializing_if = "Assignments::is_empty")]
    entries: Assignments,
    /// Always zero, which upstream takes as not known: of the fields it hashes pointers to Go's values.
    #[serde(default)]
    checksum: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default)]
    data_checksum: u32,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    policy_name: String,
    machine_state: MachineState,
    #[serde(default, skip_serializing_if = "Assignments::is_empty")]
    entries: Assignments,
}

const POLICY: &str = "Static";

impl MemoryManager {
    /// What the file says now.
    pub(crate) fn state(&self) -> String {
        let (machine_state, entries) = (self.machine_state(), self.assigned.clone());
        let state = State { policy_name: POLICY.into(), machine_state, entries };
        let data = serde_json::to_string(&state).unwrap_or_default();
        let data_checksum = sum(&data);
        let State { policy_name, machine_state, entries } = state;
        let checkpoint =
            Checkpoint { policy_name, machine_state, entries, checksum: 0, data: Some(data), data_checksum };
        serde_json::to_string(&checkpoint).unwrap_or_default()
    }

    /// Takes in what an earlier run has written, where it goes with what the machine and the settings are now.
    pub(crate) fn restore(&mut self, text: &str) -> Result<(), String> {
        let restore = |why: String| format!("could not restore state from checkpoint: {why}");
        let Checkpoint { policy_name, machine_state, entries, data, data_checksum, .. } =
            serde_json::from_str(text).map_err(|it| restore(it.to_string()))?;
        let state = match data {
            None => State { policy_name, machine_state, entries },
            Some(data) if sum(&data) != data_checksum => {
                return Err(restore("checkpoint is corrupted".into()));
            }
            Some(data) => serde_json::from_str(&data).map_err(|it| restore(it.to_string()))?,
        };
        if state.policy_name != POLICY {
            let before = state.policy_name;
            return Err(restore(format!(
                "[memorymanager] configured policy {POLICY:?} differs from state checkpoint policy {before:?}"
            )));
        }
        let expected = self.state_of(&state.entries)?;
        if !are_equal(&state.machine_state, &expected) {
            return Err("[memorymanager] the expected machine state is different from the real one".into());
        }
        self.assigned = state.entries;
        Ok(())
    }
}

/// Upstream hashes what Go would print of the text.
fn sum(data: &str) -> u32 {
    fnv1a(&format!("(string){data}"))
}

/// As `areMachineStatesEqual`: nodes of a group may have given in another order.
fn are_equal(one: &MachineState, other: &MachineState) -> bool {
    let given = |state: &MachineState, cells: &[u32], kind: &str| {
        let tables = cells.iter().filter_map(|it| state.get(it)?.memory_map.get(kind));
        tables.fold((0_u64, 0_u64), |(free, reserved), it| {
            (free.saturating_add(it.free), reserved.saturating_add(it.reserved))
        })
    };
    let is_fixed_same = |a: &Table, b: &Table| {
        (a.total, a.system_reserved, a.allocatable) == (b.total, b.system_reserved, b.allocatable)
    };
    one.len() == other.len()
        && one.iter().all(|(id, a)| {
            other.get(id).is_some_and(|b| {
                a.number_of_assignments == b.number_of_assignments
                    && a.group() == b.group()
                    && a.memory_map.len() == b.memory_map.len()
                    && a.memory_map.iter().all(|(kind, table)| {
                        b.memory_map.get(kind).is_some_and(|it| is_fixed_same(table, it))
                            && given(one, &a.cells, kind) == given(other, &a.cells, kind)
                    })
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data of upstream's tests: `TestCheckpointStateRestore`.
    #[test]
    fn sums_as_upstream_sums() {
        let data = r#"{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}}}"#;
        assert_eq!(sum(data), 1_849_615_440);
    }
}
