use std::collections::{BTreeMap, BTreeSet};

use corten_access::{
    Attributes, ResourceOrPath,
    identity::AUTHENTICATED,
    rbac::{Compiler, Index, Objects},
};
use corten_controllers::CONTROLLERS;
use corten_reconcile::Verb;

use super::*;

/// The index of a new cluster.
fn index() -> Index {
    let objects: Vec<(&Resource, Key, String)> = wanted()
        .into_iter()
        .map(|(resource, object)| {
            let name = object["metadata"]["name"].as_str().expect("every object is named");
            (resource, Key::cluster(name), object.to_string())
        })
        .collect();
    let of = |resource: &Resource| {
        let rows = objects.iter().filter(|it| it.0 == resource);
        rows.map(|(_, key, text)| (key.clone(), 1, text.as_bytes())).collect()
    };
    Compiler::default().compile(&Objects {
        roles: Vec::new(),
        cluster_roles: of(&CLUSTER_ROLES),
        bindings: Vec::new(),
        cluster_bindings: of(&CLUSTER_ROLE_BINDINGS),
    })
}

fn may(index: &Index, user: &str, groups: &[&str], verb: &str, resource: &Resource, subresource: &str) -> bool {
    may_of(index, user, groups, verb, (resource, "x"), subresource)
}

fn may_of(
    index: &Index,
    user: &str,
    groups: &[&str],
    verb: &str,
    (resource, name): (&Resource, &str),
    subresource: &str,
) -> bool {
    let groups: Vec<String> = groups.iter().map(|it| (*it).to_owned()).collect();
    let target = ResourceOrPath::Resource {
        group: &resource.group,
        resource: &resource.plural,
        subresource,
        namespace: if resource.namespaced { "default" } else { "" },
        name,
    };
    index.decide(&Attributes { verb, target, ..Attributes::of_user(user, &groups) }).is_allowed()
}

#[test]
fn every_loop_may_do_what_it_declares() {
    let index = index();
    for make in CONTROLLERS {
        let controller = make(&corten_controllers::Settings::default());
        let user = format!("system:serviceaccount:kube-system:{}", controller.account());
        let mut needs: BTreeSet<(&str, Resource, String)> = BTreeSet::new();
        let mut selected: BTreeMap<Resource, String> = BTreeMap::new();
        for watch in controller.watches() {
            // Of one name that is selected the right is asked for that name.
            if let Some(name) = watch.field_selector.strip_prefix("metadata.name=") {
                for verb in ["list", "watch"] {
                    let may = may_of(&index, &user, &[], verb, (&watch.resource, name), "");
                    assert!(may, "{} needs {verb} of {} {name}", controller.name(), watch.resource);
                }
                selected.insert(watch.resource.clone(), name.to_owned());
                continue;
            }
            needs.extend(["list", "watch"].map(|it| (it, watch.resource.clone(), String::new())));
        }
        for write in controller.writes() {
            let verb = match write.verb {
                Verb::Create => "create",
                Verb::Patch => "patch",
                Verb::Delete => "delete",
            };
            let status_only = write.fields.iter().all(|it| it.starts_with("status")) && verb == "patch";
            // An autoscaler writes the scale of whatever it is told to, and nothing else of it.
            let is_scale = write.resource.plural == "*";
            let status = if status_only && !write.fields.is_empty() { "status" } else { "" };
            // Another one resizes Pods, and does nothing else to them.
            let is_resize =
                controller.name() == "vertical-pod-autoscaler" && write.resource == corten_api::resources::PODS;
            let subresource = match (is_scale, is_resize) {
                (true, _) => "scale",
                (_, true) => "resize",
                _ => status,
            };
            needs.insert((verb, write.resource.clone(), subresource.to_owned()));
        }
        needs.insert(("create", corten_api::resources::EVENTS, String::new()));
        needs.insert(("patch", corten_api::resources::EVENTS, String::new()));
        // Which kinds an autoscaler may be about is read by who runs the loops, or at a path, as everybody may.
        let kinds = ["apidiscovery.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"];
        let is_autoscaler = ["horizontal-pod-autoscaler", "vertical-pod-autoscaler"].contains(&controller.name());
        needs.retain(|it| !is_autoscaler || !kinds.contains(&&*it.1.group));
        for (verb, resource, subresource) in needs {
            // Who sees objects of one name alone changes no other.
            let name = selected.get(&resource).filter(|_| verb == "patch").map_or("x", String::as_str);
            assert!(
                may_of(&index, &user, &[], verb, (&resource, name), &subresource),
                "{} needs {verb} of {resource}/{subresource}",
                controller.name()
            );
        }
    }
}

#[test]
fn users_get_what_their_roles_say() {
    use corten_api::resources::{NODES, PODS, SECRETS};
    let index = index();
    let nobody = [corten_access::identity::UNAUTHENTICATED];
    let node = ["system:nodes", AUTHENTICATED];
    for (user, groups, verb, resource, subresource, allowed) in [
        ("admin", &["system:masters"][..], "delete", &NODES, "", true),
        ("jane", &[AUTHENTICATED], "list", &PODS, "", false),
        ("system:anonymous", &nobody, "list", &PODS, "", false),
        ("system:kube-scheduler", &[AUTHENTICATED], "create", &PODS, "binding", true),
        ("system:kube-scheduler", &[AUTHENTICATED], "patch", &PODS, "status", true),
        ("system:kube-scheduler", &[AUTHENTICATED], "list", &SECRETS, "", false),
        // Nodes hold nothing by role: the node authorizer grants what is theirs.
        ("system:node:n1", &node, "get", &SECRETS, "", false),
        ("system:node:n1", &node, "patch", &NODES, "status", false),
    ] {
        let found = may(&index, user, groups, verb, resource, subresource);
        assert_eq!(found, allowed, "{user} {verb} {resource}/{subresource}");
    }
    for (groups, path, allowed) in [
        (&nobody[..], "/version", true),
        (&nobody, "/api", false),
        (&[AUTHENTICATED], "/openapi/v3/api/v1", true),
        (&[AUTHENTICATED], "/metrics", false),
    ] {
        let groups: Vec<String> = groups.iter().map(|it| (*it).to_owned()).collect();
        let question =
            Attributes { verb: "get", target: ResourceOrPath::Path(path), ..Attributes::of_user("x", &groups) };
        assert_eq!(index.decide(&question).is_allowed(), allowed, "{path}");
    }
}

