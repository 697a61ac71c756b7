//! Everything that reads or makes an object, just below, at and above the bound, on a stack so small that a recursion without a
//! bound is noticed.

use std::ops::RangeInclusive;

use corten_meta::depth::{DEPTH_MAX, EXCEEDED, LEVELS_MAX, fits, of_text};
use serde_json::{Value, json};

use crate::{
    apply::{OneView, Operation, Owner, Owners, Set, Write, apply, compare, fields, merged, misfits, update},
    check, complete, duplicates, find,
    patch::{self, PatchError},
    prune, read,
};

const STACK_BYTES: usize = 512 * 1024;
const AROUND_THE_BOUND: RangeInclusive<usize> = LEVELS_MAX - 2..=LEVELS_MAX + 2;
const CRD: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
const REVISION: &str = "io.k8s.api.apps.v1.ControllerRevision";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";

/// An object with a place whose content users shape as they like.
struct Nest {
    type_name: &'static str,
    object: fn(Value) -> Value,
    pointer: &'static str,
    /// One more level around a value, as the type allows it.
    wrap: fn(Value) -> Value,
}

const NESTS: [Nest; 4] = [
    Nest {
        type_name: REVISION,
        object: |it| json!({ "metadata": { "name": "a" }, "data": it, "revision": 1 }),
        pointer: "/data",
        wrap: |it| json!({ "a": it }),
    },
    Nest {
        type_name: REVISION,
        object: |it| json!({ "metadata": { "name": "a" }, "data": it, "revision": 1 }),
        pointer: "/data",
        wrap: |it| json!([1, it]),
    },
    Nest {
        type_name: CRD,
        object: |it| json!({ "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": it } }] } }),
        pointer: "/spec/versions/0/schema/openAPIV3Schema",
        wrap: |it| json!({ "type": "object", "not": it }),
    },
    // No type knows this field.
    Nest {
        type_name: CONFIG_MAP,
        object: |it| json!({ "metadata": { "name": "a" }, "odd": it }),
        pointer: "/odd",
        wrap: |it| json!({ "a": it, "b": null }),
    },
];

impl Nest {
    /// How many lists and maps the place lies in.
    fn around(&self) -> usize {
        self.pointer.split('/').count() - 1
    }

    fn content(&self, levels: usize) -> Value {
        (0..levels).fold(Value::Null, |it, _| (self.wrap)(it))
    }

    /// An object of exactly so many levels.
    fn of(&self, levels: usize) -> Value {
        (self.object)(self.content(levels - self.around()))
    }
}

fn on_a_small_stack(check: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(check);
    thread.expect("a thread starts").join().expect("the check holds");
}

fn on_each_nest(check: fn(&Nest, usize)) {
    on_a_small_stack(move || {
        for nest in &NESTS {
            AROUND_THE_BOUND.for_each(|levels| check(nest, levels));
        }
    });
}

#[test]
fn what_is_read_is_within_the_bound_and_so_is_what_becomes_of_it() {
    on_each_nest(|nest, levels| {
        let given = nest.of(levels);
        let text = given.to_string();
        assert_eq!(of_text(text.as_bytes()), levels);
        assert!(duplicates(text.as_bytes()).is_empty());
        let object = read(text.as_bytes());
        assert_eq!(object.is_ok(), levels < DEPTH_MAX);
        let Ok((mut object, _)) = object else { return };
        assert_eq!(object, given);
        let _ = check(nest.type_name, &object);
        prune(nest.type_name, &mut object);
        complete(nest.type_name, &mut object);
        assert!(fits(&object, LEVELS_MAX));
    });
}

/// A patch that is refused says so in a way that a client can read; one that is not keeps the bound.
fn keeps_the_bound(result: Result<Value, PatchError>, levels: usize) {
    match result {
        Ok(object) => assert!(levels <= LEVELS_MAX && fits(&object, LEVELS_MAX), "{levels} levels were made"),
        Err(error) => {
            assert!(levels > LEVELS_MAX && error.to_string().ends_with(EXCEEDED), "{levels} levels: {error}");
            assert!(matches!(error.status().code, 400 | 422));
        }
    }
}

#[test]
fn no_operation_of_a_json_patch_goes_beyond_the_bound() {
    on_each_nest(|nest, levels| {
        let (place, around) = (nest.pointer, nest.around());
        let json = |object: Value, operation: Value| patch::json(object, json!([operation]).to_string().as_bytes());
        let object = (nest.object)(json!({ "b": null }));
        let value = nest.content(levels - around - 1);
        for op in ["add", "replace"] {
            let operation = json!({ "op": op, "path": format!("{place}/b"), "value": value });
            keeps_the_bound(json(object.clone(), operation), levels);
        }
        // From where it is two levels higher.
        let object = (nest.object)(json!({ "b": { "c": {} }, "d": nest.content(levels - around - 3) }));
        for op in ["copy", "move"] {
            let operation = json!({ "op": op, "from": format!("{place}/d"), "path": format!("{place}/b/c/e") });
            keeps_the_bound(json(object.clone(), operation), levels);
        }
        // The patch itself is two levels.
        let object = nest.of(levels.min(LEVELS_MAX - 2 + around));
        let operation = json!({ "op": "test", "path": place, "value": object.pointer(place) });
        assert_eq!(json(object.clone(), operation), Ok(object));
    });
}

