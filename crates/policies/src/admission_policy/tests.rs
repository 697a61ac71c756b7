//! Tables: what policies say of objects, and what they make of them.

use corten_schema::Struct;
use serde_json::{Value, json};

use super::{MutatingPolicy, ObjectType, Unevaluated, ValidatingPolicy};
use crate::matching::{Bindings, Verdict};

/// What is said, a line each.
fn said(spec: &Value, bindings: &Bindings<'_>) -> Vec<String> {
    let policy = ValidatingPolicy::read(&json!({ "metadata": { "name": "p" }, "spec": spec }));
    let evaluation = match policy.policy.matches(bindings) {
        Verdict::Matches => policy.evaluate(bindings),
        unmatched => policy.unmatched(unmatched),
    };
    let decisions = evaluation.decisions.into_iter().map(|it| {
        let kind = if it.is_admitted { "ignored" } else { "denied" };
        format!("{} {kind} {}: {}", it.nth, it.reason, it.message)
    });
    let annotations = evaluation.annotations.into_iter().map(|it| match it.value {
        Ok(value) => format!("{} = {value}", it.key),
        Err(error) => format!("{} ! {error}", it.key),
    });
    decisions.chain(annotations).collect()
}

#[test]
fn validations() {
    let object = json!({ "metadata": { "name": "web", "labels": { "a": "b" } }, "spec": { "replicas": 7 } });
    let params = json!({ "data": { "max": "5" } });
    let namespace = json!({ "metadata": { "name": "team", "labels": { "env": "prod" } } });
    let bindings =
        Bindings { object: Some(&object), params: Some(&params), namespace: Some(&namespace), ..Bindings::default() };
    let one = |it: Value| json!({ "validations": [it] });
    let missing = "expression 'object.spec.x > 1' resulted in error: no such key: x";
    for (spec, expected) in [
        (one(json!({ "expression": "object.spec.replicas > 1" })), vec![]),
        (
            one(json!({ "expression": " object.spec.replicas < 5" })),
            vec!["0 denied Invalid: failed expression: object.spec.replicas < 5".to_owned()],
        ),
        (
            one(json!({ "expression": "false", "message": " no ", "reason": "Forbidden" })),
            vec!["0 denied Forbidden: no".to_owned()],
        ),
        (
            one(
                json!({ "expression": "false", "message": "no", "messageExpression": "'too many: ' + string(object.spec.replicas)" }),
            ),
            vec!["0 denied Invalid: too many: 7".to_owned()],
        ),
        (
            one(json!({ "expression": "false", "message": "no", "messageExpression": "string(object.spec.x)" })),
            vec!["0 denied Invalid: no".to_owned()],
        ),
        (
            one(json!({ "expression": "false", "message": "no", "messageExpression": "'two\\nlines'" })),
            vec!["0 denied Invalid: no".to_owned()],
        ),
        (one(json!({ "expression": "object.spec.x > 1" })), vec![format!("0 denied : {missing}")]),
        (
            json!({ "failurePolicy": "Ignore", "validations": [{ "expression": "object.spec.x > 1" }, { "expression": "false" }] }),
            vec![format!("0 ignored : {missing}"), "1 denied Invalid: failed expression: false".to_owned()],
        ),
        (
            json!({
                "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
                "variables": [
                    { "name": "max", "expression": "int(params.data.max)" },
                    { "name": "ok", "expression": "object.spec.replicas <= variables.max" },
                    { "name": "never", "expression": "object.spec.x" },
                ],
                "validations": [{ "expression": "variables.ok", "messageExpression": "'at most ' + string(variables.max)" }],
            }),
            vec!["0 denied Invalid: at most 5".to_owned()],
        ),
        (one(json!({ "expression": "namespaceObject.metadata.labels['env'] == 'prod' && oldObject == null" })), vec![]),
        (
            json!({ "matchConditions": [{ "name": "c", "expression": "object.metadata.name != 'web'" }], "validations": [{ "expression": "false" }] }),
            vec![],
        ),
        (
            json!({ "auditAnnotations": [
                { "key": "k", "valueExpression": "'replicas ' + string(object.spec.replicas)" },
                { "key": "none", "valueExpression": "null" },
                { "key": "bad", "valueExpression": "string(object.spec.x)" },
            ] }),
            vec![
                "k = replicas 7".to_owned(),
                "bad ! expression 'string(object.spec.x)' resulted in error: no such key: x".to_owned(),
            ],
        ),
    ] {
        assert_eq!(said(&spec, &bindings), expected, "{spec}");
    }
}

