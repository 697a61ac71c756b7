use serde_json::{Value, json};

use super::*;

/// Four roles and their bindings, as the store has them.
fn world() -> Vec<(&'static str, Key, u64, Vec<u8>)> {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({ "apiGroups": groups, "resources": resources, "verbs": verbs });
    let subject =
        |kind: &str, name: &str, namespace: &str| json!({ "kind": kind, "name": name, "namespace": namespace });
    let binding = |kind: &str, role: &str, subjects: &[Value]| json!({ "roleRef": { "kind": kind, "name": role }, "subjects": subjects });
    let mut pod_b = rule(&[""], &["pods"], &["get"]);
    pod_b["resourceNames"] = json!(["b"]);
    let objects = [
        (
            "clusterroles",
            Key::cluster("reader"),
            json!({ "rules": [rule(&[""], &["pods", "pods/log"], &["get", "list"])] }),
        ),
        ("clusterroles", Key::cluster("scaler"), json!({ "rules": [rule(&["apps"], &["*/scale"], &["*"])] })),
        ("clusterroles", Key::cluster("everything"), json!({ "rules": [rule(&["*"], &["*"], &["*"])] })),
        ("clusterroles", Key::cluster("empty"), json!({ "rules": null })),
        (
            "clusterroles",
            Key::cluster("health"),
            json!({ "rules": [{ "nonResourceURLs": ["/healthz", "/logs/*"], "verbs": ["get"] }] }),
        ),
        ("roles", Key::new("a", "one-pod"), json!({ "rules": [pod_b] })),
        ("rolebindings", Key::new("a", "r1"), binding("ClusterRole", "reader", &[subject("User", "jane", "")])),
        ("rolebindings", Key::new("a", "r2"), binding("Role", "one-pod", &[subject("Group", "dev", "")])),
        (
            "rolebindings",
            Key::new("b", "r3"),
            binding("ClusterRole", "everything", &[subject("ServiceAccount", "bot", "a")]),
        ),
        (
            "rolebindings",
            Key::new("a", "r4"),
            binding("ClusterRole", "reader", &[subject("ServiceAccount", "local", "")]),
        ),
        ("clusterrolebindings", Key::cluster("c1"), binding("ClusterRole", "scaler", &[subject("Group", "ops", "")])),
        ("clusterrolebindings", Key::cluster("c2"), binding("ClusterRole", "health", &[subject("User", "jane", "")])),
        ("clusterrolebindings", Key::cluster("c3"), binding("ClusterRole", "gone", &[subject("User", "ghost", "")])),
        ("clusterrolebindings", Key::cluster("c4"), binding("ClusterRole", "empty", &[subject("User", "jane", "")])),
    ];
    objects.into_iter().map(|(resource, key, object)| (resource, key, 7, object.to_string().into_bytes())).collect()
}

