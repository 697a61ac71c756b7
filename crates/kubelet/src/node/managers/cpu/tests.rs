//! Machines and pods as tables: which CPUs containers have, and where that can be.

use serde_json::json;

use super::*;
use crate::{Cpu, NumaNode};

/// CPUs are numbered as Intel's are: first a thread of each core, then the other ones.
fn machine(sockets: u32, cores: u32, threads: u32) -> MachineTopology {
    let n_cores = sockets * cores;
    let cpu = |it: u32| {
        let core = it % n_cores;
        let socket = core / cores;
        (it, Cpu { core, socket, numa_node: socket, uncore_cache: core / 2 })
    };
    let node = |it| (it, NumaNode { memory_bytes: 1 << 30, ..NumaNode::default() });
    MachineTopology { cpus: (0..n_cores * threads).map(cpu).collect(), numa_nodes: (0..sockets).map(node).collect() }
}

fn cpus(text: &str) -> CpuSet {
    text.parse().expect("CPUs")
}

/// Containers as `init:2 web:1 log:500m`; what is before a bar is an init container, a star makes it a sidecar.
fn pod(uid: &str, containers: &str) -> Pod {
    let container = |it: &str| {
        let (name, cpu) = it.split_once(':').expect("name:cpu");
        let always = name.ends_with('*').then_some("Always");
        let resources = json!({ "cpu": cpu, "memory": "1Mi" });
        json!({ "name": name.trim_end_matches('*'), "restartPolicy": always, "resources": { "requests": resources, "limits": resources } })
    };
    let list = |it: &str| it.split_whitespace().map(container).collect::<Vec<_>>();
    let (init, main) = containers.split_once('|').unwrap_or(("", containers));
    serde_json::from_value(
        json!({ "metadata": { "uid": uid }, "spec": { "initContainers": list(init), "containers": list(main) } }),
    )
    .expect("a pod")
}

fn manager(config: CpuConfig, machine: MachineTopology) -> CpuManager {
    CpuManager::new(config, machine, 1000).expect("a manager")
}

const ANYWHERE: TopologyHint = TopologyHint { nodes: None, is_preferred: false };

/// What each container has, or why one has nothing.
fn give(manager: &mut CpuManager, pod: &Pod) -> String {
    let mut given = Vec::new();
    for container in all_containers(pod) {
        if let Err(rejection) = manager.allocate(pod, container, ANYWHERE) {
            manager.release(uid_of(pod));
            return format!("{}: {}", rejection.reason, rejection.message);
        }
        let own = manager.own(uid_of(pod), &container.name).map_or("shared".into(), CpuSet::to_string);
        given.push(format!("{}={own}", container.name));
    }
    given.join(" ")
}

#[test]
fn cpus_are_taken_so_that_the_rest_stays_whole() {
    // Sockets, cores of each, threads of each; what is free; how many are wanted; which.
    for ((sockets, cores, threads), free, wanted, expected) in [
        ((1, 4, 2), "0-7", 1, "0"),
        ((1, 4, 2), "0-7", 2, "0,4"),
        ((1, 4, 2), "0-7", 3, "0-1,4"),
        ((1, 4, 2), "1-7", 1, "4"),
        ((1, 4, 2), "1-7", 3, "1,4-5"),
        ((2, 4, 2), "0-15", 8, "0-3,8-11"),
        ((2, 4, 2), "1-15", 8, "4-7,12-15"),
        ((2, 4, 2), "1-15", 2, "1,9"),
        ((2, 4, 2), "1-15", 9, "4-8,12-15"),
        ((2, 2, 1), "0-3", 3, "0-2"),
        ((1, 4, 2), "0-7", 0, ""),
    ] {
        let machine = machine(sockets, cores, threads);
        let taken = take(&machine, &CpuConfig::default(), &cpus(free), wanted).expect("enough");
        assert_eq!(taken.to_string(), expected, "{sockets}x{cores}x{threads}, {wanted} of {free}");
    }
    let error = take(&machine(1, 4, 1), &CpuConfig::default(), &cpus("0-1"), 3).expect_err("not enough");
    assert_eq!(error, "not enough cpus available to satisfy request: requested=3, available=2");
}

