//! A schema in YAML's JSON, an object, and what becomes of it.

mod differential;

use corten_cel::Fuel;
use corten_meta::Violation;
use serde_json::{Value, json};

use super::Structural;

fn told(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<String> {
    Structural::read(schema).validate(value, old).iter().map(ToString::to_string).collect()
}

/// A schema whose one field `x` is this.
fn of(field: Value) -> Value {
    json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "x": field } } } })
}

#[test]
fn says_what_is_wrong_in_upstreams_words() {
    for (field, value, expected) in [
        (
            json!({ "type": "integer" }),
            json!("a"),
            r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
        ),
        (
            json!({ "type": "integer" }),
            json!(1.5),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
        ),
        (json!({ "type": "integer" }), json!(1.0), ""),
        (json!({ "type": "integer" }), json!(i64::MAX), ""),
        (json!({ "type": "number" }), json!(u64::MAX), ""),
        (
            json!({ "type": "integer" }),
            json!(9_223_372_036_854_775_808_u64),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
        ),
        (
            json!({ "type": "integer" }),
            json!(1e20),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
        ),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(u64::MAX),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer,string: "number""#,
        ),
        (json!({ "type": "number" }), json!(1), ""),
        (
            json!({ "type": "string" }),
            Value::Null,
            r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#,
        ),
        (json!({ "type": "string", "nullable": true }), Value::Null, ""),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(true),
            r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#,
        ),
        (json!({ "x-kubernetes-int-or-string": true }), json!("a"), ""),
        (json!({ "type": "string", "maxLength": 2 }), json!("äöü"), "spec.x: Too long: may not be more than 2 bytes"),
        (json!({ "type": "string", "maxLength": 3 }), json!("äöü"), ""),
        (
            json!({ "type": "string", "minLength": 2 }),
            json!("a"),
            r#"spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long"#,
        ),
        (
            json!({ "type": "string", "pattern": "^[a-z]+$" }),
            json!("A"),
            r#"spec.x: Invalid value: "A": spec.x in body should match '^[a-z]+$'"#,
        ),
        (
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!("c"),
            r#"spec.x: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (
            json!({ "type": "integer", "maximum": 3 }),
            json!(4),
            "spec.x: Invalid value: 4: spec.x in body should be less than or equal to 3",
        ),
        (
            json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true }),
            json!(0),
            "spec.x: Invalid value: 0: spec.x in body should be greater than 0",
        ),
        (
            json!({ "type": "integer", "multipleOf": 3 }),
            json!(4),
            "spec.x: Invalid value: 4: spec.x in body should be a multiple of 3",
        ),
        (json!({ "type": "number", "multipleOf": 0.1 }), json!(0.3), ""),
        (json!({ "type": "integer", "format": "int32" }), json!(2_147_483_647), ""),
        (
            json!({ "type": "integer", "format": "int32" }),
            json!(-2_147_483_649_i64),
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#,
        ),
        (
            json!({ "type": "integer", "format": "int32" }),
            json!(3e9),
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#,
        ),
        (
            json!({ "type": "integer", "format": "int32", "maximum": 4_294_967_295_i64 }),
            json!(7),
            r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer with format int32 in spec.x"#,
        ),
        (
            json!({ "type": "integer", "format": "int32" }),
            json!(1.5),
            r#"spec.x: Invalid value: "float64": spec.x in body must be of type int32: "float64""#,
        ),
        (
            json!({ "type": "integer", "format": "int32" }),
            json!("1"),
            r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
        ),
        (json!({ "type": "integer", "format": "int64" }), json!(i64::MAX), ""),
        (json!({ "type": "integer", "format": "uint32" }), json!(5_000_000_000_i64), ""),
        (json!({ "type": "number", "format": "int32" }), json!(3_000_000_000_i64), ""),
        (json!({ "type": "number", "format": "float" }), json!(3.4e38), ""),
        (
            json!({ "type": "number", "format": "float" }),
            json!(3.5e38),
            r#"<nil>: Invalid value: "": Checked value must be of type number with format float in spec.x"#,
        ),
        (json!({ "type": "number", "format": "double" }), json!(1e308), ""),
        (
            json!({ "type": "array", "maxItems": 1, "items": { "type": "string" } }),
            json!(["a", 1]),
            r#"spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer"; spec.x: Too many: 2: must have at most 1 items"#,
        ),
        (
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }),
            json!({}),
            "spec.x.a: Required value",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            json!({ "a": 1, "b": "c" }),
            r#"spec.x.b: Invalid value: "string": spec.x.b in body must be of type integer: "string""#,
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!("yesterday"),
            r#"spec.x: Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday""#,
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } }),
            json!(["a", "b", "a", "a"]),
            r#"spec.x[2]: Duplicate value: "a""#,
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "set", "items": {
                "type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": { "type": "integer" } } }),
            json!([{ "a": 1, "b": 2 }, { "a": 2, "b": 1 }, { "b": 2, "a": 1 }]),
            r#"spec.x[2]: Duplicate value: {"a":1,"b":2}"#,
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {
                "type": "object", "properties": { "a": { "type": "string", "default": "d" }, "b": { "type": "string" } } } }),
            json!([{ "b": "1" }, { "a": "d" }]),
            r#"spec.x[1]: Duplicate value: {"a":"d"}"#,
        ),
    ] {
        let object = json!({ "spec": { "x": value } });
        assert_eq!(told(&of(field.clone()), &object, None).join("; "), expected, "{field} {value}");
    }
}