/// Each copy doubles the depth: all of them would make 65,536 levels.
#[test]
fn copies_of_a_value_into_itself_are_refused_before_they_go_off() {
    on_a_small_stack(|| {
        for (object, step, last) in [(json!({ "a": {} }), "/a", "/a"), (json!({ "a": [] }), "/0", "/-")] {
            let copies = (0..17).map(|at| {
                let down = step.repeat((1 << at) - 1);
                json!({ "op": "copy", "from": "/a", "path": format!("/a{down}{last}") })
            });
            let copies = Value::Array(copies.collect());
            keeps_the_bound(patch::json(object, copies.to_string().as_bytes()), usize::MAX);
        }
    });
}

#[test]
fn merges_are_as_deep_as_the_deeper_of_the_two() {
    on_each_nest(|nest, levels| {
        let levels = levels.min(LEVELS_MAX);
        let (deep, flat) = (nest.of(levels), (nest.object)(json!({ "type": "string" })));
        for (object, change) in [(&deep, &flat), (&flat, &deep), (&deep, &deep)] {
            assert!(fits(&patch::merge(object.clone(), change), levels));
            if let Ok(merged) = patch::strategic(nest.type_name, object.clone(), change) {
                assert!(fits(&merged, levels));
            }
        }
    });
}

#[test]
fn a_text_that_is_too_deep_is_no_patch() {
    on_a_small_stack(|| {
        for levels in [DEPTH_MAX, 65_536] {
            let text = format!(r#"[{{"op":"test","path":"","value":{}{}}}]"#, "[".repeat(levels), "]".repeat(levels));
            let refused = patch::json(json!({}), text.as_bytes());
            assert_eq!(refused, Err(PatchError::Malformed(format!("error decoding patch: {EXCEEDED}"))));
        }
    });
}

#[test]
fn applying_keeps_the_bound_and_so_do_the_sets_of_owners() {
    on_each_nest(|nest, levels| {
        let levels = levels.min(LEVELS_MAX);
        let of = find(nest.type_name).expect("a type");
        let (deep, flat) = (nest.of(levels), (nest.object)(json!({ "type": "string" })));
        for (live, configuration) in [(&deep, &flat), (&flat, &deep), (&deep, &deep)] {
            let _ = misfits(of, configuration);
            assert!(fits(&merged(of, live, configuration), levels));
            let (a, b) = (fields(of, live), fields(of, configuration));
            reckon(&a, &b);
            let _ = compare(of, Some(live), configuration).is_same();
            let reset = Set::default();
            let by = Owner::new("me", Operation::Apply, "v1", "");
            let write = Write { of: of.into(), by, now: "2026-01-02T03:04:05Z", reset: &reset, views: &OneView };
            let owned = update(&write, None, live, Owners::default()).owners.write();
            let owners = Owners::read(&owned).expect("it was written here");
            if let Ok(applied) = apply(&write, Some(live), configuration, owners, true) {
                assert!(applied.object.is_none_or(|it| fits(&it, levels)));
                assert!(of_text(applied.owned.owners.write().as_bytes()) < DEPTH_MAX);
            }
        }
    });
}

fn reckon(a: &Set<'_>, b: &Set<'_>) {
    let all = a.clone().union(b.clone()).into_owned();
    assert!(all.contains(a) && all.contains(b) && a.contains(&a.intersection(b)));
    let _ = a.clone().difference(b).without(a).paths();
    assert!(of_text(all.to_json().as_bytes()) < DEPTH_MAX);
}

/// What clients send as `fieldsV1` nests as they like.
#[test]
fn sets_of_fields_are_read_up_to_the_bound() {
    on_a_small_stack(|| {
        for levels in AROUND_THE_BOUND.chain([65_536]) {
            let text = format!("{}{{}}{}", r#"{"f:a":"#.repeat(levels - 1), "}".repeat(levels - 1));
            let set = Set::read(&text);
            assert_eq!(set.is_ok(), levels < DEPTH_MAX);
            if let Ok(set) = set {
                reckon(&set, &set.clone());
                assert_eq!(set.to_json(), text);
            }
            let list = format!(
                r#"[{{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{text}}}]"#
            );
            assert_eq!(Owners::read_whole(&list).is_ok(), levels < DEPTH_MAX);
            // What was stored once may be anything; it counts as owning nothing.
            let owners = Owners::read(&list).expect("a list of owners");
            assert_eq!(owners.0[0].set().is_empty(), levels >= DEPTH_MAX);
        }
    });
}