#[test]
fn cpus_of_one_cache_where_one_has_enough() {
    let config = CpuConfig { prefers_uncore_cache: true, ..CpuConfig::default() };
    for (free, wanted, expected) in
        [("0-7", 2, "0,4"), ("1-7", 3, "2-3,6"), ("0-7", 4, "0-1,4-5"), ("1-7", 4, "2-3,6-7")]
    {
        assert_eq!(take(&machine(1, 4, 2), &config, &cpus(free), wanted).expect("enough").to_string(), expected);
    }
}

#[test]
fn what_one_node_cannot_give_is_spread_evenly() {
    let config = CpuConfig { spreads: true, ..CpuConfig::default() };
    let full = CpuConfig { spreads: true, full_cores_only: true, ..CpuConfig::default() };
    // Four sockets, each a NUMA node: of four CPUs, or of two cores of two threads.
    for (config, threads, free, wanted, expected) in [
        // One is enough.
        (&config, 1, "0-15", 4, "0-3"),
        (&config, 1, "0-15", 3, "0-2"),
        // Of two as many from each, and of an odd number the rest from the first.
        (&config, 1, "0-15", 6, "0-2,4-6"),
        (&config, 1, "0-15", 7, "0-3,4-6"),
        // What is left is to lie evenly: those that have more give.
        (&config, 1, "0-7,9-11,13-15", 6, "0-2,4-6"),
        (&config, 1, "0,4-7,8-11,12", 6, "4-6,8-10"),
        (&config, 1, "0-15", 10, "0-3,4-6,8-10"),
        (&config, 1, "0-15", 16, "0-15"),
        // Cores stay whole.
        (&full, 2, "0-15", 6, "0-2,8-10"),
        (&full, 2, "0-15", 8, "0-3,8-11"),
        // Threads that are no whole cores are packed.
        (&full, 2, "0-15", 5, "0-2,8-9"),
    ] {
        let machine = machine(4, 4 / threads, threads);
        let taken = take(&machine, config, &cpus(free), wanted).expect("enough");
        assert_eq!(taken.to_string(), cpus(expected).to_string(), "{threads} threads, {wanted} of {free}");
    }
    let error = take(&machine(4, 4, 1), &config, &cpus("0-1"), 3).expect_err("not enough");
    assert_eq!(error, "not enough cpus available to satisfy request: requested=3, available=2");
}

#[test]
fn who_has_cpus_alone_and_who_shares() {
    let full = CpuConfig { full_cores_only: true, ..CpuConfig::default() };
    let strict = CpuConfig { strict_reservation: true, ..CpuConfig::default() };
    for (config, pods, expected, shared) in [
        (CpuConfig::default(), &["a:2", "a:500m"][..], &["a=1,5", "a=shared"][..], "0,2-4,6-7"),
        (CpuConfig::default(), &["i:2|a:1 b:1"], &["i=1,5 a=4 b=1"], "0,2-3,6-7"),
        (CpuConfig::default(), &["i:2|a:4"], &["i=1,5 a=1-2,5-6"], "0,3-4,7"),
        (CpuConfig::default(), &["s*:2|a:2"], &["s=1,5 a=2,6"], "0,3-4,7"),
        (CpuConfig::default(), &["i:1 s*:1|a:1"], &["i=4 s=4 a=1"], "0,2-3,5-7"),
        (
            CpuConfig::default(),
            &["a:6", "a:2"],
            &[
                "a=1-3,5-7",
                "UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is unexpected",
            ],
            "0,4",
        ),
        (
            full.clone(),
            &["a:3"],
            &["SMTAlignmentError: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"],
            "0-7",
        ),
        (
            full,
            &["a:4", "a:4"],
            &[
                "a=1-2,5-6",
                "SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4, CPUs per core = 2",
            ],
            "0,3-4,7",
        ),
        (strict, &["a:2"], &["a=1,5"], "2-4,6-7"),
    ] {
        let mut manager = manager(config, machine(1, 4, 2));
        let pods = pods.iter().enumerate().map(|(idx, it)| pod(&format!("u{idx}"), it));
        let given: Vec<String> = pods.map(|it| give(&mut manager, &it)).collect();
        assert_eq!(given, expected);
        assert_eq!(manager.shared().to_string(), shared, "{expected:?}");
    }
}

