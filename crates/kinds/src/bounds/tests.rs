use serde_json::json;

use super::*;
use crate::KINDS;

#[test]
fn every_kind_that_makes_pods_is_bounded() {
    let of_pods = |kind: &&Kind| {
        let of = corten_schema::find(kind.schema.name()).expect("every kind has a type");
        corten_schema::wide::places(of, &json!({ "spec": { "template": { "spec": {} }, "jobTemplate": { "spec": { "template": { "spec": {} } } } }, "template": { "spec": {} } }))
            .iter()
            .any(|it| it.path.ends_with("/ephemeralContainers"))
    };
    let found: Vec<&str> = KINDS.iter().filter(of_pods).map(|it| &*it.resource.kind).collect();
    let bounded: Vec<&str> =
        KINDS.iter().filter(|it| spec_of_pods(it).is_some()).map(|it| &*it.resource.kind).collect();
    assert_eq!(found, bounded);
}

#[test]
fn what_is_too_long_gets_no_longer() {
    let pods = crate::by_kind("v1", "Pod").expect("there are Pods");
    let pod = |n: usize| json!({ "spec": { "containers": vec![json!({}); n], "volumes": [{}] } });
    for (old, new, refused) in
        [(None, 1_000, false), (None, 1_001, true), (Some(1_000), 1_001, true), (Some(2_000), 1_999, false)]
    {
        let old = old.map(pod);
        let found = violations(pods, &pod(new), old.as_ref());
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = format!("spec.containers: Too many: {new}: must have at most 1000 items");
        assert_eq!(told, if refused { vec![expected] } else { Vec::new() });
    }
}
