//! Objects and patches as wide as a body allows: whoever goes through all of an object for each of its parts does not come
//! to the end of these.

use serde_json::{Map, Value, json};

use crate::{
    Ordered,
    apply::{ApplyError, OneView, Operation, Owner, Owners, Set, Write, apply, misfits, update},
    check, duplicates, find,
    patch::{self, PatchError},
};

const MANY: usize = 200_000;
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const REVIEW: &str = "io.k8s.api.authorization.v1.SubjectAccessReview";

fn entries(n: usize, value: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..n).map(|it| (format!("k{it}"), value(it))).collect()
}

fn config_map(n: usize) -> Value {
    json!({ "metadata": { "name": "a" }, "data": entries(n, |it| json!(it.to_string())) })
}

#[test]
fn a_merge_patch_takes_out_many() {
    let patch = json!({ "data": entries(MANY - 1, |_| Value::Null) });
    let left = json!({ "metadata": { "name": "a" }, "data": { format!("k{}", MANY - 1): (MANY - 1).to_string() } });
    assert_eq!(patch::merge(config_map(MANY), &patch), left);
    assert_eq!(patch::strategic(CONFIG_MAP, config_map(MANY), &patch), Ok(left.clone()));
    let patch = json!({ "data": entries(MANY - 1, |_| json!({ "$patch": "delete" })) });
    assert_eq!(patch::strategic(CONFIG_MAP, config_map(MANY), &patch), Ok(left));
}

#[test]
fn the_operations_of_a_json_patch_do_so_much_together() {
    let apply = |object: &Value, operations: Vec<Value>| {
        patch::json(object.clone(), Value::Array(operations).to_string().as_bytes())
    };
    let times = |n: usize, of: &[Value]| -> Vec<Value> { of.iter().cycle().take(n).cloned().collect() };
    let (wide, list) = (config_map(60_000), json!({ "list": vec![0; MANY] }));
    let back_and_forth = [
        json!({ "op": "move", "from": "/data", "path": "/more" }),
        json!({ "op": "move", "from": "/more", "path": "/data" }),
    ];
    for (object, operations) in [
        (&wide, times(10_000, &back_and_forth)),
        (&list, times(10_000, &[json!({ "op": "remove", "path": "/list/0" })])),
        (&list, times(10_000, &[json!({ "op": "add", "path": "/list/0", "value": 1 })])),
        (&list, times(10_000, &[json!({ "op": "copy", "from": "/list/0", "path": "/list/0" })])),
        (&list, times(10_000, &[json!({ "op": "move", "from": "/list/0", "path": "/list/100" })])),
    ] {
        let Err(PatchError::Unprocessable(message)) = apply(object, operations) else { panic!("it was done") };
        assert!(message.starts_with("Unable to complete the patch"), "{message}");
    }
    // What says little, does little or repeats nothing is done.
    for (object, operations) in [
        (&wide, (0..10_000).map(|it| json!({ "op": "remove", "path": format!("/data/k{it}") })).collect()),
        (&wide, times(10_000, &[json!({ "op": "test", "path": "/data/k1", "value": "1" })])),
        (&wide, times(100, &back_and_forth)),
        (&list, times(10_000, &[json!({ "op": "add", "path": "/list/-", "value": 1 })])),
        (&list, vec![json!({ "op": "test", "path": "", "value": list })]),
    ] {
        assert!(apply(object, operations).is_ok());
    }
}

#[test]
fn a_large_value_is_not_gone_through_for_each_small_one() {
    let large = Value::Object(entries(MANY, |_| json!(1)));
    let small: Vec<Value> = (0..MANY).map(|it| json!({ "k": it })).collect();
    let found: std::collections::BTreeSet<Ordered<'_>> = std::iter::once(&large).chain(&small).map(Ordered).collect();
    assert_eq!(found.len(), MANY + 1);
}

