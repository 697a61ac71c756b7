use super::*;

fn place() -> ServerLocation {
    ServerLocation {
        cluster_ip: IpAddr::from([10, 96, 0, 10]),
        node_name: "n1".into(),
        node_ip: IpAddr::from([192, 0, 2, 9]),
        port: 10053,
    }
}

/// What is done about a Service and a slice that differ so from the wanted ones.
fn done(service: Option<Value>, slice: Option<Value>) -> (Vec<String>, Option<String>) {
    let merged = |mut wanted: Value, change: Value| {
        merge(&mut wanted, change);
        wanted
    };
    let service = service.map(|it| serde_json::from_value(merged(wanted_service(&place()), it)).expect("a service"));
    let slice = slice.map(|it| serde_json::from_value(merged(wanted_slice(&place()), it)).expect("a slice"));
    let (all, wait) = upkeep(service.as_ref(), slice.as_ref(), &place());
    let shown = |it: &Upkeep| format!("{it:?}").split('(').next().unwrap_or_default().to_owned();
    (all.iter().map(shown).collect(), wait.map(|it| it.reason))
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

#[test]
fn the_service_is_kept_as_it_must_be() {
    let same = || Some(json!({}));
    let other_port = json!([{ "name": "dns", "protocol": "UDP", "port": 1053 }]);
    let moved = json!([{ "addresses": ["192.0.2.8"], "conditions": { "ready": true } }]);
    let unready = json!([{ "addresses": ["192.0.2.9"], "conditions": { "ready": false } }]);
    for (what, service, slice, expected, wait) in [
        ("nothing is there", None, None, vec!["CreateService"], None),
        ("nothing but the slice", None, same(), vec!["CreateService"], None),
        ("all is right", same(), same(), vec![], None),
        ("the slice is missing", same(), None, vec!["CreateSlice"], None),
        ("another port", same(), Some(json!({ "ports": other_port })), vec!["PatchSlice"], None),
        ("another node's address", same(), Some(json!({ "endpoints": moved })), vec!["PatchSlice"], None),
        ("not ready", same(), Some(json!({ "endpoints": unready })), vec!["PatchSlice"], None),
        ("no endpoints", same(), Some(json!({ "endpoints": null })), vec!["PatchSlice"], None),
        (
            "somebody else's label",
            same(),
            Some(json!({ "metadata": { "labels": { "kubernetes.io/service-name": "x" } } })),
            vec!["PatchSlice"],
            None,
        ),
        ("the other family", same(), Some(json!({ "addressType": "IPv6" })), vec!["DeleteSlice", "CreateSlice"], None),
        ("a port is missing", Some(json!({ "spec": { "ports": other_port } })), same(), vec!["PatchService"], None),
        (
            "one port more",
            Some(json!({ "spec": { "ports": [
                { "name": "dns", "protocol": "UDP", "port": 53 }, { "name": "dns-tcp", "protocol": "TCP", "port": 53 },
                { "name": "metrics", "protocol": "TCP", "port": 9153 },
            ] } })),
            same(),
            vec![],
            None,
        ),
        (
            "another address",
            Some(json!({ "spec": { "clusterIP": "10.96.0.77" } })),
            same(),
            vec![],
            Some("ClusterDNSElsewhere"),
        ),
        (
            "somebody's own name server",
            Some(json!({ "spec": { "selector": { "k8s-app": "kube-dns" } } })),
            same(),
            vec!["DeleteSlice"],
            None,
        ),
        (
            "somebody's own name server, left alone",
            Some(json!({ "spec": { "selector": { "k8s-app": "kube-dns" } } })),
            None,
            vec![],
            None,
        ),
    ] {
        let expected = (expected.into_iter().map(str::to_owned).collect::<Vec<_>>(), wait.map(str::to_owned));
        assert_eq!(done(service, slice), expected, "{what}");
    }
}

#[test]
fn what_is_made_is_upstream_s() {
    let service = wanted_service(&place());
    assert_eq!(service["metadata"]["labels"]["k8s-app"], "kube-dns");
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.10");
    assert_eq!(service["spec"]["ports"][1], json!({ "name": "dns-tcp", "protocol": "TCP", "port": 53 }));
    let slice = wanted_slice(&place());
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["ports"][0], json!({ "name": "dns", "protocol": "UDP", "port": 10053 }));
}
