//! Expressions that are made to take long, much memory, or a deep stack: each ends soon, in an error or a value.

use std::thread;

use serde_json::json;

use crate::{Activation, DEPTH_MAX, DeclType, Env, ErrorKind, PER_CALL_LIMIT, STORED_EXPRESSIONS, Value};

/// As the smallest threads that evaluate expressions.
const STACK_BYTES: usize = 512 * 1024;

fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread starts");
    thread.join().expect("nothing went wrong");
}

fn env() -> Env {
    Env::new(STORED_EXPRESSIONS).with_bind().with_mixed_literals().variable("x", DeclType::DYN)
}

/// Nested as deep as may be, in every way there is.
#[test]
fn depth() {
    on_small_stack(|| {
        let n = usize::from(DEPTH_MAX);
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{1: ", "1", "}"),
            ("!", "true", ""),
            ("-", "x", ""),
            ("true ? 1 : ", "1", ""),
            ("", "x", ".a"),
            ("", "x", "[0]"),
            ("", "x", "[?0]"),
            ("", "x", " + 1"),
            ("1 + (", "1", ")"),
            ("", "true", " && true"),
            ("[1].map(y, ", "y", ")"),
            ("[1].all(y, ", "true", ")"),
            ("[1].filter(y, true || ", "true", ")"),
            ("cel.bind(y, 1, ", "y", ")"),
            ("dyn(", "1", ")"),
            ("", "optional.of(1)", ".optMap(y, y)"),
            ("x.f(", "x", ")"),
        ] {
            for levels in [n / 8, n / 4 - 1, n / 2 - 1, n - 2, n - 1, n, n + 1, 20 * n] {
                let source = format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
                let env = env();
                let Ok(checked) = env.check(&source) else { continue };
                let _estimate = checked.estimate();
                let program = checked.program();
                let object = json!({ "a": [0] });
                let activation = Activation::new().with("x", Value::from_json(&object));
                let _outcome = program.evaluate(&activation, PER_CALL_LIMIT);
            }
        }
    });
}

#[test]
fn work() {
    let long = json!((0..2_000).map(|it| format!("item {it}")).collect::<Vec<_>>());
    let nested = "[x].map(y, [y, y, y, y])".to_owned() + &".map(y, [y, y, y, y])".repeat(30);
    let mut wrong = Vec::new();
    let doubled = "[x + x]".to_owned() + &".map(y, y + y)".repeat(60);
    for (source, is_stopped) in [
        ("x.all(a, x.all(b, x.all(c, a != b || b != c || true)))".to_owned(), true),
        ("lists.range(1000000).size() == 1000000".to_owned(), true),
        ("x.map(a, x).map(a, a.map(b, x)).size() > 0".to_owned(), true),
        ("x.exists(a, x == x.map(b, 'item'))".to_owned(), true),
        (format!("{nested} == {nested}"), true),
        (format!("{doubled}[0].size() > 0"), false),
        (format!("x.all(a, {doubled}[0] + x != [])"), true),
        (format!("'%s'.format([{nested}])"), true),
        (format!("{nested}.flatten(12).size() > 0"), true),
        ("x.map(a, a.replace('', a)).map(a, a.replace('', a)).map(a, a.replace('', a)).size() > 0".to_owned(), true),
        ("x.all(a, a.matches('(' + a + 'a{500}){50}') || true)".to_owned(), true),
        ("x.distinct().size() > 0".to_owned(), true),
        ("x.all(a, x.sort() != x)".to_owned(), true),
        ("x.transformMap(i, v, x).size() == 2000".to_owned(), false),
    ] {
        let env = env();
        let program = env.compile(&source).unwrap_or_else(|issues| panic!("{issues}"));
        let activation = Activation::new().with("x", Value::from_json(&long));
        let outcome = program.evaluate(&activation, PER_CALL_LIMIT);
        let kind = outcome.result.as_ref().err().map(|it| it.kind);
        let was_stopped = matches!(kind, Some(ErrorKind::Cost | ErrorKind::Other));
        if was_stopped != is_stopped {
            let source: String = source.chars().take(60).collect();
            wrong.push(format!("{source}: {} units, {:?}", outcome.cost, outcome.result.err()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_too_large_is_not_read() {
    let env = env();
    for (source, expected) in [
        ("1".repeat(100_001), "expression code point size exceeds limit: size: 100001, limit 100000"),
        (format!("[{}]", "1,".repeat(49_999)), "expression has more than 50000 nodes"),
        (format!("x{}", ".optMap(y, y)".repeat(40)), "expression"),
        ("(".repeat(300), "expression recursion limit exceeded: 120"),
    ] {
        let said = env.check(&source).expect_err("it is too large").to_string();
        assert!(said.starts_with("ERROR: <input>:-1:0: ") && said.contains(expected), "{said}");
    }
}
