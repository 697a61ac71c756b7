//! Roles that hold in one of the cluster's own namespaces only.

use serde_json::{Value, json};

use crate::role_objects::{CREATE, READ, account, binding, events, group, named, role, rule, user};

const SYSTEM: &str = "kube-system";
const PUBLIC: &str = "kube-public";
const READER: &str = "extension-apiserver-authentication-reader";
const SIGNER: &str = "system:controller:bootstrap-signer";
const CLEANER: &str = "system:controller:token-cleaner";
const CLOUD: &str = "system:controller:cloud-provider";
const DNS: &str = "system:controller:dns-controller";
/// Of Corten: which node acts for a driver of volumes is a Lease of the driver's name.
const VOLUMES_LOCK: &str = "system::leader-locking-node-volume-provisioner";
/// Of Corten: nodes go by the addresses, the domain and the pool of load balancers that the cluster says it has.
const NETWORK: &str = "corten:cluster-network";
const LOOPS_LOCK: &str = "system::leader-locking-kube-controller-manager";
const SCHEDULER_LOCK: &str = "system::leader-locking-kube-scheduler";

fn within(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

pub fn roles() -> Vec<Value> {
    let lock = |name: &str| {
        vec![rule(&["watch"], &[""], &["configmaps"]), named(&["get", "update"], &[""], &["configmaps"], &[name])]
    };
    let of_cluster_info = named(&["update"], &[""], &["configmaps"], &["cluster-info"]);
    let delete_secrets = rule(&["delete", "get", "list", "watch"], &[""], &["secrets"]);
    let of_authentication = named(READ, &[""], &["configmaps"], &["extension-apiserver-authentication"]);
    let of_network = named(READ, &[""], &["configmaps"], &["corten-cluster-network"]);
    vec![
        within(PUBLIC, role(SIGNER, vec![rule(READ, &[""], &["configmaps"]), of_cluster_info, events()])),
        within(SYSTEM, role(READER, vec![of_authentication])),
        within(SYSTEM, role(SIGNER, vec![rule(READ, &[""], &["secrets"])])),
        within(SYSTEM, role(CLOUD, vec![rule(&[READ, CREATE].concat(), &[""], &["configmaps"])])),
        within(SYSTEM, role(DNS, name_server())),
        within(SYSTEM, role(CLEANER, vec![delete_secrets, events()])),
        within(SYSTEM, role(NETWORK, vec![of_network])),
        within(SYSTEM, role(LOOPS_LOCK, lock("kube-controller-manager"))),
        within(SYSTEM, role(SCHEDULER_LOCK, lock("kube-scheduler"))),
        within(
            SYSTEM,
            role(VOLUMES_LOCK, vec![rule(&["create", "get", "update"], &["coordination.k8s.io"], &["leases"])]),
        ),
    ]
}

/// Its own Service, the slice that leads to it, and the lease of whom it leads to.
fn name_server() -> Vec<Value> {
    let (service, slice, lease) = (["services"], ["endpointslices"], ["leases"]);
    vec![
        rule(CREATE, &[""], &service),
        named(&["patch"], &[""], &service, &["kube-dns"]),
        rule(CREATE, &["discovery.k8s.io"], &slice),
        named(&["delete", "patch"], &["discovery.k8s.io"], &slice, &["kube-dns"]),
        rule(CREATE, &["coordination.k8s.io"], &lease),
        named(&["get", "update"], &["coordination.k8s.io"], &lease, &["corten-name-server"]),
    ]
}

pub fn bindings() -> Vec<Value> {
    let bound = |namespace: &str, name: &str, role: &str, subjects| {
        let mut binding = binding(name, role, subjects);
        binding["roleRef"]["kind"] = json!("Role");
        within(namespace, binding)
    };
    let (loops, scheduler) = (user("system:kube-controller-manager"), user("system:kube-scheduler"));
    vec![
        bound(PUBLIC, SIGNER, SIGNER, vec![account("bootstrap-signer")]),
        bound(
            SYSTEM,
            "system::extension-apiserver-authentication-reader",
            READER,
            vec![loops.clone(), scheduler.clone()],
        ),
        bound(SYSTEM, SIGNER, SIGNER, vec![account("bootstrap-signer")]),
        bound(SYSTEM, CLOUD, CLOUD, vec![account("cloud-provider")]),
        bound(SYSTEM, DNS, DNS, vec![account("dns-controller")]),
        bound(SYSTEM, CLEANER, CLEANER, vec![account("token-cleaner")]),
        bound(SYSTEM, NETWORK, NETWORK, vec![user("system:kube-proxy"), group("system:nodes")]),
        bound(SYSTEM, LOOPS_LOCK, LOOPS_LOCK, vec![loops, account("kube-controller-manager")]),
        bound(SYSTEM, SCHEDULER_LOCK, SCHEDULER_LOCK, vec![scheduler, account("kube-scheduler")]),
        bound(SYSTEM, VOLUMES_LOCK, VOLUMES_LOCK, vec![user("system:node-volume-provisioner")]),
    ]
}
