//! Defaulting and validation as data. A file of `testdata/<kind>/` holds cases, parted by `====`: an object in YAML (an update
//! has two, parted by `---`, the old one first), `----`, and what comes of it. A line with `+` is a value that defaulting and
//! preparation set, shown in files named `defaults`; one with `!` is a violation. In files named `status` the updates are of
//! `status` alone; in files named `warnings` a line with `?` is what the author is
//! told of an accepted object; in files named `columns` what comes of an object is what `kubectl get` prints after its name.
//!
//! `UPDATE=1 cargo test -p corten-kinds` rewrites the expectations.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{Kind, UpdateRules, by_kind};

#[test]
fn objects_are_defaulted_and_validated() {
    #[expect(clippy::disallowed_methods, reason = "a test is told by its caller to rewrite expectations")]
    let update = std::env::var("UPDATE").is_ok();
    let mut cases = 0;
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")) {
        let text = fs::read_to_string(&file).expect("a fixture");
        let stem = file.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        let outcome: Vec<String> = text.split("====\n").map(|it| play(it, stem)).collect();
        cases += outcome.len();
        let outcome = outcome.join("====\n");
        if update {
            fs::write(&file, outcome).expect("writing a fixture");
        } else {
            assert_eq!(text, outcome, "in {}; UPDATE=1 rewrites it", file.display());
        }
    }
    assert!(cases > 0, "no fixtures found");
}

pub(super) fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The case again, with its outcome as it is.
fn play(case: &str, stem: &str) -> String {
    let (input, _) = case.split_once("\n----\n").unwrap_or((case, ""));
    let objects: Vec<Value> = input
        .split("\n---\n")
        .map(|it| serde_saphyr::from_str(it).unwrap_or_else(|error| panic!("{error}, in:\n{it}")))
        .collect();
    let mut lines = Vec::new();
    match &objects[..] {
        [object] if stem == "columns" => lines.push(super::columns::cells(object)),
        [object] if stem == "warnings" => warn(object, None, &mut lines),
        [old, new] if stem == "warnings" => warn(new, Some(old), &mut lines),
        [object] => create(object, stem == "defaults", &mut lines),
        [old, new] if stem == "status" => update_status(old, new, &mut lines),
        [old, new] => update(old, new, &mut lines),
        _ => panic!("one or two objects make a case:\n{input}"),
    }
    let lines: String = lines.into_iter().map(|it| it + "\n").collect();
    format!("{input}\n----\n{lines}")
}

fn create(object: &Value, with_defaults: bool, lines: &mut Vec<String>) {
    let (kind, made) = created(object);
    if with_defaults {
        added("", object, &made, lines);
    }
    let violations = [kind.policy.validate(&made), kind.policy.validate_new(&made)].concat();
    lines.extend(violations.iter().map(|it| format!("! {it}")));
}

fn warn(object: &Value, old: Option<&Value>, lines: &mut Vec<String>) {
    let (kind, made) = created(object);
    let old = old.map(|it| created(it).1);
    lines.extend(kind.policy.warnings(&made, old.as_ref()).iter().map(|it| format!("? {it}")));
}

fn update(old: &Value, new: &Value, lines: &mut Vec<String>) {
    let (kind, old) = created(old);
    let mut new = pruned(kind, new);
    kind.policy.default(&mut new);
    kind.policy.prepare_update(&mut new, &old);
    let (whole, change) = (|| kind.policy.validate(&new), || kind.policy.validate_update(&new, &old));
    // As the server asks.
    let violations = match kind.policy.update_rules() {
        UpdateRules::WholeThenChange => [whole(), change()].concat(),
        UpdateRules::ChangeThenWhole => [change(), whole()].concat(),
        UpdateRules::Change => change(),
    };
    lines.extend(violations.iter().map(|it| format!("! {it}")));
}

fn update_status(old: &Value, new: &Value, lines: &mut Vec<String>) {
    let kind = kind_of(old);
    let (old, mut new) = (pruned(kind, old), pruned(kind, new));
    kind.policy.prepare_status_update(&mut new, &old);
    lines.extend(kind.policy.validate_status_update(&new, &old).iter().map(|it| format!("! {it}")));
}

pub(super) fn kind_of(object: &Value) -> &'static Kind {
    let name = |field: &str| object[field].as_str().unwrap_or_default();
    by_kind(name("apiVersion"), name("kind")).unwrap_or_else(|| panic!("of which kind is {object}?"))
}

fn created(object: &Value) -> (&'static Kind, Value) {
    let kind = kind_of(object);
    let mut object = pruned(kind, object);
    kind.policy.default(&mut object);
    let once = object.clone();
    kind.policy.default(&mut object);
    assert_eq!(once, object, "defaulting again changes the object");
    kind.policy.prepare_create(&mut object);
    let findings = corten_schema::check(kind.schema.name(), &object);
    assert!(findings.is_empty(), "defaults do not fit the type: {findings:?}");
    (kind, object)
}

pub(super) fn pruned(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    corten_schema::prune(kind.schema.name(), &mut object);
    object
}

/// A line for each value that `after` has and `before` has not, at the highest level that is new.
fn added(path: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(before), Value::Object(after)) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, value) in after {
                added(&format!("{path}{dot}{name}"), before.get(name).unwrap_or(&Value::Null), value, lines);
            }
            let gone = before.keys().filter(|it| !after.contains_key(*it));
            lines.extend(gone.map(|it| format!("- {path}{dot}{it}")));
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                added(&format!("{path}[{at}]"), before, after, lines);
            }
        }
        _ => lines.push(format!("+ {path}: {after}")),
    }
}