#[test]
fn what_is_told_of_a_long_path_is_short() {
    let long = "k".repeat(1 << 20);
    let review = json!({ "spec": { "extra": { &*long: vec![0; MANY] } } });
    let told: usize = check(REVIEW, &review).wrong_types.iter().map(|it| it.path.len() + it.message.len()).sum();
    assert!((1..1 << 20).contains(&told), "{told}");
    let of = find(REVIEW).expect("a type");
    let told: usize = misfits(of, &review).iter().map(String::len).sum();
    assert!((1..1 << 20).contains(&told), "{told}");
    let unknown = json!({ "spec": entries(MANY, |_| json!(1)) });
    let told: usize = check(REVIEW, &unknown).unknown_fields.iter().map(String::len).sum();
    assert!((1..1 << 20).contains(&told), "{told}");
    for inside in [r#""x":1,"#.repeat(MANY), (0..MANY).map(|it| format!(r#""{it}":1,"{it}":1,"#)).collect()] {
        let text = format!(r#"{{"{long}":{{{inside}"y":1}}}}"#);
        let told: usize = duplicates(text.as_bytes()).iter().map(String::len).sum();
        assert!((1..1 << 20).contains(&told), "{told}");
    }
}

/// So many managers, each of which owns one entry.
fn owners(n: usize, operation: &str) -> String {
    let owner = |it: usize| {
        format!(
            r#"{{"manager":"m{it}","operation":"{operation}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:k{it}":{{}}}}}}}}"#
        )
    };
    format!("[{}]", (0..n).map(owner).collect::<Vec<_>>().join(","))
}

#[test]
fn an_object_may_have_many_managers() {
    let (reset, of) = (Set::default(), find(CONFIG_MAP).expect("a type"));
    let by = |operation| Owner::new("me", operation, "v1", "");
    let write = |by| Write { of: of.into(), by, now: "2026-01-02T03:04:05Z", reset: &reset, views: &OneView };
    let n = 20_000;
    let (old, mut new) = (config_map(n), config_map(n));
    new["data"].as_object_mut().expect("an object").values_mut().for_each(|it| *it = json!("new"));
    for operation in ["Apply", "Update"] {
        let owners = owners(n, operation);
        let read = || Owners::read(&owners).expect("owners");
        let same = update(&write(by(Operation::Update)), Some(&old), &old, read());
        assert_eq!(same.owners.0.len(), n);
        let taken = update(&write(by(Operation::Update)), Some(&old), &new, read());
        assert_eq!(taken.owners.0.len(), 1, "all of it is the writer's");
        let mut more = old.clone();
        more["data"]["more"] = json!("");
        let capped = update(&write(by(Operation::Update)), Some(&old), &more, read()).owners.0.len();
        assert_eq!(capped, if operation == "Apply" { n + 1 } else { 10 });

        let Err(ApplyError::Conflicts(conflicts)) =
            apply(&write(by(Operation::Apply)), Some(&old), &new, read(), false)
        else {
            panic!("everybody owns something")
        };
        let (told, count) = ApplyError::conflicts(&conflicts);
        assert!(count == n && told.len() < n, "{count}, {}", told.len());
        let forced = apply(&write(by(Operation::Apply)), Some(&old), &new, read(), true).expect("it is forced");
        // What it named before and does not name any more goes, whoever else there is.
        let text = forced.owned.owners.write();
        let forced = forced.object.expect("it changes");
        let again = Owners::read(&text).expect("it was written here");
        let nothing = json!({});
        let last = apply(&write(by(Operation::Apply)), Some(&forced), &nothing, again, true).expect("it fits");
        assert_eq!(last.owned.owners.0.len(), 0);
    }
}

#[test]
fn one_element_may_be_written_in_many_spellings() {
    let spaces = |n: usize| -> String {
        (0..usize::BITS).map(|it| if n >> it & 1 == 1 { r"\t" } else { " " }).take(18).collect()
    };
    let text = (0..MANY).map(|it| format!(r#""k:{{{}\"a\":1}}":{{"f:{it}":{{}}}}"#, spaces(it)));
    let text = format!("{{{}}}", text.collect::<Vec<_>>().join(","));
    let set = Set::read(&text).expect("a set");
    assert_eq!(set.paths().len(), MANY);
}
