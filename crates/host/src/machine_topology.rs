//! Where the machine's CPUs and its memory are, as the kernel tells it below `/sys/devices/system`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use corten_kubelet::{Cpu, CpuSet, MachineTopology, NumaNode};

/// Of this machine. A kernel without NUMA is one node with all there is.
pub fn machine_topology() -> MachineTopology {
    read(Path::new("/sys/devices/system"), crate::node_facts::memory_total())
}

fn read(system: &Path, memory_bytes: u64) -> MachineTopology {
    let text = |path: &str| fs::read_to_string(system.join(path)).unwrap_or_default().trim().to_owned();
    let set = |path: &str| text(path).parse::<CpuSet>().unwrap_or_default();
    let online: CpuSet = set("cpu/online");
    let mut numa_nodes: BTreeMap<u32, NumaNode> = BTreeMap::new();
    let mut node_of: BTreeMap<u32, u32> = BTreeMap::new();
    // Numbers of nodes are written as those of CPUs are.
    for id in set("node/online").iter() {
        let folder = format!("node/node{id}");
        node_of.extend(set(&format!("{folder}/cpulist")).iter().map(|it| (it, id)));
        let to = text(&format!("{folder}/distance"));
        let distances = to.split_whitespace().filter_map(|it| it.parse().ok());
        let memory_bytes = memory_of(&text(&format!("{folder}/meminfo")));
        let distances = (0..).zip(distances).collect();
        numa_nodes.insert(id, NumaNode { memory_bytes, hugepages: hugepages(&system.join(&folder)), distances });
    }
    if numa_nodes.is_empty() {
        let hugepages = hugepages(Path::new("/sys/kernel/mm"));
        numa_nodes.insert(0, NumaNode { memory_bytes, hugepages, distances: BTreeMap::from([(0, 10)]) });
    }
    let mut cores = BTreeMap::new();
    let mut caches = BTreeMap::new();
    let mut cpus = BTreeMap::new();
    for number in online.iter() {
        let id = |name: &str| text(&format!("cpu/cpu{number}/topology/{name}")).parse::<u32>().ok();
        let socket = id("physical_package_id").unwrap_or(0);
        let numa_node = node_of.get(&number).copied().unwrap_or_else(|| numa_nodes.keys().next().copied().unwrap_or(0));
        // Cores are numbered anew in each socket (and each die of it): the smallest CPU of one names it.
        let siblings = set(&format!("cpu/cpu{number}/topology/thread_siblings_list"));
        let first = siblings.iter().find(|it| online.contains(*it)).unwrap_or(number);
        let core = numbered(&mut cores, first);
        let uncore_cache = numbered(&mut caches, last_level_cache(system, number).unwrap_or(first));
        cpus.insert(number, Cpu { core, socket, numa_node, uncore_cache });
    }
    MachineTopology { cpus, numa_nodes }
}

/// Numbers things in the order they come in.
fn numbered(known: &mut BTreeMap<u32, u32>, thing: u32) -> u32 {
    let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
    *known.entry(thing).or_insert(next)
}

/// The first CPU of those that share the greatest cache this CPU has.
fn last_level_cache(system: &Path, cpu: u32) -> Option<u32> {
    let folders = fs::read_dir(system.join(format!("cpu/cpu{cpu}/cache"))).ok()?;
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
    let caches = folders.flatten().filter_map(|it| Some((number(it.path().join("level"))?, it.path())));
    let (_, last) = caches.max()?;
    let shared: CpuSet = fs::read_to_string(last.join("shared_cpu_list")).ok()?.parse().ok()?;
    shared.iter().next()
}

/// `Node 0 MemTotal:  24684176 kB`, in bytes.
fn memory_of(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|it| it.split_once("MemTotal:"));
    let kib = line.and_then(|it| it.1.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// Of each size how many bytes are set aside.
fn hugepages(folder: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(folder.join("hugepages")).into_iter().flatten().flatten();
    let pages = entries.filter_map(|entry| {
        let size = crate::node_facts::page_size(&entry.file_name().into_string().ok()?)?;
        let count: u64 = fs::read_to_string(entry.path().join("nr_hugepages")).ok()?.trim().parse().ok()?;
        Some((size.0, count.saturating_mul(size.1)))
    });
    pages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets, in each two cores of two threads.
    #[test]
    fn reads_what_the_kernel_writes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("cpu/online", "0-7\n");
        write("node/online", "0-1\n");
        for (node, cpus) in [(0, "0-1,4-5"), (1, "2-3,6-7")] {
            write(&format!("node/node{node}/cpulist"), cpus);
            write(&format!("node/node{node}/distance"), if node == 0 { "10 21" } else { "21 10" });
            write(&format!("node/node{node}/meminfo"), &format!("Node {node} MemTotal:       1024 kB\n"));
            write(&format!("node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"), "3\n");
        }
        for cpu in 0..8_u32 {
            let (core, socket) = (cpu % 4, cpu % 4 / 2);
            write(&format!("cpu/cpu{cpu}/topology/physical_package_id"), &socket.to_string());
            write(&format!("cpu/cpu{cpu}/topology/core_id"), &(core % 2).to_string());
            write(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{core},{}", core + 4));
            let shared = if socket == 0 { "0-1,4-5" } else { "2-3,6-7" };
            for (index, level, shared) in [(0, "1", core.to_string()), (3, "3", shared.to_owned())] {
                write(&format!("cpu/cpu{cpu}/cache/index{index}/level"), level);
                write(&format!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"), &shared);
            }
        }
        let found = read(dir.path(), 0);
        assert_eq!(found.cpus[&6], Cpu { core: 2, socket: 1, numa_node: 1, uncore_cache: 1 });
        assert_eq!(found.cpus[&5], Cpu { core: 1, socket: 0, numa_node: 0, uncore_cache: 0 });
        let hugepages = BTreeMap::from([("2Mi".to_owned(), 3 * 2048 * 1024)]);
        let distances = BTreeMap::from([(0, 21), (1, 10)]);
        assert_eq!(found.numa_nodes[&1], NumaNode { memory_bytes: 1 << 20, hugepages, distances });
    }

    #[test]
    fn finds_this_machine() {
        let found = machine_topology();
        assert_eq!(found.cpus.len(), crate::node_facts::cpus() as usize);
        assert!(found.numa_nodes.values().map(|it| it.memory_bytes).sum::<u64>() > 0);
        assert!(found.cpus.values().all(|it| found.numa_nodes.contains_key(&it.numa_node)));
    }
}
