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

/// A world that changes at random, with few names, so that roles and bindings meet, go, come back and repeat each other.
struct Changing {
    seed: u64,
    objects: BTreeMap<(&'static str, Key), (u64, Vec<u8>)>,
}

impl Changing {
    fn draw(&mut self, n: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.seed >> 33).expect("31 bits") % n
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.draw(words.len())]
    }

    fn change(&mut self, revision: u64) {
        let resource = self.pick(&["roles", "clusterroles", "rolebindings", "rolebindings", "clusterrolebindings"]);
        let namespace = if resource.starts_with("cluster") { "" } else { self.pick(&["n0", "n1", "n2"]) };
        let key = (resource, Key::new(namespace, self.pick(&["o0", "o1", "o2", "o3"])));
        if self.draw(4) == 0 {
            self.objects.remove(&key);
            return;
        }
        let object = if resource.ends_with("roles") {
            let verbs: Vec<_> = (0..self.draw(3)).map(|_| self.pick(&["get", "list"])).collect();
            json!({ "rules": [{ "apiGroups": [""], "resources": [self.pick(&["pods", "nodes"])], "verbs": verbs }] })
        } else {
            let kind = if resource == "rolebindings" { self.pick(&["Role", "ClusterRole"]) } else { "ClusterRole" };
            let subjects: Vec<_> = (0..self.draw(4))
                .map(|_| {
                    let (kind, name) =
                        (self.pick(&["User", "Group", "ServiceAccount"]), self.pick(&["s0", "s1", "s2"]));
                    json!({ "kind": kind, "name": name })
                })
                .collect();
            let role = self.pick(&["o0", "o1", "o2", "o3", "never"]);
            json!({ "roleRef": { "kind": kind, "name": role }, "subjects": subjects })
        };
        let bytes = if self.draw(20) == 0 { b"damaged".to_vec() } else { object.to_string().into_bytes() };
        self.objects.insert(key, (revision, bytes));
    }

    fn world(&self) -> Vec<(&'static str, Key, u64, Vec<u8>)> {
        let row = |((resource, key), (revision, bytes)): (&(&'static str, Key), &(u64, Vec<u8>))| {
            (*resource, key.clone(), *revision, bytes.clone())
        };
        self.objects.iter().map(row).collect()
    }
}

/// All that an index holds, in an order of its own.
fn told(index: &Index) -> Vec<String> {
    let grants = |place: &str, grants: &Grants| -> Vec<String> {
        let lists = grants.users.iter().map(|it| ("user", it)).chain(grants.groups.iter().map(|it| ("group", it)));
        lists
            .map(|(kind, (name, it))| {
                let it: Vec<String> = it.iter().map(|it| format!("{:?} {}", it.rules, it.reason)).collect();
                format!("{place} {kind} {name}: {it:?}")
            })
            .collect()
    };
    let mut all = grants("", &index.cluster);
    all.extend(index.namespaces.iter().flat_map(|it| grants(it.0, it.1)));
    all.extend(index.namespaces.keys().map(|it| format!("namespace {it}")));
    all.extend(index.roles.iter().chain(&*index.cluster_roles).map(|it| format!("{it:?}")));
    all.sort();
    all
}

#[test]
fn an_index_after_many_changes_is_the_one_that_is_made_at_once() {
    let mut changing = Changing { seed: 7, objects: BTreeMap::new() };
    let mut compiler = Compiler::default();
    let mut n_grants = 0;
    for round in 0..600 {
        for nth in 0..3 {
            changing.change(round * 10 + nth);
        }
        let world = changing.world();
        let followed = told(&compile(&mut compiler, &world));
        assert_eq!(followed, told(&compile(&mut Compiler::default(), &world)), "round {round}");
        n_grants += followed.len();
    }
    assert!(n_grants > 6_000, "worlds with something in them: {n_grants}");
}

#[test]
fn a_change_in_one_namespace_leaves_all_others_as_they_are() {
    let mut compiler = Compiler::default();
    let mut world = world();
    let before = compile(&mut compiler, &world);
    world.iter_mut().filter(|it| it.1.name == "r1").for_each(|it| it.2 = 8);
    let after = compile(&mut compiler, &world);
    assert!(!Arc::ptr_eq(&before.namespaces["a"], &after.namespaces["a"]));
    assert!(Arc::ptr_eq(&before.namespaces["b"], &after.namespaces["b"]));
    assert!(Arc::ptr_eq(&before.cluster, &after.cluster) && Arc::ptr_eq(&before.roles, &after.roles));
}
