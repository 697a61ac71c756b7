//! The roles around signing requests: who may ask for a node's certificate, and who may approve what for which signer.

use serde_json::Value;

use crate::role_objects::{CREATE, named, role, rule};

const GROUP: &[&str] = &["certificates.k8s.io"];

pub(super) fn roles() -> Vec<Value> {
    let asking = |what: &str| {
        let requests = format!("certificatesigningrequests/{what}");
        role(
            &format!("system:certificates.k8s.io:certificatesigningrequests:{what}"),
            vec![rule(CREATE, GROUP, &[&requests])],
        )
    };
    let approving = |signer: &str| {
        let name = format!("kubernetes.io/{signer}");
        let rules = vec![named(&["approve"], GROUP, &["signers"], &[&name])];
        role(&format!("system:certificates.k8s.io:{signer}-approver"), rules)
    };
    let signers = ["kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown"];
    [asking("nodeclient"), asking("selfnodeclient")].into_iter().chain(signers.map(approving)).collect()
}