#[test]
fn a_bomb_ends_with_the_budget() {
    let object = json!({ "l": vec![1; 900] });
    let bomb = "object.l.all(x, object.l.all(y, x == y))";
    let bindings = Bindings { object: Some(&object), ..Bindings::default() };
    let one = json!({ "validations": [{ "expression": bomb }] });
    let message = format!("expression '{bomb}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert_eq!(said(&one, &bindings), [format!("0 denied : {message}")]);
    let many = json!({ "validations": vec![json!({ "expression": bomb }); 40] });
    assert_eq!(
        said(&many, &bindings),
        ["0 denied : validation failed due to running out of cost budget, no further validation rules will be run"]
    );
}

/// What metrics count.
#[test]
fn an_error_says_of_which_kind_it_is() {
    let object = json!({ "l": vec![1; 900] });
    let bindings = Bindings { object: Some(&object), ..Bindings::default() };
    let bomb = json!({ "expression": "object.l.all(x, object.l.all(y, x == y))" });
    for (validations, expected) in [
        (json!([{ "expression": "object." }]), Some(Unevaluated::Compilation)),
        (json!([{ "expression": "object.nothing == 1" }]), Some(Unevaluated::Invalid)),
        (json!(vec![bomb; 40]), Some(Unevaluated::OutOfBudget)),
        (json!([{ "expression": "false" }]), None),
    ] {
        let policy = json!({ "metadata": { "name": "p" }, "spec": { "validations": validations } });
        let found = ValidatingPolicy::read(&policy).evaluate(&bindings).decisions;
        assert_eq!(found.first().map(|it| it.error), Some(expected), "{validations}");
    }
}

fn deployment() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": {
        "replicas": 1,
        "template": { "spec": { "containers": [{ "name": "a", "image": "i" }, { "name": "b", "image": "i" }] } },
    } })
}

fn mutated(mutation: Value) -> Result<Value, String> {
    let policy = json!({ "metadata": { "name": "p" }, "spec": { "mutations": [mutation] } });
    let policy = MutatingPolicy::read(&policy);
    let object = deployment();
    let bindings = Bindings { object: Some(&object), ..Bindings::default() };
    let fields = corten_schema::find("io.k8s.api.apps.v1.Deployment").map(Struct::Table);
    policy
        .mutate(0, &bindings, ObjectType { api_version: "apps/v1", kind: "Deployment", fields })
        .map_err(|it| it.message)
}

fn configuration(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn json_patch(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

#[test]
fn mutations() {
    let scaled =
        mutated(configuration("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}")).expect("it fits");
    assert_eq!(scaled["spec"]["replicas"], 2);
    let image = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'b', image: 'x'}]}}}}";
    let containers = mutated(configuration(image)).expect("it fits")["spec"]["template"]["spec"]["containers"].clone();
    assert_eq!(containers, json!([{ "name": "a", "image": "i" }, { "name": "b", "image": "x" }]));
    let labels = r"[JSONPatch{op: 'test', path: '/spec/replicas', value: 1}, JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y'), value: 'z'}]";
    let labels = mutated(json_patch(labels)).expect("it fits")["metadata"]["labels"].clone();
    assert_eq!(labels, json!({ "a": "b", "x/y": "z" }));
}

#[test]
fn mutations_that_do_not_fit() {
    for (mutation, expected) in [
        (
            configuration("Object{spec: Object.spec{nothing: 1}}"),
            "error applying patch: failed to convert patch object to typed object: .spec.nothing: field not declared in schema",
        ),
        (
            configuration("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
        ),
        (
            configuration("Object{spec: Object.wrong{replicas: 1}}"),
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field name path from root Object type",
        ),
        (json_patch("[JSONPatch{op: 'remove', path: '/spec/nothing'}]"), "error applying JSON Patch"),
        (configuration("'text'"), "compilation error: must evaluate to Object but got string"),
        (json_patch("'text'"), "compilation error: must evaluate to list(JSONPatch) but got string"),
    ] {
        let error = mutated(mutation.clone()).expect_err("it does not fit");
        assert!(error.starts_with(expected), "{mutation}: {error}");
    }
}
