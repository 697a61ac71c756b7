//! Objects whose numbers stand at their ends: whatever a policy, a column, a quota or a limit reckons with comes to an end.

use std::{collections::BTreeMap, path::Path};

use corten_meta::Time;
use corten_policies::{limits, quota};
use corten_schema::{
    extremes::{Cases, VARIANTS, places, put, put_all},
    find,
};
use serde_json::{Value, json};

use super::{
    fixtures::{files, kind_of, pruned},
    odd_objects::{show, work},
};
use crate::{Kind, by_kind};

/// One field is put to one of its ends in so many objects at most.
const OBJECTS_MAX: u32 = 2;

#[test]
fn numbers_may_stand_at_their_ends() {
    let (cases, mut tried) = (Cases::default(), BTreeMap::<String, u32>::new());
    for object in objects() {
        let kind = kind_of(&object);
        let object = pruned(kind, &object);
        let shape = find(kind.schema.name()).expect("every kind has a type");
        for nth in 0..VARIANTS {
            let mut changed = object.clone();
            put_all(shape, &mut changed, nth);
            work_with(&cases, kind, &changed, &format!("all at end {nth}"));
        }
        for (path, end) in places(shape, &object) {
            let place: String = path.split('/').filter(|it| it.parse::<usize>().is_err()).collect();
            let n_tried = tried.entry(format!("{} {place} {end}", kind.resource)).or_default();
            *n_tried += 1;
            if *n_tried <= OBJECTS_MAX {
                let mut changed = object.clone();
                put(&mut changed, &path, end.clone());
                work_with(&cases, kind, &changed, &format!("{path} = {end}"));
            }
        }
    }
}

pub(super) fn objects() -> Vec<Value> {
    let mut objects = Vec::new();
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")) {
        let text = std::fs::read_to_string(&file).expect("a fixture");
        for case in text.split("====\n") {
            let input = case.split_once("\n----\n").map_or(case, |it| it.0);
            objects.extend(input.split("\n---\n").map(|it| serde_saphyr::from_str::<Value>(it).expect("YAML")));
        }
    }
    objects
}

fn work_with(cases: &Cases, kind: &'static Kind, object: &Value, change: &str) {
    cases.run(&format!("{} {change}: {object}", kind.resource.kind), || {
        show(kind, object);
        for now in [Time::MIN, Time::from_unix_seconds(0), Time::MAX] {
            kind.columns.iter().for_each(|it| drop(it.cell(object, now)));
            quota::usage(&kind.resource, object, now, &());
        }
        work(kind, object.clone(), change);
        kind.policy.validate_status_update(object, object);
        kind.policy.warnings(object, None);
        limit(kind, object);
    });
}

/// What the object asks for, by a LimitRange; and if it is one, what it makes of a Pod.
pub(super) fn limit(kind: &'static Kind, object: &Value) {
    let (least, most) = (json!("1n"), json!("9223372036854775807"));
    for of in ["Container", "Pod", "PersistentVolumeClaim"] {
        for amount in [&least, &most] {
            let amounts = json!({"cpu": amount, "memory": amount, "storage": amount});
            let limits = json!([{"type": of, "min": amounts, "max": amounts, "maxLimitRequestRatio": amounts}]);
            limits::broken(&json!({"spec": {"limits": limits}}), &kind.resource, object);
        }
    }
    let pods = &by_kind("v1", "Pod").expect("there are Pods").resource;
    let amounts = json!({"cpu": "9223372036854775807", "memory": "1n"});
    let container = json!({"name": "c", "resources": {"requests": amounts, "limits": amounts}});
    let mut pod = json!({"spec": {"containers": [container, container]}});
    limits::broken(object, pods, &pod);
    limits::fill(object, &mut pod);
}
