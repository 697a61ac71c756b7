//! Why an answer differs, where that can be told from the two answers: without the one thing they are alike.

use serde_json::{Value, json};

use super::comparable;

/// An answer without what a reason is about.
type Without = fn(&Value) -> Value;

/// The reasons, by the names under which the lists explain them.
pub(super) fn reason(wanted: &Value, got: &Value) -> Option<&'static str> {
    let reasons: [(&str, Without); 5] = [
        ("MaxUnavailableStatefulSet", |it| without(it, "/object/spec/updateStrategy/rollingUpdate", "maxUnavailable")),
        ("preventPodSchedulingIfMissing", |it| without(it, "/object/spec", "preventPodSchedulingIfMissing")),
        ("go-structs", |it| in_texts(it, &without_structs)),
        ("go-diffs", |it| in_texts(&without(it, "", "message"), &|text| without_structs(&without_diffs(text)))),
        ("made-up", |it| in_texts(it, &|text| without_structs(&without_uuids(text)))),
    ];
    reasons.iter().find(|(_, without)| alike(&without(wanted), &without(got))).map(|it| it.0)
}

fn alike(wanted: &Value, got: &Value) -> bool {
    let rest = |it: &Value| json!([it["code"], it["reason"], it["causes"], it["message"]]);
    let object = |it: &Value| comparable(&it["object"], got["code"] == 200);
    rest(wanted) == rest(got) && object(wanted) == object(got)
}

fn without(answer: &Value, parent: &str, field: &str) -> Value {
    let mut answer = answer.clone();
    if let Some(parent) = answer.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.shift_remove(field);
    }
    answer
}

fn in_texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Array(items) => items.iter().map(|it| in_texts(it, change)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), in_texts(it, change))).collect(),
        other => other.clone(),
    }
}

/// Values that upstream shows as its internal structs, and maps in whichever order.
fn without_structs(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("value: ").map(|it| it + "value: ".len()) {
        let (before, value) = rest.split_at(at);
        kept.push_str(before);
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
        let is_struct = value.starts_with(['{', '[']) && matches!(values.next(), Some(Ok(_)));
        rest = if is_struct { &value[values.byte_offset()..] } else { value };
    }
    kept + rest
}

/// What Pods' validation appends to say what has changed: upstream a diff of its structs' dumps, here paths and values.
fn without_diffs(text: &str) -> String {
    text.lines().filter(|it| !is_of_diff(it)).collect::<Vec<_>>().join("\n")
}

fn is_of_diff(line: &str) -> bool {
    line.starts_with("@@ ") || line.starts_with([' ', '+', '-']) || line.starts_with("spec") && line.contains(" -> ")
}

fn without_uuids(text: &str) -> String {
    let mut text = text.to_owned();
    for at in 0..text.len() {
        if text.get(at..at + UUID.len()).is_some_and(is_uuid) {
            text.replace_range(at..at + UUID.len(), UUID);
        }
    }
    text
}

const UUID: &str = "XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX";

fn is_uuid(text: &str) -> bool {
    text.bytes().zip(UUID.bytes()).all(|(it, form)| if form == b'-' { it == b'-' } else { it.is_ascii_hexdigit() })
}