#[test]
fn combinations_name_the_alternative_that_fits_best() {
    let one = json!({ "properties": { "a": { "enum": [1] } }, "required": ["a"] });
    let two = json!({ "properties": { "a": { "enum": [2] } }, "required": ["a", "b"] });
    let schema = |logic: Value| {
        let mut field =
            json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } });
        field.as_object_mut().expect("made as one").extend(logic.as_object().expect("made as one").clone());
        of(field)
    };
    for (logic, value, expected) in [
        (json!({ "oneOf": [one, two] }), json!({ "a": 1 }), ""),
        (
            json!({ "oneOf": [one, { "required": ["a"] }] }),
            json!({ "a": 1 }),
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ),
        (
            json!({ "oneOf": [one, two] }),
            json!({}),
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid; spec.x.a: Required value"#,
        ),
        (json!({ "anyOf": [one, two] }), json!({ "a": 2, "b": 1 }), ""),
        (
            json!({ "anyOf": [one] }),
            json!({ "a": 2 }),
            r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf); spec.x.a: Unsupported value: "2": supported values: "1""#,
        ),
        (
            json!({ "allOf": [one, two] }),
            json!({ "a": 1, "b": 1 }),
            r#"spec.x.a: Unsupported value: "1": supported values: "2"; <nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ),
        (
            json!({ "not": { "required": ["b"] } }),
            json!({ "b": 1 }),
            r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#,
        ),
    ] {
        let object = json!({ "spec": { "x": value } });
        assert_eq!(told(&schema(logic.clone()), &object, None).join("; "), expected, "{logic} {value}");
    }
}

