//! What is said of expressions that are wrong, and which type those have that are right: `testdata/checks`. The cases are cel-go's.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value as Json;

use crate::{DeclType, Env, ListKind, NEW_EXPRESSIONS, STORED_EXPRESSIONS, functions::read_type};

/// Cases whose words differ, and why.
const EXCEPTIONS: &str = include_str!("../../testdata/checks/exceptions.txt");

#[test]
fn words_and_types_are_as_cel_go_has_them() {
    let exceptions: BTreeMap<&str, &str> = EXCEPTIONS.lines().filter_map(|it| it.split_once(" # ")).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/checks/cel-go.jsonl");
    let (mut wrong, mut n_exceptions) = (Vec::new(), 0);
    for line in fs::read_to_string(file).expect("text").lines() {
        let case: Json = serde_json::from_str(line).expect("JSON");
        let source = case["e"].as_str().expect("an expression");
        let mut env = Env::new(STORED_EXPRESSIONS).with_mixed_literals();
        for (name, of) in case["t"].as_object().into_iter().flatten() {
            let of = read_type(Box::leak(of.as_str().expect("a type").to_owned().into_boxed_str()), &mut Vec::new());
            env = env.variable(name, DeclType::of(of));
        }
        let found = match env.check(source) {
            Ok(checked) => checked.result_type().to_string(),
            Err(issues) => first(&issues.to_string()),
        };
        let expected = match case["x"].as_str() {
            Some(error) => first(&error.replace("ERROR: :", "ERROR: <input>:")),
            None => case["ct"].as_str().expect("a type").to_owned(),
        };
        match (found == expected, exceptions.contains_key(source)) {
            (true, false) => {}
            (false, true) => n_exceptions += 1,
            (true, true) => wrong.push(format!("{source}: passes, and is listed as an exception")),
            (false, false) => wrong.push(format!("{source}:\n  expected {expected}\n  found    {found}")),
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(n_exceptions, exceptions.len(), "an exception names a case that there is");
}

/// What a reader goes on with after a mistake differs from reader to reader: the first complaint counts.
fn first(issues: &str) -> String {
    issues.split("\nERROR: ").next().unwrap_or_default().to_owned()
}

#[test]
fn complaints_of_declared_objects() {
    let spec = DeclType::object(
        "object",
        [
            ("replicas", DeclType::INT, true),
            ("a-b.c/d", DeclType::string(Some(5)), false),
            ("namespace", DeclType::string(None), false),
            ("ports", DeclType::list(DeclType::INT, Some(3), ListKind::Set), false),
            ("labels", DeclType::map(DeclType::string(None), None), false),
            ("9", DeclType::INT, false),
        ],
    );
    let root = DeclType::object("object", [("spec", spec, true)]).named("selfType");
    let env = Env::new(NEW_EXPRESSIONS).variable("self", root);
    for right in [
        "self.spec.replicas > 3",
        "self.spec.a__dash__b__dot__c__slash__d == 'x'",
        "self.spec.__namespace__ == 'x'",
        "self.spec.ports.all(it, it < 5)",
        "'a' in self.spec.labels && self.spec.labels['a'] == 'b'",
        "self == self && self.spec == null",
    ] {
        assert_eq!(
            env.check(right).map(|it| it.result_type().to_string()).map_err(|it| it.to_string()),
            Ok("bool".into())
        );
    }
    for (wrong, expected) in [
        ("self.spec.x", "ERROR: <input>:1:10: undefined field 'x'\n | self.spec.x\n | .........^"),
        (
            "self.spec == 5",
            "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(selfType.spec, int)'\n | self.spec == 5\n | \
             ..........^",
        ),
        (
            "self.spec.replicas.x",
            "ERROR: <input>:1:19: type 'int' does not support field selection\n | self.spec.replicas.x\n | ..................^",
        ),
        ("[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"),
        ("duration('1y')", "ERROR: <input>:1:10: invalid duration argument\n | duration('1y')\n | .........^"),
        ("'a'.matches('[')", "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('[')\n | ............^"),
        (
            "cel.bind(x, 1, x)",
            "ERROR: <input>:1:1: undeclared reference to 'cel' (in container '')\n | cel.bind(x, 1, x)\n | ^",
        ),
        (
            "'a'.startsWith(1)",
            "ERROR: <input>:1:15: found no matching overload for 'startsWith' applied to 'string.(int)'\n | 'a'.startsWith(1)\n | \
             ..............^",
        ),
    ] {
        let found = env.check(wrong).map(|it| it.result_type().to_string()).map_err(|it| first(&it.to_string()));
        assert_eq!(found, Err(expected.to_owned()));
    }
}

#[test]
fn older_versions_know_less() {
    for (minor, source) in [
        (26, "[].exists(a, authorizer.group('').resource('x').check('get').allowed())"),
        (27, "quantity('1') == quantity('1')"),
        (28, "sets.contains([1], [1])"),
        (29, "isIP('1.2.3.4')"),
        (30, "format.uri().validate('x').hasValue()"),
        (31, "[1].all(i, v, i < v)"),
        (32, "isSemver('1.0.0')"),
        (33, "[2, 1].sort() == [1, 2]"),
    ] {
        let env = |minor| {
            let authorizer = crate::Type::Opaque("kubernetes.authorization.Authorizer");
            Env::new(minor).variable("authorizer", DeclType::of(authorizer))
        };
        assert!(env(minor).check(source).is_err(), "1.{minor} does not know {source}");
        assert_eq!(env(minor + 1).check(source).map(|_| ()).map_err(|it| it.to_string()), Ok(()));
    }
}
