//! How long admission policies take that match nothing, and one that matches: `cargo run --release -p corten-policies --example
//! policy_speed`.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures, and says what it measured")]

use std::{hint::black_box, time::Instant};

use corten_policies::{
    admission_policy::ValidatingPolicy,
    matching::{Bindings, GroupVersionResource, Index, Operation, Request},
};
use serde_json::{Value, json};

const ROUNDS: u32 = 100_000;

fn policy(resource: &str) -> ValidatingPolicy {
    let rule = json!({ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource] });
    ValidatingPolicy::read(&json!({ "metadata": { "name": resource }, "spec": {
        "matchConstraints": { "resourceRules": [rule] },
        "matchConditions": [{ "name": "c", "expression": "request.userInfo.username != 'root'" }],
        "variables": [{ "name": "size", "expression": "size(object.data)" }],
        "validations": [
            { "expression": "variables.size < 100", "message": "too many" },
            { "expression": "object.metadata.name.matches('^[a-z0-9-]+$') && object.data.all(k, k != 'password')" },
        ],
    } }))
}

fn main() {
    let data: serde_json::Map<String, Value> = (0..10).map(|it| (format!("key-{it}"), json!("value"))).collect();
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web" }, "data": data });
    let described = json!({ "operation": "CREATE", "userInfo": { "username": "jane", "groups": ["dev"] } });
    let request = Request {
        operation: Operation::Create,
        place: GroupVersionResource { group: "", version: "v1", plural: "configmaps" },
        equivalents: &[],
        subresource: "",
        namespace: "default",
        name: "web",
        object: Some(&object),
        old: None,
    };
    let mut index = Index::default();
    for number in 0..10 {
        index.add(number, &policy("secrets").policy.criteria);
    }
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        black_box(black_box(&index).has(request.operation, &request.place));
    }
    println!("ten policies about other things: {:?}", begun.elapsed() / ROUNDS);
    let policy = policy("configmaps");
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let matched = policy.policy.criteria.matches(black_box(&request), |_| None);
        assert!(matched.is_ok_and(|it| it.is_some()));
        let bindings = Bindings { object: Some(&object), request: Some(&described), ..Bindings::default() };
        assert!(black_box(policy.evaluate(&bindings)).decisions.is_empty());
    }
    println!("one policy about it (a condition, a variable, two validations): {:?}", begun.elapsed() / ROUNDS);
}
