//! What the node authorizer grants every node, as rules. The role of the same content is bound to nobody.

use serde_json::Value;

use crate::role_objects::{CREATE, READ, rule};

const CHANGE: &[&str] = &["patch", "update"];

pub(crate) fn rules() -> Vec<Value> {
    let own = &["create", "delete", "get", "patch", "update"];
    let slices = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    vec![
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["localsubjectaccessreviews", "subjectaccessreviews"]),
        rule(READ, &[""], &["services"]),
        rule(&["create", "get", "list", "watch"], &[""], &["nodes"]),
        rule(CHANGE, &[""], &["nodes/status"]),
        rule(CHANGE, &[""], &["nodes"]),
        // Upstream's kubelets write events of the core group only.
        rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        rule(READ, &[""], &["pods"]),
        rule(&["create", "delete"], &[""], &["pods"]),
        rule(CHANGE, &[""], &["pods/status"]),
        rule(CREATE, &[""], &["pods/eviction"]),
        rule(READ, &[""], &["configmaps", "secrets"]),
        rule(&["get"], &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(&["get"], &[""], &["endpoints"]),
        signing_requests(),
        rule(own, &["coordination.k8s.io"], &["leases"]),
        rule(&["get"], &["storage.k8s.io"], &["volumeattachments"]),
        rule(CREATE, &[""], &["serviceaccounts/token"]),
        rule(&["get"], &[""], &["serviceaccounts"]),
        rule(&["get", "patch", "update"], &[""], &["persistentvolumeclaims/status"]),
        rule(READ, &["storage.k8s.io"], &["csidrivers"]),
        rule(own, &["storage.k8s.io"], &["csinodes"]),
        rule(READ, &["node.k8s.io"], &["runtimeclasses"]),
        rule(&["get"], &["resource.k8s.io"], &["resourceclaims"]),
        rule(slices, &["resource.k8s.io"], &["resourceslices"]),
        rule(READ, &["certificates.k8s.io"], &["clustertrustbundles"]),
        rule(&["create", "get", "list", "watch"], &["certificates.k8s.io"], &["podcertificaterequests"]),
    ]
}

/// Also what who joins as a node needs.
pub(crate) fn signing_requests() -> Value {
    rule(&["create", "get", "list", "watch"], &["certificates.k8s.io"], &["certificatesigningrequests"])
}
