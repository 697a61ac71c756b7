//! Reads how CPUs and memory are handed out: upstream's options of the CPU, memory and topology managers.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use corten_kubelet::{CpuConfig, CpuSet, ManagersConfig, MemoryConfig, TopologyConfig, TopologyPolicy, TopologyScope};
use corten_meta::Quantity;

/// All combinations of so many NUMA nodes are looked at: 2ⁿ.
const NUMA_NODES_MAX: u32 = 16;

/// `text` has the value of an option by its name.
pub(crate) fn managers<'t>(text: &dyn Fn(&str) -> &'t str) -> Result<ManagersConfig> {
    let mut cpu =
        CpuConfig { is_static: policy(text, "cpu-manager-policy", ["none", "static"])?, ..CpuConfig::default() };
    cpu.reserved =
        text("reserved-cpus").parse::<CpuSet>().map_err(anyhow::Error::msg).context("reading --reserved-cpus")?;
    for (name, value) in pairs(text, "cpu-manager-policy-options")? {
        let flag = || value.parse::<bool>().with_context(|| format!("bad value for option {name:?}: {value:?}"));
        match name.as_str() {
            "full-pcpus-only" => cpu.full_cores_only = flag()?,
            "strict-cpu-reservation" => cpu.strict_reservation = flag()?,
            "prefer-align-cpus-by-uncorecache" => cpu.prefers_uncore_cache = flag()?,
            "align-by-socket" | "distribute-cpus-across-cores" => {
                anyhow::bail!("CPU Manager Policy Alpha-level Options not enabled, but option {name:?} provided")
            }
            "distribute-cpus-across-numa" => cpu.spreads = flag()?,
            _ => anyhow::bail!("unknown CPU Manager Policy option: {name:?}"),
        }
    }
    let memory = MemoryConfig {
        is_static: policy(text, "memory-manager-policy", ["None", "Static"])?,
        reserved: reserved_memory(text("reserved-memory")).context("reading --reserved-memory")?,
    };
    Ok(ManagersConfig { topology: topology(text)?, cpu, memory, ..ManagersConfig::default() })
}

/// Is it the second one?
fn policy<'t>(text: &dyn Fn(&str) -> &'t str, option: &str, [off, on]: [&str; 2]) -> Result<bool> {
    let value = text(option);
    anyhow::ensure!(value == off || value == on, "reading --{option}: must be {off} or {on}");
    Ok(value == on)
}

fn topology<'t>(text: &dyn Fn(&str) -> &'t str) -> Result<TopologyConfig> {
    let policy = match text("topology-manager-policy") {
        "none" => TopologyPolicy::None,
        "best-effort" => TopologyPolicy::BestEffort,
        "restricted" => TopologyPolicy::Restricted,
        "single-numa-node" => TopologyPolicy::SingleNumaNode,
        _ => anyhow::bail!(
            "reading --topology-manager-policy: must be none, best-effort, restricted or single-numa-node"
        ),
    };
    let scope = match text("topology-manager-scope") {
        "container" => TopologyScope::Container,
        "pod" => TopologyScope::Pod,
        _ => anyhow::bail!("reading --topology-manager-scope: must be container or pod"),
    };
    let mut topology = TopologyConfig { policy, scope, ..TopologyConfig::default() };
    for (name, value) in pairs(text, "topology-manager-policy-options")? {
        let bad = || format!("bad value for option {name:?}: {value:?}");
        match name.as_str() {
            "prefer-closest-numa-nodes" => topology.prefers_closest_numa_nodes = value.parse().with_context(bad)?,
            "max-allowable-numa-nodes" => {
                let default = topology.numa_nodes_max;
                topology.numa_nodes_max = value.parse().with_context(bad)?;
                anyhow::ensure!(
                    (default..=NUMA_NODES_MAX).contains(&topology.numa_nodes_max),
                    "{}: must be between {default} and {NUMA_NODES_MAX}",
                    bad()
                );
            }
            _ => anyhow::bail!("unknown Topology Manager Policy option: {name:?}"),
        }
    }
    Ok(topology)
}