#[test]
fn what_has_not_changed_may_be_as_wrong_as_it_was() {
    let item = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "size": { "type": "integer", "maximum": 3 }, "note": { "type": "string" } } });
    let keyed = json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item });
    let plain = json!({ "type": "array", "items": item });
    let old = json!({ "spec": { "x": [{ "name": "a", "size": 9 }, { "name": "b", "size": 1 }] } });
    let moved = json!({ "spec": { "x": [{ "name": "b", "size": 2 }, { "name": "a", "size": 9, "note": "n" }] } });
    let twice = |it: &str| json!({ "spec": { "x": ["a", "a", it] } });
    let set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    assert_eq!(told(&of(set.clone()), &twice("b"), Some(&twice("c"))), [""; 0], "what is there twice may stay");
    let once = json!({ "spec": { "x": ["a"] } });
    assert_eq!(told(&of(set), &twice("b"), Some(&once)), [r#"spec.x[1]: Duplicate value: "a""#]);
    let wrong = "spec.x[1].size: Invalid value: 9: spec.x[1].size in body should be less than or equal to 3";
    for (field, new, expected) in [
        (&keyed, &old, ""),
        (&keyed, &moved, ""),
        (&plain, &old, ""),
        // Items of an atomic list are told apart by nothing.
        (&plain, &moved, wrong),
    ] {
        assert_eq!(told(&of(field.clone()), new, Some(&old)).join("; "), expected, "{field} {new}");
    }
}

#[test]
fn fills_in_defaults_and_drops_nulls() {
    let schema = of(json!({ "type": "object", "default": {}, "properties": {
        "a": { "type": "string", "default": "A" },
        "n": { "type": "string", "nullable": true, "default": "N" },
        "m": { "type": "string" },
        "list": { "type": "array", "items": { "type": "object", "properties": { "b": { "type": "integer", "default": 1 } } } },
        "map": { "type": "object", "additionalProperties": { "type": "integer", "default": 7 } },
    } }));
    for (given, expected) in [
        (json!({}), json!({})),
        (json!({ "spec": {} }), json!({ "spec": { "x": { "a": "A", "n": "N" } } })),
        (json!({ "spec": { "x": null } }), json!({ "spec": { "x": { "a": "A", "n": "N" } } })),
        (
            json!({ "spec": { "x": { "a": null, "n": null, "m": null, "list": [{}, { "b": 2 }], "map": { "k": null } } } }),
            json!({ "spec": { "x": { "a": "A", "n": null, "list": [{ "b": 1 }, { "b": 2 }], "map": { "k": 7 } } } }),
        ),
    ] {
        let mut object = given.clone();
        Structural::read(&schema).default(&mut object).expect("small enough");
        assert_eq!(object, expected, "{given}");
        let again = object.clone();
        Structural::read(&schema).default(&mut object).expect("small enough");
        assert_eq!(object, again, "defaults are filled in once");
    }
}

#[test]
fn prunes_what_is_not_known() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "a": { "type": "string" },
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "strict": { "type": "object", "properties": { "b": { "type": "string" } } } } },
        "list": { "type": "array", "items": { "type": "object", "properties": { "c": { "type": "string" } } } },
        "map": { "type": "object", "additionalProperties": { "type": "object", "properties": { "d": { "type": "string" } } } },
        "embedded": { "type": "object", "x-kubernetes-embedded-resource": true, "properties": { "spec": { "type": "object" } } },
    } } } });
    let mut object = json!({
        "apiVersion": "v", "kind": "K", "metadata": { "name": "n" }, "extra": 1,
        "spec": {
            "a": "1", "b": "2",
            "free": { "any": { "thing": [1] }, "strict": { "b": "1", "x": 2 } },
            "list": [{ "c": "1", "x": 2 }],
            "map": { "k": { "d": "1", "x": 2 } },
            "embedded": { "apiVersion": "v", "kind": "K", "metadata": {}, "spec": { "x": 1 }, "status": {} },
        },
    });
    let removed = Structural::read(&schema).prune(&mut object);
    assert_eq!(
        object,
        json!({
            "apiVersion": "v", "kind": "K", "metadata": { "name": "n" },
            "spec": {
                "a": "1",
                "free": { "any": { "thing": [1] }, "strict": { "b": "1" } },
                "list": [{ "c": "1" }],
                "map": { "k": { "d": "1" } },
                "embedded": { "apiVersion": "v", "kind": "K", "metadata": {}, "spec": {} },
            },
        })
    );
    assert_eq!(
        removed,
        [
            "extra",
            "spec.b",
            "spec.free.strict.x",
            "spec.list[0].x",
            "spec.map.k.x",
            "spec.embedded.spec.x",
            "spec.embedded.status"
        ]
    );
}

