//! Machines and pods as tables: of which nodes containers have their memory.

use serde_json::json;

use super::*;
use crate::NumaNode;

const GI: u64 = 1 << 30;

/// Nodes of 5 GiB, one of which is one page, and 1 GiB kept on the first.
fn manager(nodes: u32) -> MemoryManager {
    let hugepages = BTreeMap::from([("1Gi".to_owned(), GI)]);
    let node = |it| (it, NumaNode { memory_bytes: 5 * GI, hugepages: hugepages.clone(), ..NumaNode::default() });
    let machine = MachineTopology { numa_nodes: (0..nodes).map(node).collect(), ..MachineTopology::default() };
    let reserved = BTreeMap::from([(0, BTreeMap::from([("memory".to_owned(), GI)]))]);
    MemoryManager::new(MemoryConfig { is_static: true, reserved }, machine, GI).expect("a manager")
}

/// Containers as `init:2` or, with huge pages, `web:1+1`; what is before a bar is an init container.
fn pod(uid: &str, containers: &str) -> Pod {
    let container = |it: &str| {
        let (name, size) = it.split_once(':').expect("name:size");
        let (memory, pages) = size.split_once('+').unwrap_or((size, ""));
        let mut resources = json!({ "cpu": "1", "memory": format!("{memory}Gi") });
        if !pages.is_empty() {
            resources["hugepages-1Gi"] = json!(format!("{pages}Gi"));
        }
        json!({ "name": name, "resources": { "requests": resources, "limits": resources } })
    };
    let list = |it: &str| it.split_whitespace().map(container).collect::<Vec<_>>();
    let (init, main) = containers.split_once('|').unwrap_or(("", containers));
    serde_json::from_value(
        json!({ "metadata": { "uid": uid }, "spec": { "initContainers": list(init), "containers": list(main) } }),
    )
    .expect("a pod")
}

fn give(manager: &mut MemoryManager, pod: &Pod, affinity: TopologyHint) -> String {
    let mut given = Vec::new();
    for container in all_containers(pod) {
        if let Err(rejection) = manager.allocate(pod, container, affinity) {
            manager.release(uid_of(pod));
            return rejection.message;
        }
        let nodes = manager.nodes_of(uid_of(pod), &container.name).map_or("any".into(), |it| it.to_string());
        given.push(format!("{}={nodes}", container.name));
    }
    given.join(" ")
}

const ANYWHERE: TopologyHint = TopologyHint { nodes: None, is_preferred: false };

#[test]
fn nodes_give_alone_or_in_one_group() {
    let no_nodes = "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available, which is unexpected";
    for (pods, expected, free) in [
        (&["a:2"][..], &["a=0"][..], "1 4"),
        (&["a:4"], &["a=1"], "3 0"),
        (&["a:2", "a:2"], &["a=0", "a=1"], "1 2"),
        // What needs both does not go with what has one of them, and the other way round.
        (&["a:2", "a:5"], &["a=0", no_nodes], "1 4"),
        (&["a:5", "a:1"], &["a=0-1", "a=0-1"], "0 1"),
        (&["a:5", "a:6"], &["a=0-1", no_nodes], "0 2"),
        (&["a:5+2"], &["a=0-1"], "0 2"),
        (&["a:1+2"], &["a=0-1"], "2 4"),
        (&["i:3|a:2 b:1"], &["i=0 a=0 b=0"], "0 4"),
        (&["i:1|a:3"], &["i=0 a=0"], "0 4"),
        (&["a:9"], &[no_nodes], "3 4"),
    ] {
        let mut manager = manager(2);
        let pods = pods.iter().enumerate().map(|(idx, it)| pod(&format!("u{idx}"), it));
        let given: Vec<String> = pods.map(|it| give(&mut manager, &it, ANYWHERE)).collect();
        assert_eq!(given, expected);
        let state = manager.machine_state();
        let left: Vec<String> = state.values().map(|it| (it.memory_map["memory"].free / GI).to_string()).collect();
        assert_eq!(left.join(" "), free, "{expected:?}");
        for uid in manager.holders().cloned().collect::<Vec<_>>() {
            manager.release(&uid);
        }
        assert_eq!(manager.machine_state(), manager.untouched());
    }
}

#[test]
fn a_hint_is_followed_and_widened_where_it_must_be() {
    let on = |node: u32, is_preferred| TopologyHint { nodes: Some(NumaNodes::from_iter([node])), is_preferred };
    for (containers, affinity, expected) in [
        ("a:2", on(1, true), "a=1"),
        ("a:5", on(1, false), "a=0-1"),
        (
            "a:8",
            on(0, true),
            "Allocate failed due to [memorymanager] failed to find NUMA nodes to extend the current topology hint, which is unexpected",
        ),
    ] {
        assert_eq!(give(&mut manager(2), &pod("u", containers), affinity), expected);
    }
    let hints = manager(2).hints(&pod("u", "a:4"), &spec_of(&pod("u", "a:4")).containers[0]);
    let shown: Vec<String> = hints["memory"]
        .iter()
        .flatten()
        .map(|it| format!("{}{}", it.nodes.unwrap_or_default(), it.is_preferred))
        .collect();
    assert_eq!(shown, ["1true", "0-1false"]);
}

#[test]
fn what_was_written_is_read_or_refused() {
    let mut first = manager(2);
    give(&mut first, &pod("u", "a:2"), ANYWHERE);
    let written = first.state();
    let data = |it: &str| {
        serde_json::from_str::<serde_json::Value>(it).expect("JSON")["data"].as_str().expect("data").to_owned()
    };
    assert!(data(&written).starts_with(
        r#"{"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"hugepages-1Gi":{"total":1073741824,"systemReserved":0,"allocatable":1073741824,"reserved":0,"free":1073741824},"memory":{"total":5368709120,"systemReserved":1073741824,"allocatable":3221225472,"reserved":2147483648,"free":1073741824}},"cells":[0]}"#
    ));
    assert!(
        data(&written).ends_with(r#""entries":{"u":{"a":[{"numaAffinity":[0],"type":"memory","size":2147483648}]}}}"#)
    );
    let mut second = manager(2);
    second.restore(&written).expect("as it was");
    assert_eq!(second.state(), written);
    let different = "[memorymanager] the expected machine state is different from the real one";
    assert_eq!(
        manager(2).restore(&written.replace("2147483648", "2147483647")).expect_err("refused"),
        "could not restore state from checkpoint: checkpoint is corrupted"
    );
    // As versions of upstream before 1.36 write it.
    let written = data(&written);
    manager(2).restore(&written).expect("older");
    for (text, expected) in [
        (
            written.replacen("Static", "None", 1),
            "could not restore state from checkpoint: [memorymanager] configured policy \"Static\" differs from state checkpoint policy \"None\"",
        ),
        (written.replacen("5368709120", "1", 1), different),
        (written.replacen("\"size\":2", "\"size\":1", 1), different),
        (
            written.replacen("\"numaAffinity\":[0]", "\"numaAffinity\":[7]", 1),
            "[memorymanager] (pod: u, container: a) the memory assignment uses the NUMA that does not exist",
        ),
    ] {
        assert_eq!(manager(2).restore(&text).expect_err("refused"), expected);
    }
    let machine = manager(2).machine;
    let refused = MemoryManager::new(MemoryConfig::default(), machine, GI).expect_err("refused");
    assert_eq!(
        refused,
        "the total amount \"0\" of type \"memory\" is not equal to the value \"1073741824\" determined by Node Allocatable feature"
    );
}
