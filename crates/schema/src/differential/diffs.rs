//! The ways from one object to another: one for each kind of patch.

use serde_json::{Map, Value, json};

use super::objects::Random;
use crate::{Patch, Shape, Type};

/// Tests what it removes or replaces now and then.
pub(super) fn json_patch(a: &Value, b: &Value, random: &mut Random) -> Value {
    let mut operations = Vec::new();
    steps(a, b, "", random, &mut operations);
    Value::Array(operations)
}

fn steps(a: &Value, b: &Value, path: &str, random: &mut Random, out: &mut Vec<Value>) {
    if a == b {
        return;
    }
    if random.one_in(3) {
        out.push(json!({ "op": "test", "path": path, "value": a }));
    }
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                let path = format!("{path}/{}", escaped(name));
                match b.get(name) {
                    Some(now) => steps(value, now, &path, random, out),
                    None => out.push(json!({ "op": "remove", "path": path })),
                }
            }
            for (name, value) in b.iter().filter(|it| !a.contains_key(it.0)) {
                out.push(json!({ "op": "add", "path": format!("{path}/{}", escaped(name)), "value": value }));
            }
        }
        (Value::Array(a), Value::Array(b)) if random.one_in(2) => {
            for (at, (one, two)) in a.iter().zip(b).enumerate() {
                steps(one, two, &format!("{path}/{at}"), random, out);
            }
            for at in (b.len()..a.len()).rev() {
                out.push(json!({ "op": "remove", "path": format!("{path}/{at}") }));
            }
            for value in b.iter().skip(a.len()) {
                out.push(json!({ "op": "add", "path": format!("{path}/-"), "value": value }));
            }
        }
        // In front, one after the other, then the old ones go from behind.
        (Value::Array(a), Value::Array(b)) => {
            for value in b.iter().rev() {
                out.push(json!({ "op": "add", "path": format!("{path}/0"), "value": value }));
            }
            for at in (b.len()..b.len() + a.len()).rev() {
                out.push(json!({ "op": "remove", "path": format!("{path}/{at}") }));
            }
        }
        _ => out.push(json!({ "op": "replace", "path": path, "value": b })),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

pub(super) fn merge_patch(a: &Value, b: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (a, b) else { return b.clone() };
    let mut patch = Map::new();
    for name in before.keys().filter(|it| !after.contains_key(*it)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(then) if then == value => {}
            Some(then) => {
                patch.insert(name.clone(), merge_patch(then, value));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

pub(super) fn strategic_patch(of: &'static Type, a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => Value::Object(entries(Shape::Object(of), a, b, false)),
        _ => b.clone(),
    }
}

type Object = Map<String, Value>;

fn entries(shape: Shape, a: &Object, b: &Object, retain_keys: bool) -> Object {
    let mut patch = Map::new();
    for name in a.keys().filter(|it| !b.contains_key(*it) && !retain_keys) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, now) in b {
        let (inside, how, retain) = match shape {
            Shape::Object(of) => of
                .field(name)
                .map_or((Shape::Any, Patch::Deep, false), |it| (it.shape, it.merge.patch, it.merge.retain_keys)),
            Shape::Map(of) => (*of, if matches!(of, Shape::List(_)) { Patch::Replace } else { Patch::Deep }, false),
            _ => (Shape::Any, Patch::Deep, false),
        };
        match (a.get(name), now) {
            (Some(then), now) if then == now => {}
            (Some(Value::Object(then)), Value::Object(now)) if how != Patch::Replace => {
                patch.insert(name.clone(), Value::Object(entries(inside, then, now, retain)));
            }
            (Some(Value::Array(then)), Value::Array(now)) => list(&mut patch, name, inside, how, retain, then, now),
            _ => {
                patch.insert(name.clone(), now.clone());
            }
        }
    }
    if retain_keys && a != b {
        patch.insert("$retainKeys".into(), b.keys().cloned().collect());
    }
    patch
}

fn list(patch: &mut Object, name: &str, shape: Shape, how: Patch, retain: bool, a: &[Value], b: &[Value]) {
    let of = if let Shape::List(of) = shape { *of } else { Shape::Any };
    match how {
        Patch::ByKey(key) => {
            let find = |list: &'_ [Value], item: &Value| list.iter().position(|it| it[key] == item[key]);
            let mut changes = Vec::new();
            for gone in a.iter().filter(|it| find(b, it).is_none()) {
                changes.push(json!({ "$patch": "delete", key: gone[key] }));
            }
            for now in b {
                let change = match (find(a, now).map(|at| &a[at]), now) {
                    (Some(then), now) if then == now => continue,
                    (Some(Value::Object(then)), Value::Object(now)) => {
                        let mut change = entries(of, then, now, retain);
                        change.insert(key.into(), now[key].clone());
                        Value::Object(change)
                    }
                    (_, now) => now.clone(),
                };
                changes.push(change);
            }
            if !changes.is_empty() {
                patch.insert(name.into(), Value::Array(changes));
            }
            let order = b.iter().map(|it| json!({ key: it[key] })).collect();
            patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
        }
        Patch::Set => {
            let gone: Vec<&Value> = a.iter().filter(|it| !b.contains(it)).collect();
            if !gone.is_empty() {
                patch.insert(format!("$deleteFromPrimitiveList/{name}"), json!(gone));
            }
            let new: Vec<&Value> = b.iter().filter(|it| !a.contains(it)).collect();
            if !new.is_empty() {
                patch.insert(name.into(), json!(new));
            }
            patch.insert(format!("$setElementOrder/{name}"), json!(b));
        }
        Patch::Deep | Patch::Replace => {
            patch.insert(name.into(), json!(b));
        }
    }
}