/// `name=value,…`
fn pairs<'t>(text: &dyn Fn(&str) -> &'t str, option: &str) -> Result<Vec<(String, String)>> {
    let pair = |it: &str| {
        let (name, value) =
            it.split_once('=').with_context(|| format!("reading --{option}: {it:?} is not of the form name=value"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    text(option).split(',').map(str::trim).filter(|it| !it.is_empty()).map(pair).collect()
}

/// `0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi`
fn reserved_memory(text: &str) -> Result<BTreeMap<u32, BTreeMap<String, u64>>> {
    let mut nodes: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    for part in text.split(';').map(str::trim).filter(|it| !it.is_empty()) {
        let (node, kinds) =
            part.split_once(':').with_context(|| format!("{part:?} is not of the form node:memory=quantity"))?;
        let node: u32 = node.trim().parse().with_context(|| format!("{node:?} is no NUMA node"))?;
        for pair in kinds.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (kind, value) =
                pair.split_once('=').with_context(|| format!("{pair:?} is not of the form memory=quantity"))?;
            anyhow::ensure!(
                kind == "memory" || kind.starts_with("hugepages-"),
                "{kind:?} cannot be reserved: only memory and hugepages-SIZE"
            );
            let quantity: Quantity = value.parse().with_context(|| format!("{value:?}"))?;
            let bytes = u64::try_from(quantity.value()).ok().filter(|it| *it > 0);
            let bytes = bytes.with_context(|| format!("{pair}: must be greater than zero"))?;
            let is_new = nodes.entry(node).or_default().insert(kind.to_owned(), bytes).is_none();
            anyhow::ensure!(is_new, "{kind} of NUMA node {node} is reserved twice");
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&'static str, &'static str)]) -> Result<ManagersConfig> {
        let default = |name: &str| match name {
            "cpu-manager-policy" | "topology-manager-policy" => "none",
            "memory-manager-policy" => "None",
            "topology-manager-scope" => "container",
            _ => "",
        };
        managers(&|name| given.iter().find(|it| it.0 == name).map_or(default(name), |it| it.1))
    }

    #[test]
    fn options_are_read_as_upstream_reads_them() {
        assert_eq!(read(&[]).expect("defaults"), ManagersConfig::default());
        let given = read(&[
            ("cpu-manager-policy", "static"),
            ("cpu-manager-policy-options", "full-pcpus-only=true, strict-cpu-reservation=true"),
            ("reserved-cpus", "0,4"),
            ("memory-manager-policy", "Static"),
            ("reserved-memory", "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=100Mi"),
            ("topology-manager-policy", "single-numa-node"),
            ("topology-manager-scope", "pod"),
            ("topology-manager-policy-options", "max-allowable-numa-nodes=9"),
        ]);
        let given = given.expect("fine");
        assert!(given.cpu.full_cores_only && given.cpu.strict_reservation && given.cpu.is_static);
        assert_eq!(given.memory.reserved[&0]["hugepages-1Gi"], 2 << 30);
        assert_eq!((given.topology.scope, given.topology.numa_nodes_max), (TopologyScope::Pod, 9));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (option, value, expected) in [
            ("cpu-manager-policy", "Static", "reading --cpu-manager-policy: must be none or static"),
            ("cpu-manager-policy-options", "x=1", "unknown CPU Manager Policy option: \"x\""),
            (
                "cpu-manager-policy-options",
                "align-by-socket=true",
                "CPU Manager Policy Alpha-level Options not enabled, but option \"align-by-socket\" provided",
            ),
            (
                "topology-manager-policy-options",
                "max-allowable-numa-nodes=64",
                "bad value for option \"max-allowable-numa-nodes\": \"64\": must be between 8 and 16",
            ),
            (
                "reserved-memory",
                "0:cpu=1",
                "reading --reserved-memory: \"cpu\" cannot be reserved: only memory and hugepages-SIZE",
            ),
            ("reserved-memory", "0:memory=0", "reading --reserved-memory: memory=0: must be greater than zero"),
            ("reserved-cpus", "3-1", "reading --reserved-cpus: invalid range \"3-1\" (3 > 1)"),
        ] {
            assert_eq!(format!("{:#}", read(&[(option, value)]).expect_err("refused")), expected);
        }
    }
}