#[test]
fn where_cpus_can_be_had() {
    let shown = |hints: Hints| -> String {
        let hints = hints.get("cpu").cloned().flatten().unwrap_or_default().into_iter();
        let text =
            |it: TopologyHint| format!("{}{}", it.nodes.unwrap_or_default(), if it.is_preferred { "+" } else { "" });
        hints.map(text).collect::<Vec<_>>().join(" ")
    };
    // Two nodes of four CPUs, of which one is reserved; one pod is there before.
    for (before, wanted, expected) in [
        ("a:500m", "a:2", "0+ 1+ 0-1"),
        ("a:500m", "a:4", "1+ 0-1"),
        ("a:500m", "a:5", "0-1+"),
        ("a:2", "a:2", "1+ 0-1"),
        ("a:3", "a:4", "1+ 0-1"),
        ("a:6", "a:2", ""),
        ("a:500m", "a:500m", ""),
    ] {
        let mut manager = manager(CpuConfig::default(), machine(2, 4, 1));
        give(&mut manager, &pod("before", before));
        let wanted = pod("u", wanted);
        assert_eq!(shown(manager.hints(&wanted, &spec_of(&wanted).containers[0])), expected, "{before} {wanted:?}");
    }
    let mut manager = manager(CpuConfig::default(), machine(2, 4, 1));
    let pod = pod("u", "i:4|a:2 b:2");
    assert_eq!(shown(manager.pod_hints(&pod)), "1+ 0-1");
    let affinity = TopologyHint { nodes: Some(NumaNodes::from_iter([1])), is_preferred: true };
    for container in all_containers(&pod) {
        manager.allocate(&pod, container, affinity).expect("given");
    }
    assert_eq!(manager.shared().to_string(), "0-3");
    assert_eq!(shown(manager.pod_hints(&pod)), "1+ 0-1");
}

#[test]
fn what_was_written_is_read_or_refused() {
    let mut first = manager(CpuConfig::default(), machine(1, 4, 2));
    give(&mut first, &pod("u", "a:2"));
    let written = first.state();
    assert_eq!(
        written,
        r#"{"policyName":"static","defaultCpuSet":"0,2-4,6-7","entries":{"u":{"a":"1,5"}},"checksum":CHECKSUM}"#
            .replace(
                "CHECKSUM",
                &serde_json::from_str::<serde_json::Value>(&written).expect("JSON")["checksum"].to_string()
            )
    );
    let mut second = manager(CpuConfig::default(), machine(1, 4, 2));
    second.restore(&written).expect("as it was");
    assert_eq!(second.state(), written);
    let other =
        |from: &str, to: &str| written.replacen(from, to, 1).replacen("\"checksum\":", "\"checksum\":0,\"x\":", 1);
    for (text, expected) in [
        (written.replacen("1,5", "1,6", 1), "could not restore state from checkpoint: checkpoint is corrupted"),
        (
            other("static", "none"),
            "could not restore state from checkpoint: configured policy \"static\" differs from state checkpoint policy \"none\"",
        ),
        (other("1,5", "1,6"), "pod: u, container: a cpuset: \"1,6\" overlaps with default cpuset \"0,2-4,6-7\""),
        (other("0,2-4", "2-4"), "not all reserved cpus: \"0,4\" are present in defaultCpuSet: \"2-4,6-7\""),
        (other("6-7", "6-9"), "current set of available CPUs \"0-7\" doesn't match with CPUs in state \"0-9\""),
        (other("0,2-4,6-7", ""), "default cpuset cannot be empty"),
    ] {
        // One thread is kept for the system: with it goes its core's other one, where two are kept.
        let config = CpuConfig { reserved: cpus("0,4"), ..CpuConfig::default() };
        let mut manager = CpuManager::new(config, machine(1, 4, 2), 0).expect("a manager");
        assert_eq!(manager.restore(&text).expect_err("refused"), expected);
    }
    let none = CpuManager::new(CpuConfig::default(), machine(1, 1, 1), 0).expect_err("refused");
    assert_eq!(none, "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
}
