use super::*;

fn pod(uid: &str, note: &str) -> Value {
    json!({
        "metadata": { "name": "p", "uid": uid, "annotations": { HOST_PORTS: note } },
        "spec": {
            "containers": [{ "name": "c", "ports": [
                { "name": "http", "containerPort": 80 },
                { "name": "fixed", "containerPort": 20_002, "hostPort": 20_002 },
            ] }],
            "initContainers": [
                { "name": "first", "ports": [{ "name": "http", "containerPort": 7 }] },
                { "name": "side", "restartPolicy": "Always", "ports": [{ "name": "admin", "containerPort": 80 }] },
            ],
        },
    })
}

const NOTE: &str = r#"{"admin":0,"http":0}"#;

#[test]
fn ports_are_free_and_differ() {
    let range = 20_000..=20_004;
    for uid in 0..20 {
        let mut pod = pod(&uid.to_string(), NOTE);
        assert_eq!(choose(&mut pod, &BTreeSet::from([20_000]), &range, |it| it == 20_004), Ok(()));
        let spec = &pod["spec"];
        let (http, admin) = (&spec["containers"][0]["ports"][0], &spec["initContainers"][1]["ports"][0]);
        for port in [http, admin] {
            assert_eq!(port["containerPort"], port["hostPort"]);
        }
        let chosen = BTreeSet::from([http["hostPort"].as_u64(), admin["hostPort"].as_u64()]);
        assert_eq!(chosen, BTreeSet::from([Some(20_001), Some(20_003)]));
        assert_eq!(noted(&pod).into_values().map(|it| Some(u64::from(it))).collect::<BTreeSet<_>>(), chosen);
        assert_eq!(
            spec["initContainers"][0]["ports"][0],
            json!({ "name": "http", "containerPort": 7 }),
            "it has ended"
        );
        assert_eq!(taken_by(&pod), BTreeSet::from([20_001, 20_002, 20_003]));
    }
}

#[test]
fn a_choice_can_be_made_again() {
    let mut pod = pod("u", NOTE);
    assert_eq!(choose(&mut pod, &BTreeSet::new(), &(20_000..=29_999), |_| false), Ok(()));
    let first = taken_by(&pod);
    assert_eq!(choose(&mut pod, &first, &(20_000..=29_999), |_| false), Ok(()));
    assert_eq!(first.intersection(&taken_by(&pod)).collect::<Vec<_>>(), [&20_002], "the one that is written down");
    assert_eq!(choose(&mut pod, &BTreeSet::new(), &(20_001..=20_002), |_| false), Err(1));
}

/// The next Pod of a node does not begin at the last one's port.
#[test]
fn the_beginning_depends_on_the_pod() {
    let first = |uid: String| {
        let mut pod = pod(&uid, r#"{"http":0}"#);
        assert_eq!(choose(&mut pod, &BTreeSet::new(), &(20_000..=29_999), |_| false), Ok(()));
        noted(&pod)["http"]
    };
    let uid = |it: u32| format!("{:08x}-0000-4000-8000-{it:012x}", it.wrapping_mul(0x9e37_79b1));
    let begun: BTreeSet<u16> = (0..1000).map(|it| first(uid(it))).collect();
    assert!(begun.len() > 900, "{} of 1000", begun.len());
    let lower = begun.iter().filter(|it| **it < 25_000).count();
    assert!((400..=600).contains(&lower), "{lower} of {} are in the lower half", begun.len());
}

#[test]
fn only_the_write_that_gives_a_node_chooses() {
    let with_node = |mut pod: Value| {
        pod["spec"]["nodeName"] = "n1".into();
        pod
    };
    let waiting = pod("u", NOTE);
    let bound = with_node(waiting.clone());
    assert!(is_due(&bound, None) && is_due(&bound, Some(&waiting)));
    assert!(!is_due(&waiting, None) && !is_due(&bound, Some(&bound)));
    let mut plain = bound;
    forget(&mut plain);
    assert!(!is_due(&plain, None));
}

#[test]
fn a_pod_is_completed_once() {
    let mut pod = pod("u", "");
    forget(&mut pod);
    pod["spec"]["dnsPolicy"] = "ClusterFirst".into();
    complete(&mut pod);
    let spec = &pod["spec"];
    assert_eq!((&spec["hostNetwork"], &spec["dnsPolicy"]), (&json!(true), &json!("ClusterFirstWithHostNet")));
    assert_eq!(pod["metadata"]["annotations"][HOST_PORTS], NOTE);
    assert_eq!(spec["initContainers"][0]["ports"][0]["hostPort"], 7);
    assert_eq!(refusals(&pod), []);
    let before = pod.clone();
    complete(&mut pod);
    assert_eq!(pod, before);
}
