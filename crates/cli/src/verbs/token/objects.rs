//! What joining needs in the cluster, under kubeadm's names: a token, the rights of those who hold one, and the authority where
//! strangers may read it.

use corten_api::cluster_network::CONFIG_MAP;
use corten_api::resources::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES};
use corten_meta::{Resource, Time};
use corten_pki::BootstrapToken;
use serde_json::{Value, json};

use super::{NAMESPACE, PREFIX};

pub(super) const TYPE: &str = "bootstrap.kubernetes.io/token";
pub(super) const PUBLIC: &str = "kube-public";
pub(super) const CLUSTER_INFO: &str = "cluster-info";
/// kubeadm's `NodeBootstrapTokenAuthGroup`.
const BOOTSTRAPPERS: &str = "system:bootstrappers:kubeadm:default-node-token";
const NODES: &str = "system:nodes";
/// A role that Corten's API server has from the first, and upstream's has not.
const POLICIES: &str = "system:node-network-policy";
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// `more` are groups of its holders beside those of a node's.
pub(super) fn secret(token: &BootstrapToken, more: &[&str], expires: Option<Time>, description: Option<&str>) -> Value {
    let groups = [&[BOOTSTRAPPERS], more].concat().join(",");
    let mut data = json!({
        "token-id": token.id,
        "token-secret": token.secret,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": groups,
    });
    if let Some(expires) = expires {
        data["expiration"] = json!(expires.to_string());
    }
    if let Some(description) = description {
        data["description"] = json!(description);
    }
    of_token(token, &data)
}

/// A token that nobody comes in with: its end ends what it owns.
pub(super) fn timer(token: &BootstrapToken, expires: Time, description: &str) -> Value {
    let data = json!({
        "token-id": token.id,
        "token-secret": token.secret,
        "expiration": expires.to_string(),
        "description": description,
    });
    of_token(token, &data)
}

fn of_token(token: &BootstrapToken, data: &Value) -> Value {
    let metadata = json!({ "name": format!("{PREFIX}{}", token.id), "namespace": NAMESPACE });
    json!({ "apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata, "stringData": data })
}

pub(super) fn cluster_info(kubeconfig: &str) -> Value {
    let metadata = json!({ "name": CLUSTER_INFO, "namespace": PUBLIC });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "kubeconfig": kubeconfig } })
}

/// Who holds a token may ask for a node's first certificate and is given it, and may look whether the node's name is taken; a
/// node is given its next one, and leads packets to Services by its own certificate.
pub(super) fn rights() -> Vec<(Resource, &'static str, Value)> {
    const REQUESTS: &str = "system:certificates.k8s.io:certificatesigningrequests";
    let cluster = |name: &str, role: &str, to: &str| {
        (
            CLUSTER_ROLE_BINDINGS,
            "",
            binding(name, "ClusterRole", role, json!({ "apiGroup": RBAC, "kind": "Group", "name": to })),
        )
    };
    let read = |resource: &str| json!([{ "apiGroups": [""], "resources": [resource], "verbs": ["get"] }]);
    let list = |group: &str, resources: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": ["list", "watch"] });
    let policies = json!([list("", &["namespaces", "pods"]), list("networking.k8s.io", &["networkpolicies"])]);
    let mut see_info = role("kubeadm:bootstrap-signer-clusterinfo", read("configmaps"));
    see_info["rules"][0]["resourceNames"] = json!([CLUSTER_INFO]);
    let stranger = json!({ "apiGroup": RBAC, "kind": "User", "name": "system:anonymous" });
    let see_info_binding =
        binding("kubeadm:bootstrap-signer-clusterinfo", "Role", "kubeadm:bootstrap-signer-clusterinfo", stranger);
    let mut see_authority = role("corten:node-root-ca", read("configmaps"));
    see_authority["rules"][0]["resourceNames"] = json!(["kube-root-ca.crt", CONFIG_MAP]);
    let nodes = json!({ "apiGroup": RBAC, "kind": "Group", "name": NODES });
    let see_authority_binding = binding("corten:node-root-ca", "Role", "corten:node-root-ca", nodes);
    vec![
        (ROLES, NAMESPACE, see_authority),
        (ROLE_BINDINGS, NAMESPACE, see_authority_binding),
        (CLUSTER_ROLES, "", role("kubeadm:get-nodes", read("nodes"))),
        (CLUSTER_ROLES, "", role(POLICIES, policies)),
        (ROLES, PUBLIC, see_info),
        (ROLE_BINDINGS, PUBLIC, see_info_binding),
        cluster("kubeadm:get-nodes", "kubeadm:get-nodes", BOOTSTRAPPERS),
        cluster("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", BOOTSTRAPPERS),
        cluster("kubeadm:node-autoapprove-bootstrap", &format!("{REQUESTS}:nodeclient"), BOOTSTRAPPERS),
        cluster("kubeadm:node-autoapprove-certificate-rotation", &format!("{REQUESTS}:selfnodeclient"), NODES),
        cluster("corten:node-proxier", "system:node-proxier", NODES),
        cluster("corten:node-network-policy", POLICIES, NODES),
    ]
}

pub(super) fn role(name: &str, rules: Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

pub(super) fn binding(name: &str, kind: &str, role: &str, subject: Value) -> Value {
    json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": kind, "name": role },
        "subjects": [subject],
    })
}
