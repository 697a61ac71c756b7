//! The file `cpu_manager_state`, in upstream's form: what containers have for themselves, and with it what all others share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Assignments, CpuManager};
use crate::CpuSet;

/// Upstream's `CPUManagerCheckpoint`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Checkpoint {
    policy_name: String,
    // Upstream's test data has the other spelling, and Go reads both.
    #[serde(alias = "defaultCPUSet")]
    default_cpu_set: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    entries: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    checksum: u32,
}

const POLICY: &str = "static";

impl CpuManager {
    /// What the file says now.
    pub(crate) fn state(&self) -> String {
        let texts =
            |it: &BTreeMap<String, CpuSet>| it.iter().map(|(name, it)| (name.clone(), it.to_string())).collect();
        let mut checkpoint = Checkpoint {
            policy_name: POLICY.into(),
            default_cpu_set: self.shared().to_string(),
            entries: self.assigned.iter().map(|(uid, it)| (uid.clone(), texts(it))).collect(),
            checksum: 0,
        };
        checkpoint.checksum = checkpoint.sum();
        serde_json::to_string(&checkpoint).unwrap_or_default()
    }

    /// Takes in what an earlier run has written, where it goes with what the machine and the settings are now.
    pub(crate) fn restore(&mut self, text: &str) -> Result<(), String> {
        let restore = |why: String| format!("could not restore state from checkpoint: {why}");
        let checkpoint: Checkpoint = serde_json::from_str(text).map_err(|it| restore(it.to_string()))?;
        if checkpoint.checksum != 0 && checkpoint.checksum != checkpoint.sum() {
            return Err(restore("checkpoint is corrupted".into()));
        }
        if checkpoint.policy_name != POLICY {
            let before = checkpoint.policy_name;
            return Err(restore(format!(
                "configured policy {POLICY:?} differs from state checkpoint policy {before:?}"
            )));
        }
        let cpus = |it: &str| it.parse::<CpuSet>().map_err(restore);
        let shared = cpus(&checkpoint.default_cpu_set)?;
        let mut assigned = Assignments::new();
        for (uid, containers) in &checkpoint.entries {
            for (name, own) in containers {
                assigned.entry(uid.clone()).or_default().insert(name.clone(), cpus(own)?);
            }
        }
        self.check(&shared, &assigned)?;
        self.assigned = assigned;
        Ok(())
    }

    /// As `validateState`.
    fn check(&self, shared: &CpuSet, assigned: &Assignments) -> Result<(), String> {
        if shared.is_empty() {
            let problem = "default cpuset cannot be empty".to_owned();
            return if assigned.is_empty() { Ok(()) } else { Err(problem) };
        }
        let (usable, reserved) = (self.usable(), &self.reserved);
        if self.config.strict_reservation {
            let both = reserved.intersection(shared);
            if !both.is_empty() {
                return Err(format!(
                    "some of strictly reserved cpus: \"{both}\" are present in defaultCpuSet: \"{shared}\""
                ));
            }
        } else if !reserved.is_subset(shared) {
            return Err(format!("not all reserved cpus: \"{reserved}\" are present in defaultCpuSet: \"{shared}\""));
        }
        let mut known = shared.clone();
        for (uid, containers) in assigned {
            for (name, own) in containers {
                if !own.intersection(shared).is_empty() {
                    return Err(format!(
                        "pod: {uid}, container: {name} cpuset: \"{own}\" overlaps with default cpuset \"{shared}\""
                    ));
                }
                known = known.union(own);
            }
        }
        if known != usable {
            return Err(format!(
                "current set of available CPUs \"{usable}\" doesn't match with CPUs in state \"{known}\""
            ));
        }
        Ok(())
    }
}

impl Checkpoint {
    /// Upstream hashes what Go would print of the value: FNV-1a of the dump of `CPUManagerCheckpoint`, its checksum being zero.
    fn sum(&self) -> u32 {
        let map = |pairs: Vec<String>| format!("map[{}]", pairs.join(" "));
        let of_pod = |(uid, it): (&String, &BTreeMap<String, String>)| {
            format!("{uid}:{}", map(it.iter().map(|(name, cpus)| format!("{name}:{cpus}")).collect()))
        };
        let entries = map(self.entries.iter().map(of_pod).collect());
        let (policy, shared) = (&self.policy_name, &self.default_cpu_set);
        fnv1a(&format!(
            "(*state.CPUManagerCheckpoint){{PolicyName:(string){policy} DefaultCPUSet:(string){shared} Entries:(map[string]map[string]string){entries} Checksum:(checksum.Checksum)0}}"
        ))
    }
}

/// FNV-1a with 32 bits.
pub(crate) fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data of upstream's tests: `TestCheckpointStateRestore`.
    #[test]
    fn sums_as_upstream_sums() {
        for text in [
            r#"{"policyName": "none", "defaultCPUSet": "4-6", "entries": {}, "checksum": 354655845}"#,
            r#"{"policyName": "none", "defaultCpuSet": "1-3",
                "entries": {"pod": {"container1": "4-6", "container2": "1-3"}}, "checksum": 3610638499}"#,
        ] {
            let checkpoint: Checkpoint = serde_json::from_str(text).expect("a checkpoint");
            assert_eq!(checkpoint.sum(), checkpoint.checksum);
        }
    }
}
