//! Fills in `default` and `defaultRequest` of a LimitRange, and leaves an annotation that says what it did.

use corten_validation::{
    fill::{Object, each, fill as fill_absent, made},
    pod_spec::qos_class,
    read::{items, text},
};
use serde_json::{Value, json};

use crate::quota::{Amounts, amounts};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives the Pod's containers what the LimitRange has for containers that say nothing.
pub fn fill(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    for limit in items(range, "/spec/limits").iter().filter(|it| it["type"] == "Container") {
        requests.extend(amounts(&limit["defaultRequest"]));
        limits.extend(amounts(&limit["default"]));
    }
    let mut notes = Vec::new();
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        for (list, noun) in [("containers", "container"), ("initContainers", "init container")] {
            for container in each(spec, list) {
                let subject = format!("{noun} {}", corten_validation::fill::text(container, "name"));
                notes.extend(given(container, "requests", &requests).map(|it| format!("{it} request for {subject}")));
                notes.extend(given(container, "limits", &limits).map(|it| format!("{it} limit for {subject}")));
            }
        }
    }
    if notes.is_empty() {
        return;
    }
    if !pod["metadata"]["annotations"].is_object() {
        pod["metadata"]["annotations"] = json!({});
    }
    pod["metadata"]["annotations"][ANNOTATION] = format!("LimitRanger plugin set: {}", notes.join("; ")).into();
    // It follows from what containers ask for.
    if !text(pod, "/status/qosClass").is_empty() {
        pod["status"]["qosClass"] = qos_class(pod).into();
    }
}

/// Fills in what the container leaves out; gives the names, if any, as `cpu, memory`.
fn given(container: &mut Object, side: &str, defaults: &Amounts) -> Option<String> {
    if defaults.is_empty() {
        return None;
    }
    let of = made(made(container, "resources")?, side)?;
    let missing: Vec<&String> = defaults.keys().filter(|it| !of.contains_key(*it)).collect();
    for name in &missing {
        fill_absent(of, name, defaults[*name].to_string());
    }
    if missing.is_empty() {
        return None;
    }
    Some(missing.into_iter().map(|it| &**it).collect::<Vec<_>>().join(", "))
}
