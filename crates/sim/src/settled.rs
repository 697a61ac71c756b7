//! What a cluster must look like once faults have stopped: everything is as its spec says, nothing is left over.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    fights::is_over,
    oracle::{Oracle, controller},
    storage, workloads,
};

/// What is not yet as it should be; empty once the cluster has converged.
pub(crate) fn unsettled(truth: &Oracle) -> Vec<String> {
    let mut missing = Vec::new();
    let uids: BTreeSet<&str> = truth.objects.values().filter_map(|it| it["metadata"]["uid"].as_str()).collect();
    for (key, object) in &truth.objects {
        let meta = &object["metadata"];
        if !meta["deletionTimestamp"].is_null() {
            missing.push(format!("{key} is still being deleted ({})", meta["finalizers"]));
        }
        for owner in meta["ownerReferences"].as_array().into_iter().flatten() {
            if owner["uid"].as_str().is_none_or(|it| !uids.contains(it)) {
                missing.push(format!("{key} is an orphan of {} {}", owner["kind"], owner["name"]));
            }
        }
        if let Some(namespace) = meta["namespace"].as_str()
            && !truth.objects.contains_key(&format!("/registry/namespaces/{namespace}"))
        {
            missing.push(format!("{key} is in a namespace that does not exist"));
        }
    }
    for (key, deployment) in truth.of("deployments") {
        missing.extend(deployment_lacks(deployment).map(|it| format!("{key}: {it}")));
        let uid = &deployment["metadata"]["uid"];
        let sets = truth.of("replicasets").filter(|it| controller(it.1).is_some_and(|it| it["uid"] == *uid));
        let in_use = sets.filter(|it| it.1["spec"]["replicas"].as_i64().unwrap_or(1) > 0).count();
        if in_use > 1 {
            missing.push(format!("{key} has {in_use} sets in use"));
        }
    }
    for (key, set) in truth.of("replicasets") {
        let wanted = set["spec"]["replicas"].as_i64().unwrap_or(1);
        let active = truth.active_pods(set["metadata"]["uid"].as_str().unwrap_or_default());
        let ready = set["status"]["readyReplicas"].as_i64().unwrap_or(0);
        if active != wanted || ready != wanted {
            missing.push(format!("{key} wants {wanted} pods, has {active}, says {ready} are ready"));
        }
    }
    for (key, pod) in truth.of("pods").filter(|it| !is_over(it.1)) {
        if pod["status"]["phase"] != "Running" {
            missing.push(format!("{key} on node {} is {}", pod["spec"]["nodeName"], pod["status"]["phase"]));
        }
    }
    missing.extend(workloads::unsettled(truth));
    missing.extend(storage::unsettled(truth));
    missing
}

fn deployment_lacks(deployment: &Value) -> Option<String> {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let number = |name: &str| status[name].as_i64().unwrap_or(0);
    if number("observedGeneration") != deployment["metadata"]["generation"].as_i64().unwrap_or(0) {
        return Some(format!("its status is of generation {}", status["observedGeneration"]));
    }
    let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    counts.into_iter().find(|it| number(it) != wanted).map(|it| format!("{it} is {}, not {wanted}", number(it)))
}
