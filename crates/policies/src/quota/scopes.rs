//! The scopes by which a quota counts only some Pods or claims. A conjunction; no scope at all holds for everything.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PODS};
use corten_meta::Resource;
use corten_validation::{
    pod_spec::qos_class,
    read::{items, text},
};
use serde_json::Value;

/// Do all scopes of the quota (its `spec`) hold for the object?
pub fn in_scope(spec: &Value, resource: &Resource, object: &Value) -> bool {
    let named = items(spec, "/scopes").iter().map(|it| (it.as_str().unwrap_or_default(), &Value::Null));
    let selected = items(spec, "/scopeSelector/matchExpressions").iter().map(|it| (text(it, "/scopeName"), it));
    named.chain(selected).all(|(scope, expression)| holds(scope, expression, resource, object))
}

fn holds(scope: &str, expression: &Value, resource: &Resource, object: &Value) -> bool {
    if *resource == PODS {
        of_pod(scope, expression, object)
    } else if *resource == PERSISTENT_VOLUME_CLAIMS {
        scope == "VolumeAttributesClass" && selects(expression, &attribute_classes(object))
    } else {
        // Only the evaluators of Pods and claims know scopes.
        false
    }
}

fn of_pod(scope: &str, expression: &Value, pod: &Value) -> bool {
    let ends_by_itself = || pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|it| it >= 0);
    match scope {
        "Terminating" => ends_by_itself(),
        "NotTerminating" => !ends_by_itself(),
        "BestEffort" => qos_class(pod) == "BestEffort",
        "NotBestEffort" => qos_class(pod) != "BestEffort",
        "PriorityClass" => {
            let class = text(pod, "/spec/priorityClassName");
            selects(expression, if class.is_empty() { &[] } else { std::slice::from_ref(&class) })
        }
        "CrossNamespacePodAffinity" => looks_elsewhere(pod),
        _ => false,
    }
}

/// Does the expression (absent: `Exists`) hold for one of the names, or for the absence of any?
fn selects(expression: &Value, names: &[&str]) -> bool {
    let operator = expression["operator"].as_str().unwrap_or("Exists");
    if operator == "Exists" {
        return !names.is_empty();
    }
    let is_listed = |name: &str| items(expression, "/values").iter().any(|it| it == name);
    let holds = |name: Option<&str>| match operator {
        "In" => name.is_some_and(is_listed),
        "NotIn" => name.is_none_or(|it| !is_listed(it)),
        "DoesNotExist" => name.is_none(),
        _ => false,
    };
    if names.is_empty() { holds(None) } else { names.iter().any(|it| holds(Some(it))) }
}

fn attribute_classes(claim: &Value) -> Vec<&str> {
    let paths = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    paths.iter().map(|it| text(claim, it)).filter(|it| !it.is_empty()).collect()
}

/// Does an affinity term look at Pods of other namespaces?
fn looks_elsewhere(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &pod["spec"]["affinity"][*kind];
        let required = items(affinity, "/requiredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = items(affinity, "/preferredDuringSchedulingIgnoredDuringExecution").iter();
        required
            .chain(preferred.map(|it| &it["podAffinityTerm"]))
            .any(|it| !items(it, "/namespaces").is_empty() || it["namespaceSelector"].is_object())
    })
}
