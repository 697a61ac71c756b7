//! Which labels a node may put on itself: none by which workloads that need protection are steered.

use std::collections::BTreeSet;

use serde_json::Value;

/// Labels below this name are for administrators alone.
const RESTRICTED: &str = "node-restriction.kubernetes.io";
/// Kubernetes's labels that kubelets set; all else below `kubernetes.io` and `k8s.io` they may not.
const KUBELET: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const KUBELET_NAMESPACES: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];

/// The labels that differ and may not, as messages list them.
pub(super) fn forbidden(new: &Value, old: &Value) -> Option<String> {
    let keys = |it: &Value| -> Vec<String> { it.as_object().into_iter().flatten().map(|it| it.0.clone()).collect() };
    let all: BTreeSet<String> = keys(new).into_iter().chain(keys(old)).collect();
    let found: Vec<String> = all.into_iter().filter(|it| new[&**it] != old[&**it] && is_forbidden(it)).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

fn is_below(namespace: &str, of: &str) -> bool {
    namespace.strip_suffix(of).is_some_and(|it| it.is_empty() || it.ends_with('.'))
}

fn is_forbidden(label: &str) -> bool {
    let namespace = label.split_once('/').map_or("", |it| it.0);
    let is_kubernetes = is_below(namespace, "kubernetes.io") || is_below(namespace, "k8s.io");
    let is_kubelets = KUBELET.contains(&label) || KUBELET_NAMESPACES.iter().any(|it| is_below(namespace, it));
    is_below(namespace, RESTRICTED) || is_kubernetes && !is_kubelets
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_of_power_are_not_the_nodes_to_set() {
        for (new, old, expected) in [
            (json!({ "kubernetes.io/hostname": "n", "mine": "x", "acme.com/a": "b" }), json!(null), None),
            (json!({ "node.kubernetes.io/x": "", "a.kubelet.kubernetes.io/y": "" }), json!({}), None),
            (
                json!({ "foo.node-restriction.kubernetes.io/x": "" }),
                json!({}),
                Some("foo.node-restriction.kubernetes.io/x"),
            ),
            (
                json!({ "node-role.kubernetes.io/a": "", "x.k8s.io/b": "" }),
                json!({}),
                Some("node-role.kubernetes.io/a, x.k8s.io/b"),
            ),
            (json!({ "node-role.kubernetes.io/a": "" }), json!({ "node-role.kubernetes.io/a": "" }), None),
            (json!({}), json!({ "node-role.kubernetes.io/a": "" }), Some("node-role.kubernetes.io/a")),
            (json!({ "notkubernetes.io/a": "" }), json!({}), None),
        ] {
            assert_eq!(forbidden(&new, &old).as_deref(), expected, "{new} {old}");
        }
    }
}