#[test]
fn knows_formats() {
    for (format, right, wrong) in [
        ("date", "2026-02-28", "2026-02-30"),
        ("datetime", "2026-02-28T10:00:00+01:00", "2026-02-28"),
        ("duration", "1h30m", "soon"),
        ("duration", "3 days", "days"),
        ("email", "a.b@example.com", "a.b"),
        ("email", "A B <a@b>", "A B <a>"),
        ("hostname", "a-1.example.com", "-a.example.com"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:11:22:33:44:55", "00:11:22:33:44"),
        ("mac", "0011.2233.4455", "00112233.4455"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-42661417400"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("uuid3", "123e4567e89b32d3a456426614174000", "123e4567e89b42d3a456426614174000"),
        ("byte", "YWI=", "YWI"),
        ("hexcolor", "#fff", "#ff"),
        ("rgbcolor", "rgb(0, 255,10)", "rgb(0,256,0)"),
        ("isbn", "978-3-16-148410-0", "978-3-16-148410-1"),
        ("isbn10", "0-306-40615-2", "0-306-40615-3"),
        ("creditcard", "4539 1488 0343 6467", "4539 1488 0343 6468"),
        ("ssn", "123-45-6789", "123-45-678"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901g"),
        ("uri", "https://example.com/a", "example"),
        ("k8s-short-name", "a", "a.b"),
    ] {
        assert!(super::formats::holds(format, right), "{format}: {right}");
        assert!(!super::formats::holds(format, wrong), "{format}: {wrong}");
    }
    assert!(super::formats::holds("unheard-of", "anything"));
}

#[test]
fn asks_rules_in_cel() {
    let schema = json!({ "type": "object", "properties": { "spec": {
        "type": "object",
        "x-kubernetes-validations": [
            { "rule": "self.min <= self.max", "message": "min may not be above max" },
            { "rule": "self.max < 100", "fieldPath": ".max", "reason": "FieldValueForbidden", "messageExpression": "'max is ' + string(self.max)" },
            { "rule": "self.max >= oldSelf.max" },
        ],
        "properties": {
            "min": { "type": "integer" },
            "max": { "type": "integer" },
            "tags": { "type": "array", "maxItems": 10, "items": {
                "type": "string", "maxLength": 10, "x-kubernetes-validations": [{ "rule": "self.startsWith('a')" }] } },
            "made": { "type": "object", "properties": { "by": { "type": "string" } }, "x-kubernetes-validations": [
                { "rule": "oldSelf.hasValue() || self.by == 'me'", "optionalOldSelf": true, "message": "made by me" },
                { "rule": "self.by.size() > 0" } ] },
        },
    } } });
    let schema = Structural::read(&schema);
    let spec = |it: Value| json!({ "spec": it });
    for (new, old, expected) in [
        (json!({ "min": 1, "max": 2 }), None, ""),
        (json!({ "min": 3, "max": 2 }), None, r#"spec: Invalid value: "object": min may not be above max"#),
        (json!({ "min": 3, "max": 200 }), None, "spec.max: Forbidden: max is 200"),
        (
            json!({ "min": 1, "max": 2 }),
            Some(json!({ "min": 1, "max": 3 })),
            r#"spec: Invalid value: "object": failed rule: self.max >= oldSelf.max"#,
        ),
        (
            json!({ "min": 1, "max": 2, "tags": ["a", "b"] }),
            None,
            r#"spec.tags[1]: Invalid value: "string": failed rule: self.startsWith('a')"#,
        ),
        (
            json!({ "min": 1 }),
            None,
            r#"spec: Invalid value: "object": no such key: max evaluating rule: min may not be above max; spec: Invalid value: "object": no such key: max evaluating rule: failed rule: self.max < 100"#,
        ),
        (
            json!({ "min": 1, "max": 2, "made": { "by": "you" } }),
            None,
            r#"spec.made: Invalid value: "object": made by me"#,
        ),
        (
            json!({ "min": 1, "max": 2, "made": { "by": "you" } }),
            Some(json!({ "min": 1, "max": 2, "made": { "by": "" } })),
            "",
        ),
        // The same part is as wrong as it was.
        (
            json!({ "min": 0, "max": 2, "made": { "by": "" } }),
            Some(json!({ "min": 1, "max": 2, "made": { "by": "" } })),
            "",
        ),
    ] {
        let found = schema.validate_expressions(&spec(new.clone()), old.map(spec).as_ref());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join("; "), expected, "{new}");
    }
}

/// However many items there are, one object costs no more than the budget.
#[test]
fn expressions_end_with_their_budget() {
    let schema = json!({ "type": "object", "properties": { "list": { "type": "array", "items": {
        "type": "string", "x-kubernetes-validations": [{ "rule": "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a + b + c > 0)))" }] } } } });
    let object = json!({ "list": vec!["a"; 20_000] });
    let found = Structural::read(&schema).validate_expressions(&object, None);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("cost"), "{found:?}");
}

/// A short object may ask for a long default as often as it has items.
#[test]
fn defaults_have_a_bound() {
    let schema = json!({ "type": "object", "properties": { "list": { "type": "array", "items": {
        "type": "object", "properties": { "text": { "type": "string", "default": "x".repeat(4096) } } } } } });
    let schema = Structural::read(&schema);
    for (n, fits) in [(100, true), (700, true), (800, false), (100_000, false)] {
        let mut object = json!({ "list": vec![json!({}); n] });
        assert_eq!(schema.default(&mut object).is_ok(), fits, "{n}");
    }
}

/// What validation says, and what it took of the fuel for one object.
fn told_within(units: u64, schema: &Value, value: &Value, old: Option<&Value>) -> (Vec<String>, u64) {
    let fuel = Fuel::new(Fuel::OBJECT);
    let (told, _) = fuel.lend(units, || told(schema, value, old));
    (told, Fuel::OBJECT - fuel.left())
}

/// Whatever is done for each item takes fuel: little is refused, and little fuel does not do for much.
#[test]
fn all_that_is_done_for_an_item_takes_fuel() {
    const ITEMS: usize = 10_000;
    const LITTLE: u64 = 20_000;
    let list = |items: Value| of(json!({ "type": "array", "items": items }));
    let strings: Vec<Value> = (0..500).map(|it| json!(format!("s{it}"))).collect();
    let objects: Vec<Value> = (0..500).map(|it| json!({ "n": it })).collect();
    let one_of_many: Vec<Value> = (0..20).map(|it| json!({ "enum": [format!("s{it}")] })).collect();
    let names: Vec<String> = (0..50).map(|it| format!("n{it}")).collect();
    let all_named: serde_json::Map<String, Value> = names.iter().map(|it| (it.clone(), json!(1))).collect();
    let keyed = json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": { "type": "object", "properties": { "k": { "type": "string" } } } });
    let set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "integer" } });
    let same = |item: Value| Value::from(vec![item; ITEMS]);
    let keys: Vec<Value> = (0..ITEMS).map(|it| json!({ "k": format!("k{it}") })).collect();
    let numbers: Vec<Value> = (0..ITEMS).map(Value::from).collect();
    for (what, schema, x) in [
        ("values", list(json!({})), same(json!(1))),
        ("enums", list(json!({ "type": "string", "enum": strings })), same(json!("s499"))),
        ("enums of objects", list(json!({ "enum": objects })), same(json!({ "n": 499 }))),
        ("alternatives", list(json!({ "anyOf": one_of_many })), same(json!("s19"))),
        ("exclusive alternatives", list(json!({ "oneOf": one_of_many })), same(json!("s0"))),
        ("not", list(json!({ "not": { "enum": strings } })), same(json!("else"))),
        ("required names", list(json!({ "type": "object", "required": names })), same(Value::Object(all_named))),
        ("keys", of(keyed), Value::from(keys)),
        ("sets", of(set), Value::from(numbers)),
    ] {
        let object = json!({ "spec": { "x": x } });
        let (told, used) = told_within(Fuel::OBJECT, &schema, &object, None);
        assert!(told.is_empty() && used > LITTLE, "{what}: {used} {told:?}");
        let (told, _) = told_within(LITTLE, &schema, &object, None);
        assert!(told.len() == 1 && told[0].ends_with(super::OUT_OF_BUDGET), "{what}: {told:?}");
        let mut changed = object.clone();
        changed["spec"]["y"] = json!(1);
        let (told, _) = told_within(LITTLE / 10, &schema, &changed, Some(&object));
        assert!(told.len() == 1 && told[0].ends_with(super::OUT_OF_BUDGET), "{what}, which did not change: {told:?}");
    }
}

