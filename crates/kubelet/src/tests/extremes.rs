//! Pods whose numbers stand at their ends: each is started, lives a while, is deleted, and the kubelet reckons on.

use std::collections::BTreeMap;

use corten_schema::extremes::{Cases, VARIANTS, places, put, put_all};
use serde_json::{Value, json};

use super::world::World;

/// One field is put to one of its ends in so many Pods at most.
const PODS_MAX: u32 = 2;

#[test]
fn numbers_may_stand_at_their_ends() {
    let kind = corten_schema::find("io.k8s.api.core.v1.Pod").expect("there are Pods");
    let (cases, mut tried) = (Cases::default(), BTreeMap::<String, u32>::new());
    for pod in pods() {
        for nth in 0..VARIANTS {
            let mut changed = pod.clone();
            put_all(kind, &mut changed, nth);
            live(&cases, &changed, &format!("all at end {nth}"));
        }
        for (path, end) in places(kind, &pod) {
            let place: String = path.split('/').filter(|it| it.parse::<usize>().is_err()).collect();
            let n_tried = tried.entry(format!("{place} {end}")).or_default();
            *n_tried += 1;
            if *n_tried <= PODS_MAX {
                let mut changed = pod.clone();
                put(&mut changed, &path, end.clone());
                live(&cases, &changed, &format!("{path} = {end}"));
            }
        }
    }
}

/// Those of the traces, and one that asks for all there is twice over.
fn pods() -> Vec<Value> {
    let mut specs = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata")).expect("the folder is there") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a fixture");
        let pods = text.lines().filter_map(|it| it.strip_prefix("pod ")?.split_once(' '));
        specs.extend(pods.map(|it| serde_json::from_str::<Value>(it.1).expect("a Pod")));
    }
    let all = json!({"cpu": "9223372036854775807", "memory": "9223372036854775807"});
    let container = |name: &str| json!({"name": name, "image": "i", "resources": {"requests": all, "limits": all}});
    specs.push(
        json!({"containers": [container("a"), container("b")], "initContainers": [container("c")], "overhead": all}),
    );
    let pod = |mut spec: Value| {
        spec["nodeName"] = "n1".into();
        let metadata = json!({"name": "p", "namespace": "default", "uid": "uid-p", "generation": 1});
        json!({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    };
    specs.into_iter().map(pod).collect()
}

fn live(cases: &Cases, pod: &Value, change: &str) {
    cases.run(&format!("{change}: {pod}"), || {
        let mut world = World::new();
        world.take(pod.clone());
        let lines = [
            "all",
            "+10s",
            "all",
            "measured p memory=5Mi",
            "+10m",
            "all",
            "signals memory.available=50Mi/1000Mi",
            "all",
            "restart",
            "all",
            "+10s",
            "all",
        ];
        lines.iter().for_each(|it| drop(world.tell(it)));
        for grace in [i64::MAX, 0] {
            world.end(grace);
            ["all", "+10s", "all", "+10m", "all"].iter().for_each(|it| drop(world.tell(it)));
        }
    });
}
