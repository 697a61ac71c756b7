//! Kubernetes' libraries, as tables: what an expression gives, what it costs, and what it says where it gives nothing.

use serde_json::json;

use crate::{
    Activation, Attributes, Authorizer, Decision, DeclType, Env, ErrorKind, ListKind, PER_CALL_LIMIT,
    STORED_EXPRESSIONS, Type, Value, escape, functions, mutation_json, unescape,
};

/// `expression => expression that is the same`, or `expression !! words of the error`.
const CASES: &str = include_str!("../../testdata/libraries.txt");
/// `least most cost expression`: the estimate, and what it costs when it runs.
const COSTS: &str = include_str!("../../testdata/costs.txt");

#[test]
fn values() {
    let env = Env::new(STORED_EXPRESSIONS);
    let (mut wrong, mut n) = (Vec::new(), 0);
    for line in CASES.lines().filter(|it| !it.is_empty() && !it.starts_with('#')) {
        n += 1;
        let (source, expected) = match (line.split_once(" => "), line.split_once(" !! ")) {
            (Some((source, same)), _) => (format!("({source}) == ({same})"), None),
            (_, Some((source, error))) => (source.to_owned(), Some(error)),
            _ => panic!("no case: {line}"),
        };
        let program = match env.compile(&source) {
            Ok(program) => program,
            Err(issues) => {
                wrong.push(format!("{line}: {issues}"));
                continue;
            }
        };
        let activation = Activation::new();
        let found = program.evaluate(&activation, PER_CALL_LIMIT).result;
        let is_right = match (&found, expected) {
            (Ok(Value::Bool(it)), None) => *it,
            (Err(error), Some(expected)) => error.message.contains(expected),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{line}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {n} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn costs() {
    let declared = DeclType::object(
        "object",
        [
            ("text", DeclType::string(Some(5)), false),
            ("ints", DeclType::list(DeclType::INT, Some(100), ListKind::Atomic), false),
            ("texts", DeclType::list(DeclType::string(Some(25)), Some(10), ListKind::Atomic), false),
            ("map", DeclType::map(DeclType::string(Some(25)), Some(10)), false),
            ("any", DeclType::string(None), false),
        ],
    );
    let declared = declared.named("selfType");
    let env = Env::new(STORED_EXPRESSIONS)
        .with_mixed_literals()
        .variable("self", declared.clone())
        .variable("authorizer", DeclType::of(Type::Opaque("kubernetes.authorization.Authorizer")));
    let object = json!({
        "text": "abcde", "ints": [1, 2, 3], "texts": ["a", "b"], "map": { "a": "x", "b": "y" }, "any": "0123456789",
    });
    let authorizer = Allows("get");
    let mut wrong = Vec::new();
    for line in COSTS.lines().filter(|it| !it.is_empty() && !it.starts_with('#')) {
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        let checked = env.check(parts[3]).unwrap_or_else(|issues| panic!("{issues}"));
        let estimate = checked.estimate();
        let program = checked.program();
        let activation = Activation::new()
            .with("self", Value::declared(&object, &declared))
            .with("authorizer", Value::authorizer(&authorizer));
        let outcome = program.evaluate(&activation, PER_CALL_LIMIT);
        let found = format!("{} {} {} {}", estimate.min, estimate.max, outcome.cost, parts[3]);
        if found != line || outcome.result.is_err() {
            wrong.push(format!("expected {line}\n   found {found} {:?}", outcome.result.err()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Allows one verb on everything, and says what was asked.
#[derive(Debug)]
struct Allows(&'static str);

impl Authorizer for Allows {
    fn decide(&self, asked: &Attributes) -> Decision {
        let account = asked.service_account.as_ref().map_or(String::new(), |it| format!("{}/{}", it.0, it.1));
        let reason = format!(
            "{account} {} {} {}/{}/{} {}/{} {} {}",
            asked.verb,
            asked.path.as_deref().unwrap_or("-"),
            asked.group,
            asked.resource,
            asked.subresource,
            asked.namespace,
            asked.name,
            asked.field_selector,
            asked.label_selector
        );
        let error = (asked.verb == "fail").then(|| "it failed".to_owned());
        Decision { is_allowed: asked.verb == self.0, reason, error }
    }
}

#[test]
fn the_authorizer_is_asked() {
    let of = |name| DeclType::of(Type::Opaque(name));
    let env = Env::new(STORED_EXPRESSIONS)
        .variable("authorizer", of("kubernetes.authorization.Authorizer"))
        .variable("authorizer.requestResource", of("kubernetes.authorization.ResourceCheck"));
    let authorizer = Allows("get");
    let asked = Attributes {
        group: "apps".into(),
        resource: "deployments".into(),
        name: "web".into(),
        ..Attributes::default()
    };
    for (source, expected) in [
        ("authorizer.group('apps').resource('deployments').check('get').allowed()", Ok("true")),
        ("authorizer.path('/healthz').check('get').allowed()", Ok("true")),
        ("authorizer.path('/healthz').check('put').allowed()", Ok("false")),
        ("authorizer.group('').resource('pods').check('fail').errored()", Ok("true")),
        ("authorizer.group('').resource('pods').check('fail').error()", Ok("\"it failed\"")),
        (
            "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').subresource('log').namespace('a').name('b')\
             .fieldSelector('c=d').labelSelector('e=f').check('list').reason()",
            Ok("\"ns/sa list - /pods/log a/b c=d e=f\""),
        ),
        ("authorizer.requestResource.check('custom').reason()", Ok("\" custom - apps/deployments/ /web  \"")),
        ("authorizer.path(' ').check('get').allowed()", Err("path must not be empty")),
        ("authorizer.group('').resource('').check('get').allowed()", Err("resource must not be empty")),
        (
            "authorizer.serviceAccount('a.b', 'c').path('/x').check('get').allowed()",
            Err("Invalid service account namespace"),
        ),
        ("authorizer.serviceAccount('a', 'B').path('/x').check('get').allowed()", Err("Invalid service account name")),
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let activation = Activation::new()
            .with("authorizer", Value::authorizer(&authorizer))
            .with("authorizer.requestResource", Value::resource_authorizer(&authorizer, asked.clone()));
        let found = program.evaluate(&activation, PER_CALL_LIMIT).result;
        let found = found.map(|it| it.to_json().expect("JSON").to_string()).map_err(|it| it.message);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{source}");
    }
    let three = "[1, 2, 3].all(i, authorizer.path('/x').check('get').allowed())";
    let program = env.compile(three).expect("it compiles");
    let activation = Activation::new().with("authorizer", Value::authorizer(&authorizer));
    let error = program.evaluate(&activation, PER_CALL_LIMIT).result.expect_err("two questions are the most");
    assert_eq!((error.kind, &*error.message), (ErrorKind::Cost, "operation cancelled: actual cost limit exceeded"));
}

#[test]
fn composed_expressions_are_evaluated_once() {
    let base = Env::new(STORED_EXPRESSIONS).variable("object", DeclType::DYN);
    let variables =
        DeclType::object("variables", [("a", DeclType::of(Type::Int), false), ("b", DeclType::of(Type::Int), false)]);
    let env = base.variable("variables", variables);
    let compile = |source: &str| env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
    let program = compile("variables.b == 9 && variables.b + variables.a == 12");
    let programs = [("a".to_owned(), compile("object.n + 1")), ("b".to_owned(), compile("variables.a * variables.a"))];
    let object = json!({ "n": 2 });
    let activation = Activation::new().with("object", Value::from_json(&object)).composed("variables", &programs);
    assert_eq!(program.evaluate(&activation, PER_CALL_LIMIT).result, Ok(Value::Bool(true)));
    let once = activation.take_composed_cost();
    assert!(once > 0, "what is composed costs");
    assert_eq!(program.evaluate(&activation, PER_CALL_LIMIT).result, Ok(Value::Bool(true)));
    assert_eq!(activation.take_composed_cost(), 0, "and is not evaluated again");
}

#[test]
fn sets_and_associative_lists_have_no_order() {
    let item = DeclType::object("object", [("k", DeclType::INT, true), ("v", DeclType::INT, true)]);
    let declared = DeclType::object(
        "object",
        [
            ("set", DeclType::list(DeclType::INT, None, ListKind::Set), false),
            ("by", DeclType::list(item, None, ListKind::Map(vec!["k".into()])), false),
        ],
    )
    .named("selfType");
    let env = Env::new(STORED_EXPRESSIONS).variable("self", declared.clone()).variable("old", declared.clone());
    let (new, old) = (
        json!({ "set": [1, 2, 3], "by": [{ "k": 1, "v": 1 }, { "k": 2, "v": 2 }] }),
        json!({ "set": [3, 1, 2], "by": [{ "k": 2, "v": 2 }, { "k": 1, "v": 1 }] }),
    );
    for source in [
        "self.set == old.set",
        "self.by == old.by",
        "(self.set + old.set).size() == 3",
        "(self.by + old.by).size() == 2",
        "self == old",
        "[1, 2] != [2, 1]",
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let activation = Activation::new()
            .with("self", Value::declared(&new, &declared))
            .with("old", Value::declared(&old, &declared));
        assert_eq!(program.evaluate(&activation, PER_CALL_LIMIT).result, Ok(Value::Bool(true)), "{source}");
    }
}

#[test]
fn schemas_declare_types() {
    let schema = json!({ "type": "object", "required": ["spec"], "properties": { "spec": {
        "type": "object",
        "properties": {
            "when": { "type": "string", "format": "date-time" },
            "for": { "type": "string", "format": "duration" },
            "raw": { "type": "string", "format": "byte" },
            "port": { "x-kubernetes-int-or-string": true },
            "factor": { "type": "number" },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "unknown": { "x-kubernetes-preserve-unknown-fields": true },
        },
    } } });
    let declared = DeclType::from_schema(&schema, true).expect("a type").named("selfType");
    let env = Env::new(STORED_EXPRESSIONS).variable("self", declared.clone());
    let object = json!({
        "apiVersion": "a/v1", "kind": "A", "metadata": { "name": "x", "labels": {} },
        "spec": {
            "when": "2026-01-02T03:04:05Z", "for": "1h30m", "raw": "aGk=", "port": "80%", "factor": 2, "labels": { "a.b/c": "d" },
        },
    });
    for source in [
        "self.spec.when.getFullYear() == 2026",
        "self.spec.__for__ > duration('1h')",
        "string(self.spec.raw) == 'hi'",
        "type(self.spec.port) == string && self.spec.port.endsWith('%')",
        "self.spec.factor == 2.0",
        "self.spec.labels['a.b/c'] == 'd'",
        "self.metadata.name == 'x' && self.kind == 'A'",
        "!has(self.metadata.generateName)",
    ] {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let activation = Activation::new().with("self", Value::declared(&object, &declared));
        assert_eq!(program.evaluate(&activation, PER_CALL_LIMIT).result, Ok(Value::Bool(true)), "{source}");
    }
    for source in ["self.spec.unknown", "self.metadata.labels"] {
        let said = env.check(source).map(|_| ()).expect_err("not declared").to_string();
        assert!(said.contains("undefined field"), "{said}");
    }
}

#[test]
fn mutations() {
    let env = Env::new(STORED_EXPRESSIONS).with_mutation().variable("object", DeclType::DYN);
    let object = json!({ "spec": { "n": 1 } });
    let made = |source: &str| {
        let program = env.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let activation = Activation::new().with("object", Value::from_json(&object));
        let value = program.evaluate(&activation, PER_CALL_LIMIT).result.expect("a value");
        mutation_json(&value).map(|it| it.to_string()).map_err(|it| it.message)
    };
    assert_eq!(
        made("Object{spec: Object.spec{n: object.spec.n + 1, list: [Object.spec.list{a: 'b'}], ?no: optional.none()}}"),
        Ok(r#"{"spec":{"list":[{"a":"b"}],"n":2}}"#.to_owned())
    );
    assert_eq!(
        made("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: {'c': 1}}]"),
        Ok(r#"[{"op":"add","path":"/metadata/labels/a~1b","value":{"c":1}}]"#.to_owned())
    );
    assert_eq!(
        made("Object{spec: Object.status{n: 1}}"),
        Err("unexpected type name \"Object.status\", expected \"Object.spec\", which matches field name path from root Object \
             type"
            .to_owned())
    );
    for wrong in ["JSONPatch{op: 1}", "JSONPatch{no: 'x'}", "Objects{}"] {
        assert!(env.check(wrong).is_err(), "{wrong}");
    }
    assert!(Env::new(STORED_EXPRESSIONS).check("Object{}").is_err(), "only mutating policies make objects");
}

#[test]
fn names_are_escaped_and_back() {
    for (property, name) in [
        ("a", "a"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("a_b", "a_b"),
        ("int", "int"),
    ] {
        assert_eq!(escape(property).as_deref(), Some(name));
        assert_eq!(unescape(name).as_deref(), Some(property));
    }
    for none in ["", "9a", "a b", "\u{e9}"] {
        assert_eq!(escape(none), None);
    }
    assert_eq!(unescape("a__b"), None);
}

#[test]
fn the_table_is_whole() {
    let mut ids: Vec<&str> = functions().flat_map(|it| &it.overloads).map(|it| it.id).collect();
    let n = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n, "each overload has a name of its own");
    for overload in functions().flat_map(|it| &it.overloads) {
        let types = overload.args.iter().chain([&overload.result]);
        assert!(
            types.into_iter().all(|it| !matches!(it, Type::Error)),
            "{} names types that there are",
            overload.signature
        );
    }
}