/// Nothing is looked for beyond what is told, and nothing is written of alternatives that are only tried.
#[test]
fn a_violation_that_is_not_told_costs_nothing() {
    let strings: Vec<Value> = (0..1000).map(|it| json!(format!("s{it}"))).collect();
    let items = json!({ "type": "string", "enum": strings });
    let object = json!({ "spec": { "x": vec!["else"; 100_000] } });
    let (told, used) = told_within(Fuel::OBJECT, &of(json!({ "type": "array", "items": items })), &object, None);
    assert_eq!(told.len(), Violation::MOST + 1);
    assert!(used < 10_000, "{used}");

    let alternatives = of(json!({ "type": "array", "items": { "anyOf": [items, { "enum": ["else"] }] } }));
    assert_eq!(told_within(Fuel::OBJECT, &alternatives, &object, None).0, [""; 0]);
    let alternatives = of(json!({ "anyOf": [{ "minLength": 9 }, items] }));
    let told = told_within(Fuel::OBJECT, &alternatives, &json!({ "spec": { "x": "else" } }), None).0;
    let starts = [
        r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
        r#"spec.x: Unsupported value: "else": supported values: "s0", "s1""#,
    ];
    assert!(told.len() == 2 && told.iter().zip(starts).all(|(it, start)| it.starts_with(start)), "{told:?}");
}

#[test]
fn an_enum_allows_what_is_the_same_value() {
    let schema = of(json!({ "enum": [1, -2.5, "1", true, null, { "a": [1] }, 0, 9_007_199_254_740_993_i64] }));
    for (x, is_allowed) in [
        (json!(9_007_199_254_740_993_i64), true),
        (json!(9_007_199_254_740_992_i64), false),
        (json!(9_007_199_254_740_992.0), false),
        (json!(1e300), false),
        (json!(1), true),
        (json!(1.0), true),
        (json!(-2.5), true),
        (json!(-0.0), true),
        (json!("1"), true),
        (json!({ "a": [1] }), true),
        (json!(true), true),
        (json!(2), false),
        (json!("2.5"), false),
        (json!(false), false),
        (json!({ "a": [2] }), false),
    ] {
        let told = told(&schema, &json!({ "spec": { "x": x } }), None);
        assert_eq!(told.is_empty(), is_allowed, "{x}: {told:?}");
    }
}
