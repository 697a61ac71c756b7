//! What the managers can hand out, and who has what of it: for whoever asks (the PodResources API).

use std::collections::BTreeMap;

use super::Managers;
use crate::{Config, CpuSet, ManagerStates, MemoryBlock, Share, Shares};

/// What there is and who has it, by what was written down last.
///
/// # Errors
/// As [`crate::check_managers`].
pub fn shares(config: &Config, states: ManagerStates) -> Result<Shares, String> {
    let managers = Managers::new(&Config { manager_states: states, ..config.clone() })?;
    let mut pods: BTreeMap<String, BTreeMap<String, Share>> = BTreeMap::new();
    let mut cpus = CpuSet::default();
    if let Some(cpu) = &managers.cpu {
        cpus = cpu.allocatable();
        for (uid, containers) in cpu.given() {
            for (name, own) in containers {
                pods.entry(uid.clone()).or_default().entry(name.clone()).or_default().cpus = own.clone();
            }
        }
    }
    let mut memory: Vec<MemoryBlock> = Vec::new();
    if let Some(it) = &managers.memory {
        memory = it.allocatable();
        for (uid, containers) in it.given() {
            for (name, blocks) in containers {
                pods.entry(uid.to_owned()).or_default().entry(name.to_owned()).or_default().memory = blocks;
            }
        }
    }
    Ok(Shares { cpus, memory, pods })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, MachineTopology};

    #[test]
    fn who_has_which_cpus() {
        let mut config = Config::new("n1", "192.168.0.1");
        assert_eq!(shares(&config, ManagerStates::default()), Ok(Shares::default()));
        let cpu = |core| Cpu { core, ..Cpu::default() };
        let numa_nodes = [(0, crate::NumaNode::default())].into();
        config.managers.machine = MachineTopology { cpus: (0..4).map(|it| (it, cpu(it))).collect(), numa_nodes };
        config.managers.cpu.is_static = true;
        config.reserved_cpu_millis = 1000;
        let text = r#"{"policyName":"static","defaultCpuSet":"0-1","entries":{"u1":{"c":"2-3"}},"checksum":0}"#;
        let states = ManagerStates { cpu: Some(text.into()), memory: None };
        let found = shares(&config, states).expect("readable");
        assert_eq!((found.cpus.to_string(), found.pods["u1"]["c"].cpus.to_string()), ("1-3".into(), "2-3".into()));
    }
}