#[test]
fn only_what_is_missing_is_written() {
    let role = |rules: Value, annotations: Value| json!({ "metadata": { "name": "r", "labels": { "a": "1" }, "annotations": annotations }, "rules": rules });
    let ours = || role(json!([{ "verbs": ["get"] }]), json!({ default_roles::AUTOUPDATE: "true" }));
    let more = role(
        json!([{ "verbs": ["x"] }, { "verbs": ["get"] }]),
        json!({ default_roles::AUTOUPDATE: "true", "mine": "1" }),
    );
    let less = role(json!([{ "verbs": ["x"] }]), json!({ default_roles::AUTOUPDATE: "true" }));
    let both = role(json!([{ "verbs": ["x"] }, { "verbs": ["get"] }]), json!({ default_roles::AUTOUPDATE: "true" }));
    let hands_off = role(json!([]), json!({ default_roles::AUTOUPDATE: "false" }));
    let binding = |role: &str| json!({ "metadata": { "name": "r", "annotations": {} }, "roleRef": { "name": role } });
    for (what, resource, wanted, stored, expected) in [
        ("nothing is there", &CLUSTER_ROLES, ours(), None, vec![("POST", ours())]),
        ("all is there", &CLUSTER_ROLES, ours(), Some(ours()), vec![]),
        ("a user added something", &CLUSTER_ROLES, ours(), Some(more), vec![]),
        ("a rule is missing", &CLUSTER_ROLES, ours(), Some(less), vec![("PUT", both)]),
        ("the user wants no updates", &CLUSTER_ROLES, ours(), Some(hands_off), vec![]),
        ("a namespace has changed", &NAMESPACES, json!({}), Some(json!({ "spec": 1 })), vec![]),
        (
            "another role is bound",
            &CLUSTER_ROLE_BINDINGS,
            binding("a"),
            Some(binding("b")),
            vec![("DELETE", json!({})), ("POST", binding("a"))],
        ),
    ] {
        let found = writes(resource, &Key::cluster("r"), wanted, stored.as_ref());
        let found: Vec<(String, Value)> = found.into_iter().map(|it| (it.method.to_string(), it.object)).collect();
        let expected: Vec<(String, Value)> = expected.into_iter().map(|it| (it.0.to_owned(), it.1)).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn the_group_of_nodes_loses_the_role_that_earlier_versions_bound() {
    let key = Key::cluster("system:node");
    let group = |name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name });
    let bound = |subjects: Vec<Value>| {
        json!({
            "metadata": { "name": "system:node" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node" },
            "subjects": subjects,
        })
    };
    for (stored, expected) in [
        (vec![], None),
        (vec![group("system:nodes")], Some(json!([]))),
        (vec![group("mine"), group("system:nodes")], Some(json!([group("mine")]))),
    ] {
        let found = writes(&CLUSTER_ROLE_BINDINGS, &key, bound(Vec::new()), Some(&bound(stored)));
        let found: Vec<Value> = found.iter().map(|it| it.object["subjects"].clone()).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn the_roles_of_kubernetes_are_there() {
    const NAMES: &str = "admin cluster-admin edit system:aggregate-to-admin system:aggregate-to-edit \
        system:aggregate-to-view system:aggregated-metrics-reader system:auth-delegator system:basic-user \
        system:certificates.k8s.io:certificatesigningrequests:nodeclient \
        system:certificates.k8s.io:certificatesigningrequests:selfnodeclient \
        system:certificates.k8s.io:kube-apiserver-client-approver \
        system:certificates.k8s.io:kube-apiserver-client-kubelet-approver \
        system:certificates.k8s.io:kubelet-serving-approver system:certificates.k8s.io:legacy-unknown-approver \
        system:discovery system:heapster system:kube-aggregator system:kube-controller-manager system:kube-dns \
        system:kube-scheduler system:kubelet-api-admin system:monitoring system:node system:node-bootstrapper \
        system:node-problem-detector system:node-proxier system:persistent-volume-provisioner \
        system:public-info-viewer system:service-account-issuer-discovery system:volume-scheduler view";
    let found = default_roles::roles();
    let named = found.iter().filter_map(|it| it["metadata"]["name"].as_str());
    let mut found: Vec<&str> = named.filter(|it| !it.starts_with("system:controller:")).collect();
    // Corten's own: nodes give claims their volumes.
    let own = ["system:labelled-pod-groups", "system:node-network-policy"];
    found.retain(|it| !own.contains(it) && !it.starts_with("system:node-volume"));
    found.sort_unstable();
    assert_eq!(found, NAMES.split_whitespace().collect::<Vec<_>>());
    // A binding of a role that is not there grants nothing.
    let found: BTreeSet<String> =
        default_roles::roles().iter().filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned)).collect();
    for binding in default_roles::bindings() {
        let role = binding["roleRef"]["name"].as_str().expect("a name");
        assert!(found.contains(role), "{role}");
    }
}
