//! Expressions that people write: read, checked, estimated, evaluated, on a small stack. Whatever they are, that ends soon, and
//! what is evaluated costs no more than it may.
//!
//! What comes after a line of its own is JSON: the object that the expression looks at.

#![no_main]

use std::thread;

use corten_cel::{Activation, DeclType, Env, Error, ErrorKind, ListKind, STORED_EXPRESSIONS, Value};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value as Json, json};

/// As the smallest threads that evaluate expressions.
const STACK_BYTES: usize = 512 * 1024;
/// A tenth of what one call may cost: more finds nothing that less does not.
const LIMIT: u64 = 100_000;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = text.to_owned();
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run(&text)).expect("a thread starts");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
});

fn run(text: &str) {
    let (source, object) = text.split_once("\n---\n").unwrap_or((text, ""));
    let object: Json =
        serde_json::from_str(object).unwrap_or_else(|_| json!({ "text": "a b", "list": [1, 2], "map": { "a": "b" }, "any": 1 }));
    let declared = DeclType::object(
        "object",
        [
            ("text", DeclType::string(Some(50)), true),
            ("list", DeclType::list(DeclType::INT, Some(5), ListKind::Set), false),
            ("map", DeclType::map(DeclType::string(None), None), false),
            ("any", DeclType::int_or_string(None), false),
        ],
    )
    .named("selfType");
    let env = Env::new(STORED_EXPRESSIONS).with_bind().variable("self", declared.clone()).variable("x", DeclType::DYN);
    let checked = match env.check(source) {
        Ok(checked) => checked,
        Err(issues) => {
            assert!(issues.to_string().starts_with("ERROR: <input>:"), "a complaint says where");
            return;
        }
    };
    let estimate = checked.estimate();
    assert!(estimate.min <= estimate.max, "{source}: {estimate:?}");
    let program = checked.program();
    let activation =
        Activation::new().with("self", Value::declared(&object, &declared)).with("x", Value::from_json(&object));
    let outcome = program.evaluate(&activation, LIMIT);
    match outcome.result {
        Err(Error { kind: ErrorKind::Cost, .. }) => {}
        result => {
            assert!(outcome.cost <= LIMIT, "{source}: costs {}", outcome.cost);
            drop(result.map(|it| it.to_json()));
        }
    }
}
