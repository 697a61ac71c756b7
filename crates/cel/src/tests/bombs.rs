//! Expressions that are made to take long, much memory, or a deep stack: each ends soon, in an error or a value.

use std::thread;

use serde_json::json;

use crate::{
    Activation, DEPTH_MAX, DeclType, Env, ErrorKind, Fuel, FuelLimit, PER_CALL_LIMIT, Pattern, STORED_EXPRESSIONS,
    Value, check_pattern, is_spent,
};

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

/// What reads or makes long texts again and again, at a cost that does not tell.
#[test]
fn long_texts() {
    let text = json!("A".repeat(400_000));
    let (other, longer) = (text.clone(), json!("A".repeat(400_001)));
    for source in [
        "x.findAll('.*[^A-Z]|[A-Z]').size() >= 0",
        "x.findAll('.*[^A-Z]|[A-' + 'Z]').size() >= 0",
        "x.findAll('[A-Z]').size() >= 0",
        "'%s'.format([lists.range(400).map(i, x)]) != ''",
        "lists.range(100000).all(i, [x] == [y])",
        "lists.range(10).all(i, x.split('').size() > 0)",
        "lists.range(20000).map(i, 'a'.replace('a', x)).size() > 0",
        "lists.range(10000).map(i, i % 2 == 0 ? x : z).sort().size() > 0",
    ] {
        let env = env().variable("y", DeclType::DYN).variable("z", DeclType::DYN);
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let activation = Activation::new()
            .with("x", Value::from_json(&text))
            .with("y", Value::from_json(&other))
            .with("z", Value::from_json(&longer));
        let outcome = program.evaluate(&activation, PER_CALL_LIMIT);
        let error = outcome.result.expect_err(source);
        assert!(matches!(error.kind, ErrorKind::Cost) || error.message == "string is too long", "{source}: {error}");
    }
    let program = env().compile("lists.range(20000).map(i, x)").expect("it compiles");
    let activation = Activation::new().with("x", Value::from_json(&text));
    let value = program.evaluate(&activation, PER_CALL_LIMIT).result.expect("it shares one text");
    assert!(value.to_json().is_none(), "what is shared is not written again and again");
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

/// What shares a limit has no more together than that, however often a single evaluation would have its own.
#[test]
fn evaluations_share_fuel() {
    let env = env();
    let program = env.compile("x.matches(x)").expect("it compiles");
    let texts: Vec<_> = (1..400).map(|it| json!(format!("\\pL{{25}}a{{{it}}}"))).collect();
    let fuel = Fuel::new(Fuel::OBJECT);
    let mut last = None;
    let ((), was_enough) = fuel.lend(u64::MAX, || {
        for text in texts.iter().cycle().take(20_000) {
            let activation = Activation::new().with("x", Value::from_json(text));
            last = program.evaluate(&activation, PER_CALL_LIMIT).result.err();
            if is_spent() {
                break;
            }
        }
    });
    assert!(!was_enough && fuel.left() == 0);
    assert_eq!(last.map(|it| it.kind), Some(ErrorKind::Cost));
    assert!(!is_spent(), "outside of the limit nothing is counted");
    let (result, _) = fuel.lend(u64::MAX, || program.evaluate(&Activation::new(), PER_CALL_LIMIT).result.map(drop));
    assert_eq!(result.map_err(|it| it.kind), Err(ErrorKind::Cost), "without fuel nothing is evaluated");
}

/// What is used within an inner limit is taken from the outer one.
#[test]
fn limits_nest() {
    let fuel = Fuel::new(1_000);
    let ((), was_enough) = fuel.lend(500, || {
        let limit = FuelLimit::of(100);
        assert!(!crate::spend(200));
        drop(limit);
        assert!(crate::spend(300));
    });
    assert!(was_enough);
    assert_eq!(fuel.left(), 600);
    assert!(!fuel.take(600) && fuel.left() == 0);
}

/// Patterns that are stored are compiled when they are asked, and wrong ones fail then.
#[test]
fn patterns_are_compiled_when_they_are_asked() {
    let patterns: Vec<Pattern> = (1..600).map(|it| Pattern::new(&format!("\\pL{{25}}b{{{it}}}"))).collect();
    let fuel = Fuel::new(Fuel::OBJECT);
    let (asked, was_enough) = fuel.lend(u64::MAX, || patterns.iter().take_while(|it| it.is_match("a").is_ok()).count());
    assert!(!was_enough && asked > 5 && asked < 100, "{asked}");
    let wrong = Pattern::new("(");
    for _ in 0..2 {
        assert!(wrong.is_match("a").is_err_and(|it| it.starts_with("error parsing regexp: ")));
    }
    let unread = env().with_patterns_unread();
    assert!(env().compile("'a'.matches('(')").is_err());
    let program = unread.compile("'a'.matches('(')").expect("it is taken as it stands");
    let said = program.evaluate(&Activation::new(), PER_CALL_LIMIT).result.expect_err("it is none").to_string();
    assert!(said.starts_with("Illegal regex: error parsing regexp: "), "{said}");
}

/// All patterns of a document take so much together, whether or not they were compiled before.
#[test]
fn patterns_of_a_document() {
    for _ in 0..2 {
        let fuel = Fuel::new(Fuel::OBJECT);
        let texts = (1..600).map(|it| format!("\\pL{{25}}c{{{it}}}"));
        let (taken, was_enough) = fuel.lend(u64::MAX, || texts.take_while(|it| check_pattern(it).is_ok()).count());
        assert!(!was_enough && (15..30).contains(&taken), "{taken}");
    }
    let fuel = Fuel::new(Fuel::OBJECT);
    let (checked, was_enough) =
        fuel.lend(u64::MAX, || (0..1_000).all(|it| check_pattern(&format!("^([a-z0-9-]{{1,63}}\\.)*v{it}$")).is_ok()));
    assert!(checked && was_enough, "what is usual is not refused");
}
