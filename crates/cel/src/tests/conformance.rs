//! The cases of cel-spec's simple conformance tests, as far as they need no protocol buffers: `testdata/conformance`.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value as Json;

use crate::{
    Activation, DeclType, Env, Key, PER_CALL_LIMIT, STORED_EXPRESSIONS, Text, Value,
    functions::read_type,
    timestamp::{duration, timestamp},
};

/// Cases that are not passed: the case, words of how it fails, and why that is right. A case that passes must not stand there.
const EXCEPTIONS: &str = include_str!("../../testdata/conformance/exceptions.txt");
/// Says how many pass.
const PAGE: &str = include_str!("../../../../docs/reference/cel.md");

#[test]
fn conformance() {
    let exceptions: BTreeMap<&str, &str> = EXCEPTIONS
        .lines()
        .filter(|it| !it.starts_with('#'))
        .map(|it| {
            let parts: Vec<_> = it.split(" | ").collect();
            let [name, how, _why] = parts[..] else { panic!("no case, failure and reason: {it}") };
            (name, how)
        })
        .collect();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/conformance");
    let (mut n, mut n_passed, mut wrong) = (0, 0, Vec::new());
    let mut files: Vec<_> =
        fs::read_dir(dir).expect("the cases are there").map(|it| it.expect("a file").path()).collect();
    files.sort();
    for file in files.iter().filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
        let suite = file.file_stem().expect("a name").to_string_lossy();
        for line in fs::read_to_string(file).expect("text").lines() {
            let case: Json = serde_json::from_str(line).expect("JSON");
            let name = format!("{suite}/{}", case["n"].as_str().expect("a name"));
            n += 1;
            match (play(&case), exceptions.get(name.as_str())) {
                (Ok(()), None) => n_passed += 1,
                (Ok(()), Some(_)) => wrong.push(format!("{name}: passes, and is listed as an exception")),
                (Err(found), Some(how)) if found.contains(how) => {}
                (Err(found), Some(how)) => wrong.push(format!("{name}: fails otherwise than by {how:?}: {found}")),
                (Err(found), None) => wrong.push(format!("{name}: {}: {found}", case["e"])),
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {n} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    let told = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(&format!("{n} cases, of which {n_passed} pass")), "{n_passed} of {n} pass");
    assert_eq!(n - n_passed, exceptions.len(), "an exception names a case that there is");
}

fn play(case: &Json) -> Result<(), String> {
    let mut env = Env::new(STORED_EXPRESSIONS).with_bind().with_mixed_literals();
    for (name, of) in case["t"].as_object().into_iter().flatten() {
        let of = read_type(Box::leak(of.as_str().expect("a type").to_owned().into_boxed_str()), &mut Vec::new());
        env = env.variable(name, DeclType::of(of));
    }
    let source = case["e"].as_str().expect("an expression");
    let is_error = case.get("x").is_some();
    // The suite runs these without a check to see them fail. Kubernetes checks every expression, so that they fail there.
    let fails_unchecked = is_error && case.get("unchecked").is_some();
    let checked = match env.check(source) {
        Ok(checked) => checked,
        Err(issues) if fails_unchecked && is_about_types(&issues.to_string()) => return Ok(()),
        Err(issues) => return Err(issues.to_string()),
    };
    if let Some(expected) = case["ct"].as_str() {
        let found = checked.result_type().to_string();
        if found != expected {
            return Err(format!("is of type {found}, not {expected}"));
        }
    }
    if case.get("checkonly").is_some() {
        return Ok(());
    }
    // Whatever runs can be estimated, too.
    let estimate = checked.estimate();
    let program = checked.program();
    let mut activation = Activation::new();
    for (name, value) in case["v"].as_object().into_iter().flatten() {
        activation = activation.with(name, tagged(value));
    }
    let outcome = program.evaluate(&activation, PER_CALL_LIMIT);
    match outcome.result {
        // One that ran out of budget has not failed as the suite means it.
        Err(error) if is_error && !is_out_of_budget(&error.to_string()) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(value) if is_error => Err(format!("gives {value:?} instead of an error")),
        Ok(value) if same(&value, &tagged(&case["r"])) => {
            // Upstream's estimate leaves out some steps on the way into optional values, and reads the wrong text of
            // `startsWith`.
            if outcome.cost > estimate.max.saturating_add(2) {
                return Err(format!("costs {}, and at most {} by the estimate", outcome.cost, estimate.max));
            }
            Ok(())
        }
        Ok(value) => Err(format!("gives {value:?} instead of {}", case["r"])),
    }
}

/// And not a mistake of the reader, which refuses what is no expression.
fn is_about_types(complaint: &str) -> bool {
    !complaint.contains("Syntax error")
}

fn is_out_of_budget(error: &str) -> bool {
    error.contains("operation cancelled") || error.contains("operation interrupted")
}

/// Also of the same type, and what is no number is the same as itself.
fn same(found: &Value<'_>, expected: &Value<'_>) -> bool {
    match (found, expected) {
        (Value::Double(a), Value::Double(b)) if a.is_nan() && b.is_nan() => true,
        (Value::Optional(Some(found)), _) => same(found, expected),
        _ => found.type_name() == expected.type_name() && found == expected,
    }
}

fn tagged(json: &Json) -> Value<'static> {
    let text = |it: &Json| it.as_str().expect("a text").to_owned();
    match json {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Bool(*it),
        Json::Array(items) => items.iter().map(tagged).collect::<Vec<_>>().into(),
        Json::Object(tag) => {
            let (kind, it) = tag.iter().next().expect("a tag");
            match kind.as_str() {
                "i" => Value::Int(text(it).parse().expect("an int")),
                "u" => Value::Uint(text(it).parse().expect("a uint")),
                "d" => Value::Double(text(it).replace("Infinity", "inf").parse().expect("a double")),
                "s" => text(it).into(),
                "b" => Value::Bytes(STANDARD.decode(text(it)).expect("base64").into()),
                "t" => Value::Type(Text::Shared(text(it).into())),
                "D" => Value::Duration(duration(&text(it)).expect("a duration")),
                "T" => Value::Timestamp(timestamp(&text(it)).expect("a time")),
                "m" => it
                    .as_array()
                    .expect("entries")
                    .iter()
                    .map(|it| (Key::of(tagged(&it[0])).expect("a key"), tagged(&it[1])))
                    .collect(),
                other => panic!("an unknown tag {other}"),
            }
        }
        other => panic!("no tagged value {other}"),
    }
}

#[test]
fn programs_are_shared() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let program = Env::new(STORED_EXPRESSIONS).compile("1 + 1 == 2").expect("it compiles");
    is_shared(&Arc::new(program));
}
