//! A Pod that is bound is changed only to what its node declares that it can do (`status.declaredFeatures`, KEP-5328).

use corten_api::{
    declared_features::{GUARANTEED_CPU_RESIZE, POD_LEVEL_RESIZE},
    resources::{NODES, PODS},
};
use corten_cacher::body::BoxFuture;
use corten_kinds::Subresource;
use corten_meta::{Quantity, Status};
use serde_json::Value;

use super::{Admission, Attributes, Operation, refusal::forbidden};

pub(crate) struct NodeDeclaredFeatureValidator;

impl Admission for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_change = request.kind.resource == PODS
                && request.operation == Operation::Update
                && matches!(request.subresource, None | Some(Subresource::Resize));
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            let Some(old) = request.old.filter(|_| is_change && !node.is_empty()) else { return Ok(()) };
            let needed = needed(old, pod);
            if needed.is_empty() {
                return Ok(());
            }
            let Some(found) = request.cluster.cache_of(&NODES).get("", node) else {
                return Err(forbidden(request, pod, &format!("node {node:?} not found")));
            };
            let found = found.parse();
            let declared = found["status"]["declaredFeatures"].as_array();
            let has = |name: &str| declared.is_some_and(|it| it.iter().any(|it| it == name));
            let lacking: Vec<&str> = needed.into_iter().filter(|it| !has(it)).collect();
            if lacking.is_empty() {
                return Ok(());
            }
            let lacking = lacking.join(", ");
            let reason = format!("pod update requires features {lacking} which are not available on node {node:?}");
            Err(forbidden(request, pod, &reason))
        })
    }
}

/// What the change needs of the node (`InferForPodUpdate`), in the order of names. What a Pod needs to be placed cannot change.
fn needed(old: &Value, new: &Value) -> Vec<&'static str> {
    let features = [
        (GUARANTEED_CPU_RESIZE, old["status"]["qosClass"] == "Guaranteed" && changes_cpu(&old["spec"], &new["spec"])),
        (POD_LEVEL_RESIZE, changes_pod_level(&old["spec"]["resources"], &new["spec"]["resources"])),
    ];
    features.into_iter().filter(|it| it.1).map(|it| it.0).collect()
}

fn changes_cpu(old: &Value, new: &Value) -> bool {
    let requests = |spec: &Value| -> Vec<Quantity> {
        let containers = spec["containers"].as_array().into_iter().flatten();
        containers.map(|it| quantity(&it["resources"]["requests"]["cpu"])).collect()
    };
    requests(old) != requests(new)
}

fn changes_pod_level(old: &Value, new: &Value) -> bool {
    let amounts = |resources: &Value| {
        ["requests", "limits"].map(|side| {
            let amounts = resources[side].as_object().into_iter().flatten();
            amounts.map(|(name, amount)| (name.clone(), quantity(amount))).collect::<Vec<_>>()
        })
    };
    amounts(old) != amounts(new)
}

fn quantity(value: &Value) -> Quantity {
    value.as_str().and_then(|it| it.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(class: &str, cpu: &str, of_pod: &Value) -> Value {
        let container = json!({ "name": "c", "resources": { "requests": { "cpu": cpu, "memory": "1Gi" } } });
        json!({ "spec": { "containers": [container], "resources": of_pod }, "status": { "qosClass": class } })
    }

    #[test]
    fn what_a_change_needs() {
        let (none, one, two) =
            (Value::Null, json!({ "requests": { "cpu": "1" } }), json!({ "requests": { "cpu": "2" } }));
        for (old, new, needed_of_node) in [
            (pod("Guaranteed", "1", &none), pod("Guaranteed", "2", &none), &[GUARANTEED_CPU_RESIZE][..]),
            (pod("Guaranteed", "1", &none), pod("Guaranteed", "1000m", &none), &[]),
            (pod("Burstable", "1", &none), pod("Burstable", "2", &none), &[]),
            (pod("Burstable", "1", &one), pod("Burstable", "1", &two), &[POD_LEVEL_RESIZE]),
            (pod("Burstable", "1", &none), pod("Burstable", "1", &one), &[POD_LEVEL_RESIZE]),
            (pod("Guaranteed", "1", &one), pod("Guaranteed", "2", &two), &[GUARANTEED_CPU_RESIZE, POD_LEVEL_RESIZE]),
            (pod("Burstable", "1", &one), pod("Burstable", "1", &json!({ "requests": { "cpu": "1000m" } })), &[]),
        ] {
            assert_eq!(needed(&old, &new), needed_of_node, "{old} {new}");
        }
    }
}