fn compile(compiler: &mut Compiler, world: &[(&'static str, Key, u64, Vec<u8>)]) -> Index {
    let of = |resource: &str| {
        let rows = world.iter().filter(|it| it.0 == resource);
        rows.map(|(_, key, revision, bytes)| (key.clone(), *revision, &**bytes)).collect()
    };
    compiler.compile(&Objects {
        roles: of("roles"),
        cluster_roles: of("clusterroles"),
        bindings: of("rolebindings"),
        cluster_bindings: of("clusterrolebindings"),
    })
}

/// `user[,group] verb resource[.group][/subresource] [namespace[/name]]`, or `user verb /path`.
fn ask(index: &Index, question: &str) -> (bool, String) {
    let words: Vec<&str> = question.split(' ').collect();
    let mut names = words[0].split(',');
    let user = names.next().expect("a user");
    let groups: Vec<String> = names.map(str::to_owned).collect();
    let (resource, subresource) = words[2].split_once('/').unwrap_or((words[2], ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (namespace, name) = words.get(3).map_or(("", ""), |it| it.split_once('/').unwrap_or((it, "")));
    let target = if words[2].starts_with('/') {
        ResourceOrPath::Path(words[2])
    } else {
        ResourceOrPath::Resource { group, resource, subresource, namespace, name }
    };
    let attributes = Attributes { verb: words[1], target, ..Attributes::of_user(user, &groups) };
    match index.decide(&attributes) {
        Decision::Allowed(_) => (true, String::new()),
        Decision::Denied(denial) => (false, attributes.forbidden(&denial.reason).message),
    }
}

#[test]
fn rules_decide() {
    let index = compile(&mut Compiler::default(), &world());
    for (question, allowed) in [
        ("jane list pods a", true),
        ("jane get pods/log a/x", true),
        ("jane get pods/exec a/x", false),
        ("jane list pods b", false),
        ("jane list pods", false),
        ("jane delete pods a/x", false),
        ("jane list pods.apps a", false),
        ("joe,dev get pods a/b", true),
        ("joe,dev get pods a/c", false),
        ("joe,dev list pods a", false),
        ("joe,ops patch deployments.apps/scale a/x", true),
        ("joe,ops patch deployments.apps a/x", false),
        ("joe,ops patch deployments/scale a/x", false),
        ("system:serviceaccount:a:bot delete secrets b/x", true),
        ("system:serviceaccount:a:bot delete secrets a/x", false),
        ("system:serviceaccount:a:local list pods a", true),
        ("system:serviceaccount:b:local list pods a", false),
        ("jane get /healthz", true),
        ("jane get /healthz/ping", false),
        ("jane get /logs/x/y", true),
        ("jane post /logs/x", false),
        ("root,system:masters delete nodes", true),
        ("root,system:masters post /anything", true),
        ("nobody get pods a/x", false),
    ] {
        assert_eq!(ask(&index, question).0, allowed, "{question}");
    }
}

#[test]
fn refusals_read_as_upstream_writes_them() {
    let index = compile(&mut Compiler::default(), &world());
    for (question, message) in [
        (
            "joe list pods default",
            r#"pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            "joe get pods/log default/x",
            r#"pods "x" is forbidden: User "joe" cannot get resource "pods/log" in API group "" in the namespace "default""#,
        ),
        (
            "joe create deployments.apps",
            r#"deployments.apps is forbidden: User "joe" cannot create resource "deployments" in API group "apps" at the cluster scope"#,
        ),
        ("joe get /metrics", r#"forbidden: User "joe" cannot get path "/metrics""#),
        (
            "ghost list nodes",
            r#"nodes is forbidden: User "ghost" cannot list resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#,
        ),
    ] {
        assert_eq!(ask(&index, question), (false, message.to_owned()));
    }
}

#[test]
fn the_next_index_follows_changes() {
    let mut compiler = Compiler::default();
    let mut world = world();
    compile(&mut compiler, &world);
    // A new revision is read again; an old one is not, which bytes that changed without a revision show.
    for row in &mut world {
        if row.1.name == "reader" {
            row.2 = 8;
            row.3 = json!({ "rules": [{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] }] })
                .to_string()
                .into();
        }
        if row.1.name == "one-pod" {
            row.3 = b"not read again".to_vec();
        }
    }
    world.retain(|it| it.1.name != "r3");
    let index = compile(&mut compiler, &world);
    for (question, allowed) in [
        ("jane list pods a", false),
        ("jane get nodes a", true),
        ("joe,dev get pods a/b", true),
        ("system:serviceaccount:a:bot delete secrets b/x", false),
    ] {
        assert_eq!(ask(&index, question).0, allowed, "{question}");
    }
}

#[test]
fn an_object_that_cannot_be_read_grants_nothing() {
    let mut world = world();
    for row in world.iter_mut().filter(|it| it.1.name == "everything") {
        row.3 = br#"{"rules":[{"verbs":"*"}]}"#.to_vec();
    }
    let index = compile(&mut Compiler::default(), &world);
    assert!(!ask(&index, "system:serviceaccount:a:bot delete secrets b/x").0);
    assert!(ask(&index, "jane list pods a").0);
}

#[test]
fn what_is_not_held_is_named() {
    let index = compile(&mut Compiler::default(), &world());
    let rules = |it: Value| serde_json::from_value::<Vec<PolicyRule>>(it).expect("rules");
    let groups = |it: &str| it.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    for (user, of, namespace, wanted, missing) in [
        ("jane", "", "a", json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]), &[][..]),
        (
            "jane",
            "",
            "a",
            json!([{ "apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "delete"] }]),
            &[
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}"#,
            ],
        ),
        (
            "joe",
            "dev",
            "a",
            json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["b", "c"] }]),
            &[r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["c"], Verbs:["get"]}"#],
        ),
        (
            "joe",
            "ops",
            "",
            json!([{ "apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["update"] }]),
            &[],
        ),
        (
            "jane",
            "",
            "",
            json!([{ "nonResourceURLs": ["/logs/x", "/metrics"], "verbs": ["get"] }]),
            &[r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#],
        ),
        ("root", "system:masters", "", json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]), &[]),
    ] {
        let groups = groups(of);
        let held = index.rules_for(user, &groups, namespace);
        assert_eq!(crate::held_rules::missing(&held, &rules(wanted)), missing, "{user}");
    }
}
