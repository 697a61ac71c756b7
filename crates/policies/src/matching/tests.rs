//! Tables: which requests match, and what conditions say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Bindings, Conditions, Criteria, GroupVersionResource, Index, Operation, Request, Verdict, is_exempt};

const PODS: GroupVersionResource<'_> = GroupVersionResource { group: "", version: "v1", plural: "pods" };
const DEPLOYMENTS: GroupVersionResource<'_> =
    GroupVersionResource { group: "apps", version: "v1", plural: "deployments" };
const OLD_DEPLOYMENTS: GroupVersionResource<'_> =
    GroupVersionResource { group: "extensions", version: "v1beta1", plural: "deployments" };
const NAMESPACES: GroupVersionResource<'_> = GroupVersionResource { group: "", version: "v1", plural: "namespaces" };
const NODES: GroupVersionResource<'_> = GroupVersionResource { group: "", version: "v1", plural: "nodes" };

fn create(place: GroupVersionResource<'_>) -> Request<'_> {
    let (namespace, equivalents): (_, &[GroupVersionResource<'_>]) = match place.plural {
        "nodes" => ("", &[]),
        "namespaces" => ("team", &[]),
        "deployments" => ("team", &[DEPLOYMENTS, OLD_DEPLOYMENTS]),
        _ => ("team", &[]),
    };
    Request {
        operation: Operation::Create,
        place,
        equivalents,
        subresource: "",
        namespace,
        name: "web",
        object: None,
        old: None,
    }
}

fn labels(namespace: &str) -> Option<BTreeMap<String, String>> {
    let known = [("team", "prod"), ("play", "test")];
    known.into_iter().find(|it| it.0 == namespace).map(|it| [("env".to_owned(), it.1.to_owned())].into())
}

fn rule(operations: &[&str], group: &str, version: &str, resource: &str) -> Value {
    json!({ "operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": [resource] })
}

/// A policy about what the rule says.
fn about(rule: Value) -> Value {
    json!({ "resourceRules": [rule] })
}

#[test]
fn rules() {
    let every = rule(&["*"], "*", "*", "*");
    let with = |rule: &Value, field: &str, value: Value| {
        let mut rule = rule.clone();
        rule[field] = value;
        about(rule)
    };
    let sub = |place, subresource| Request { subresource, ..create(place) };
    let deletes = Request { operation: Operation::Delete, ..create(PODS) };
    let connects = Request { operation: Operation::Connect, subresource: "exec", ..create(PODS) };
    for (matched, request, expected) in [
        (about(every.clone()), create(PODS), true),
        (about(every.clone()), deletes, true),
        (about(every.clone()), sub(PODS, "status"), false),
        (about(rule(&["*"], "*", "*", "*/*")), sub(PODS, "status"), true),
        (about(rule(&["*"], "*", "*", "*/*")), create(PODS), true),
        (about(rule(&["*"], "*", "*", "*/status")), sub(PODS, "status"), true),
        (about(rule(&["*"], "*", "*", "*/status")), create(PODS), false),
        (about(rule(&["*"], "", "v1", "pods/*")), sub(PODS, "eviction"), true),
        (about(rule(&["*"], "", "v1", "pods/*")), create(PODS), true),
        (about(rule(&["*"], "", "v1", "pods/exec")), connects, true),
        (about(rule(&["CONNECT"], "", "v1", "pods/exec")), connects, true),
        (about(rule(&["CREATE"], "", "v1", "pods/exec")), connects, false),
        (about(rule(&["UPDATE", "CREATE"], "", "v1", "pods")), create(PODS), true),
        (about(rule(&["UPDATE"], "", "v1", "pods")), create(PODS), false),
        (about(rule(&["*"], "apps", "v1", "pods")), create(PODS), false),
        (about(rule(&["*"], "", "v2", "pods")), create(PODS), false),
        (with(&every, "scope", json!("Cluster")), create(PODS), false),
        (with(&every, "scope", json!("Cluster")), create(NODES), true),
        (with(&every, "scope", json!("Cluster")), create(NAMESPACES), true),
        (with(&every, "scope", json!("Namespaced")), create(NAMESPACES), false),
        (with(&every, "scope", json!("Namespaced")), create(PODS), true),
        (with(&every, "scope", json!("*")), create(NODES), true),
        (with(&every, "resourceNames", json!(["a", "web"])), create(PODS), true),
        (with(&every, "resourceNames", json!(["a"])), create(PODS), false),
        (
            json!({ "resourceRules": [every], "excludeResourceRules": [rule(&["*"], "", "v1", "pods")] }),
            create(PODS),
            false,
        ),
        (
            json!({ "resourceRules": [every], "excludeResourceRules": [rule(&["*"], "", "v1", "pods")] }),
            create(NODES),
            true,
        ),
        (Value::Null, create(PODS), true),
        (json!({ "excludeResourceRules": [rule(&["*"], "", "v1", "pods")] }), create(PODS), false),
    ] {
        let criteria = Criteria::of_policy(&matched);
        let found = criteria.matches(&request, labels).expect("the namespace is known").is_some();
        assert_eq!(found, expected, "{matched} {request:?}");
        let mut index = Index::default();
        index.add(7, &criteria);
        assert!(!expected || index.candidates(&request) == [7], "the index has what matches: {matched}");
        assert!(!expected || index.has(request.operation, &request.place));
    }
    assert_eq!(Criteria::of_webhook(&json!({})).matches(&create(PODS), labels), Ok(None), "no rule, no call");
}

#[test]
fn other_versions_match_unless_it_is_to_be_exact() {
    let old = json!({ "resourceRules": [rule(&["*"], "extensions", "v1beta1", "deployments")] });
    let mut exact = old.clone();
    exact["matchPolicy"] = "Exact".into();
    let place = |of: &Value| {
        Criteria::of_policy(of).matches(&create(DEPLOYMENTS), labels).expect("the namespace is known").map(|it| it.0)
    };
    assert_eq!(place(&old), Some(OLD_DEPLOYMENTS));
    assert_eq!(place(&exact), None);
    let both = json!({ "resourceRules": [
        rule(&["*"], "extensions", "v1beta1", "deployments"), rule(&["*"], "apps", "v1", "deployments"),
    ] });
    assert_eq!(place(&both), Some(DEPLOYMENTS), "the request's own version goes first");
    let excluded = json!({ "excludeResourceRules": [rule(&["*"], "extensions", "v1beta1", "deployments")] });
    assert_eq!(place(&excluded), None, "what is left out is left out in every version");
}

#[test]
fn selectors() {
    let every = rule(&["*"], "*", "*", "*");
    let prod = json!({ "matchLabels": { "env": "prod" } });
    let labelled = json!({ "metadata": { "labels": { "env": "prod" } } });
    let bare = json!({ "metadata": { "name": "a" } });
    let options = json!({ "kind": "PodExecOptions" });
    let by_namespace = json!({ "resourceRules": [every], "namespaceSelector": prod });
    let by_object = json!({ "resourceRules": [every], "objectSelector": prod });
    let in_play = Request { namespace: "play", ..create(PODS) };
    let deletes = |it| Request { operation: Operation::Delete, ..it };
    let of = |place, object, old| Request { object, old, ..create(place) };
    for (matched, request, expected) in [
        (&by_namespace, create(PODS), Ok(true)),
        (&by_namespace, in_play, Ok(false)),
        (&by_namespace, create(NODES), Ok(true)),
        (&by_namespace, of(NAMESPACES, Some(&labelled), None), Ok(true)),
        (&by_namespace, of(NAMESPACES, Some(&bare), None), Ok(false)),
        (&by_namespace, deletes(create(NAMESPACES)), Ok(true)),
        (&by_namespace, Request { namespace: "gone", ..create(PODS) }, Err("namespaces \"gone\" not found")),
        (&by_object, of(PODS, Some(&labelled), None), Ok(true)),
        (&by_object, of(PODS, Some(&bare), None), Ok(false)),
        (&by_object, of(PODS, Some(&bare), Some(&labelled)), Ok(true)),
        (&by_object, deletes(of(PODS, None, Some(&labelled))), Ok(true)),
        (&by_object, of(PODS, Some(&options), None), Ok(false)),
        (&by_object, create(PODS), Ok(false)),
    ] {
        let found = Criteria::of_policy(matched).matches(&request, labels).map(|it| it.is_some());
        assert_eq!(found.map_err(|it| it.to_string()), expected.map_err(str::to_owned), "{matched} {request:?}");
    }
}

#[test]
fn candidates_keep_their_order_and_are_few() {
    let mut index = Index::default();
    for (number, plural) in ["pods", "deployments", "*", "pods", "nodes"].into_iter().enumerate() {
        index.add(number, &Criteria::of_policy(&about(rule(&["CREATE", "UPDATE"], "*", "*", plural))));
    }
    assert_eq!(index.candidates(&create(PODS)), [0, 2, 3]);
    assert_eq!(index.candidates(&create(DEPLOYMENTS)), [1, 2]);
    assert!(!index.has(Operation::Delete, &PODS));
    let two = json!({ "resourceRules": [rule(&["*"], "", "v1", "pods"), rule(&["*"], "", "v1", "pods/*")] });
    let mut index = Index::default();
    index.add(0, &Criteria::of_policy(&two));
    assert_eq!(index.candidates(&create(PODS)), [0]);
    assert!(!index.has(Operation::Create, &NODES));
}

#[test]
fn candidates_are_of_the_group_or_of_an_equivalent_one() {
    let mut index = Index::default();
    for (number, group) in ["apps", "extensions", "*", "batch"].into_iter().enumerate() {
        index.add(number, &Criteria::of_policy(&about(rule(&["*"], group, "*", "*"))));
    }
    assert_eq!(index.candidates(&create(PODS)), [2]);
    assert_eq!(index.candidates(&create(DEPLOYMENTS)), [0, 1, 2], "deployments are in two groups");
    let mut index = Index::default();
    index.add(0, &Criteria::of_policy(&about(rule(&["*"], "apps", "*", "*"))));
    assert!(index.has(Operation::Create, &DEPLOYMENTS) && !index.has(Operation::Create, &PODS));
}

#[test]
fn what_configures_admission_is_exempt() {
    assert!(is_exempt("admissionregistration.k8s.io", "validatingadmissionpolicies"));
    assert!(is_exempt("admissionregistration.k8s.io", "mutatingwebhookconfigurations"));
    assert!(!is_exempt("example.com", "validatingadmissionpolicies"));
    assert!(!is_exempt("", "pods"));
}

#[test]
fn a_false_condition_wins_over_one_that_fails() {
    let object = json!({ "metadata": { "name": "a" }, "n": 3 });
    let request = json!({ "userInfo": { "username": "jane" }, "operation": "CREATE", "namespace": "team" });
    let failed = "expression 'object.x == 1' resulted in error: no such key: x";
    for (expressions, fails, expected) in [
        (&[][..], true, Verdict::Matches),
        (&["true", "object.n == 3"], true, Verdict::Matches),
        (&["object.x == 1", "object.n == 4"], true, Verdict::Excluded("c1".into())),
        (&["object.x == 1", "object.n == 3"], true, Verdict::Failed(failed.into())),
        (&["object.x == 1", "object.n == 3"], false, Verdict::Ignored(failed.into())),
        (&["object.x == 1", "object.x == 1"], true, Verdict::Failed(failed.into())),
        (
            &["object.x == 1", "object.y == 1"],
            true,
            Verdict::Failed(format!("[{failed}, expression 'object.y == 1' resulted in error: no such key: y]")),
        ),
        (&["request.userInfo.username == 'jane' && request.operation == 'CREATE'"], true, Verdict::Matches),
        (
            &["has(oldObject.x)"],
            true,
            Verdict::Failed("expression 'has(oldObject.x)' resulted in error: no such overload".into()),
        ),
        (&["request.namespace == 'team'"], true, Verdict::Matches),
        (&["oldObject == null && namespaceObject == null"], true, Verdict::Matches),
    ] {
        let list: Vec<Value> = expressions
            .iter()
            .enumerate()
            .map(|(at, it)| json!({ "name": format!("c{at}"), "expression": it }))
            .collect();
        let policy = if fails { "Fail" } else { "Ignore" };
        let conditions = Conditions::read(&json!({ "matchConditions": list, "failurePolicy": policy }), false);
        let bindings = Bindings { object: Some(&object), request: Some(&request), ..Bindings::default() };
        assert_eq!(conditions.evaluate(&bindings.activation()), expected, "{expressions:?}");
    }
}

/// Sixty-four conditions of a million each go beyond what all may cost together.
#[test]
fn conditions_share_a_budget() {
    let object = json!({ "l": vec![1; 900] });
    let bomb = "object.l.all(x, object.l.exists(y, y == 2 || x == 1 && y == 1 && object.l.exists(z, z == 2)) || true)";
    let list: Vec<Value> = (0..64).map(|at| json!({ "name": format!("c{at}"), "expression": bomb })).collect();
    let conditions = Conditions::read(&json!({ "matchConditions": list }), false);
    let bindings = Bindings { object: Some(&object), ..Bindings::default() };
    let Verdict::Failed(message) = conditions.evaluate(&bindings.activation()) else { panic!("it failed") };
    assert_eq!(message, super::conditions::OUT_OF_BUDGET);
}
