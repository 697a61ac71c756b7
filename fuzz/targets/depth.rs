//! Sequences of patches on nested documents: whatever they are, after each step the object is within the bound of all nesting,
//! and what could not be done was refused. All on a stack so small that a recursion without a bound ends the fuzzer.
//!
//! The input is a row of steps, each a few bytes: what is done, with how many levels of which shape, and where.

#![no_main]

use std::thread;

use corten_meta::depth::{self, DEPTH_MAX, LEVELS_MAX, fits, of_text};
use corten_schema::{
    TYPES, Type,
    apply::{OneView, Operation, Owner, Owners, Set, Write, apply, compare, fields, merged, update},
    check, complete, duplicates, patch, proto, prune, read,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// As the smallest threads that any program of ours has.
const STACK_BYTES: usize = 256 * 1024;
const STEPS_MAX: usize = 64;
/// Larger objects find nothing that smaller ones do not.
const OBJECT_BYTES_MAX: usize = 64 * 1024;
const KEYS: [&str; 8] = ["a", "b", "data", "spec", "metadata", "not", "properties", "$patch"];

fuzz_target!(|data: &[u8]| {
    let data = data.to_vec();
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run(&data)).expect("a thread starts");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
});

fn run(data: &[u8]) {
    let mut input = Input(data);
    let of = TYPES[input.number() % TYPES.len()];
    let mut object = json!({ "a": {}, "data": { "a": 1 }, "spec": [] });
    for _ in 0..STEPS_MAX {
        if input.0.is_empty() || object.to_string().len() > OBJECT_BYTES_MAX {
            return;
        }
        if let Some(made) = step(&mut input, of, &object) {
            assert!(fits(&made, LEVELS_MAX), "a step leads no deeper than the bound");
            assert_eq!(read(made.to_string().as_bytes()).expect("it can be read").0, made);
            object = made;
        }
    }
}

/// The rest of the input.
struct Input<'d>(&'d [u8]);

impl Input<'_> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn number(&mut self) -> usize {
        self.byte() << 8 | self.byte()
    }

    /// Mostly few, sometimes about as many as the bound, sometimes very many.
    fn levels(&mut self) -> usize {
        match self.byte() {
            few @ 0..100 => few,
            some @ 100..250 => some - 100 + LEVELS_MAX - 75,
            many => (many - 249) * 2_000,
        }
    }

    /// A text of so many levels: lists and maps in turn, as the shape's bits say.
    fn nested(&mut self) -> (String, usize) {
        let (shape, key, levels) = (self.byte(), KEYS[self.byte() % KEYS.len()], self.levels());
        let (mut head, mut tail) = (String::new(), String::new());
        for level in 0..levels {
            if shape >> (level % 8) & 1 == 1 {
                head.push('[');
                tail.push(']');
            } else {
                head.push_str(&format!("{{{key:?}:"));
                tail.push('}');
            }
        }
        let tail: String = tail.chars().rev().collect();
        (format!("{head}1{tail}"), levels)
    }

    fn pointer(&mut self) -> String {
        let (first, step, n) = (KEYS[self.byte() % KEYS.len()], self.byte(), self.levels().min(300));
        let step = if step == 0 { "/0".to_owned() } else { format!("/{}", KEYS[step % KEYS.len()]) };
        format!("/{first}{}", step.repeat(n))
    }
}

/// What a step makes of the object; `None` where it is refused or makes nothing.
fn step(input: &mut Input<'_>, of: &'static Type, object: &Value) -> Option<Value> {
    match input.byte() % 10 {
        0 => {
            let (text, levels) = input.nested();
            let _ = duplicates(text.as_bytes());
            let read = read(text.as_bytes());
            assert_eq!(read.is_ok(), levels < DEPTH_MAX, "{levels} levels");
            read.ok().map(|it| json!({ "data": it.0 })).filter(|it| fits(it, LEVELS_MAX))
        }
        1 => {
            let (text, levels) = input.nested();
            let as_far = depth::read(text.as_bytes()).expect("it is JSON");
            assert_eq!(as_far.is_whole, levels < DEPTH_MAX);
            assert_eq!(of_text(text.as_bytes()), levels);
            Some(as_far.value).filter(Value::is_object)
        }
        op @ 2..=4 => {
            let (op, name) = (op - 2, ["add", "replace", "test"]);
            let (path, (value, _)) = (input.pointer(), input.nested());
            let patch = format!(r#"[{{"op":{:?},"path":{path:?},"value":{value}}}]"#, name[op]);
            patch::json(object.clone(), patch.as_bytes()).ok()
        }
        op @ 5..=6 => {
            let op = ["copy", "move"][op - 5];
            let (from, path) = (input.pointer(), input.pointer());
            let patch = format!(r#"[{{"op":{op:?},"from":{from:?},"path":{path:?}}}]"#);
            patch::json(object.clone(), patch.as_bytes()).ok()
        }
        7 => {
            let change = read(input.nested().0.as_bytes()).ok()?.0;
            if let Ok(patched) = patch::strategic(of.name, object.clone(), &change) {
                assert!(fits(&patched, LEVELS_MAX));
            }
            Some(patch::merge(object.clone(), &change)).filter(Value::is_object)
        }
        8 => applied(input, of, object),
        _ => {
            let mut object = object.clone();
            let _ = check(of.name, &object);
            prune(of.name, &mut object);
            complete(of.name, &mut object);
            message(input);
            Some(object)
        }
    }
}

/// The object with a configuration applied to it, and the owners of both reckoned with.
fn applied(input: &mut Input<'_>, of: &'static Type, object: &Value) -> Option<Value> {
    let (text, levels) = input.nested();
    let names = text.replace(":1", ":{}").replace("{\"", "{\"f:").replace(['[', ']'], "");
    if let Ok(set) = Set::read(&names) {
        assert!(of_text(set.to_json().as_bytes()) < DEPTH_MAX);
        let both = set.clone().union(fields(of, object).into_owned());
        assert!(both.contains(&set) && both.clone().difference(&set).without(&set).intersection(&set).is_empty());
    }
    let configuration = read(text.as_bytes()).ok()?.0;
    assert!(levels < DEPTH_MAX);
    let _ = compare(of, Some(object), &configuration);
    let reset = Set::default();
    let by = Owner::new("me", Operation::Apply, "v1", "");
    let write = Write { of: of.into(), by, now: "2026-01-02T03:04:05Z", reset: &reset, views: &OneView };
    let owners = update(&write, None, object, Owners::default()).owners;
    if let Ok(applied) = apply(&write, Some(object), &configuration, owners, true) {
        assert!(applied.object.is_none_or(|it| fits(&it, LEVELS_MAX)));
        assert!(of_text(applied.owned.owners.write().as_bytes()) <= LEVELS_MAX);
    }
    Some(merged(of, object, &configuration)).filter(Value::is_object)
}

/// A ControllerRevision in protobuf, with nested JSON in it.
fn message(input: &mut Input<'_>) {
    let field = |number: u8, content: &[u8]| {
        let mut length = content.len();
        let mut bytes = vec![number << 3 | 2];
        while length >= 0x80 {
            bytes.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        [&bytes, &[length as u8][..], content].concat()
    };
    let (text, levels) = input.nested();
    let type_meta = [field(1, b"apps/v1"), field(2, b"ControllerRevision")].concat();
    let object = field(2, &field(1, text.as_bytes()));
    let body = [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &object)].concat();
    match proto::decode(&body) {
        Ok(object) => assert!(fits(&object, LEVELS_MAX) && levels < LEVELS_MAX),
        Err(error) => assert!(levels >= LEVELS_MAX, "{error}"),
    }
}
