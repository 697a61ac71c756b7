//! A Pod of a RuntimeClass pays the class's overhead and goes where its nodes are.

use corten_api::resources::{PODS, RUNTIME_CLASSES};
use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use corten_policies::quota::amounts;
use serde_json::{Value, json};

use super::{Admission, Attributes, refusal::forbidden};

pub(crate) struct RuntimeClass;

const DIFFERS: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl Admission for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !request.creates(&PODS) {
                return Ok(());
            }
            let class = class(request, pod)?;
            if class.is_null() {
                return Ok(());
            }
            let applied = overhead(&class, pod).and_then(|()| placement(&class, pod));
            applied.map_err(|reason| forbidden(request, pod, &reason))
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let overhead = &pod["spec"]["overhead"];
            if !request.creates(&PODS) || overhead.is_null() {
                return Ok(());
            }
            let defined = &class(request, pod)?["overhead"]["podFixed"];
            if defined.is_null() {
                let reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                return Err(forbidden(request, pod, reason));
            }
            if amounts(defined) == amounts(overhead) { Ok(()) } else { Err(forbidden(request, pod, DIFFERS)) }
        })
    }
}

/// The Pod's class; null where it names none.
fn class(request: &Attributes<'_>, pod: &Value) -> Result<Value, Status> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(Value::Null) };
    let classes = request.cluster.caches().get(&RUNTIME_CLASSES).expect("runtime classes are a row of the table");
    let missing = || forbidden(request, pod, &format!("pod rejected: RuntimeClass {name:?} not found"));
    classes.get("", name).map(|it| it.parse()).ok_or_else(missing)
}

fn overhead(class: &Value, pod: &mut Value) -> Result<(), String> {
    let defined = &class["overhead"]["podFixed"];
    let given = &pod["spec"]["overhead"];
    if defined.is_null() {
        return Ok(());
    }
    if !given.is_null() && amounts(given) != amounts(defined) {
        return Err(DIFFERS.into());
    }
    pod["spec"]["overhead"] = defined.clone();
    Ok(())
}

fn placement(class: &Value, pod: &mut Value) -> Result<(), String> {
    let scheduling = &class["scheduling"];
    for (key, wanted) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let given = &pod["spec"]["nodeSelector"][key];
        if !given.is_null() && given != wanted {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        if !pod["spec"]["nodeSelector"].is_object() {
            pod["spec"]["nodeSelector"] = json!({});
        }
        pod["spec"]["nodeSelector"][key] = wanted.clone();
    }
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for toleration in scheduling["tolerations"].as_array().into_iter().flatten() {
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
        }
    }
    if !tolerations.is_empty() {
        pod["spec"]["tolerations"] = tolerations.into();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_shapes_its_pods() {
        let class = json!({
            "overhead": { "podFixed": { "cpu": "100m" } },
            "scheduling": { "nodeSelector": { "vm": "yes" }, "tolerations": [{ "key": "vm", "operator": "Exists" }] },
        });
        let apply = |spec: Value| {
            let mut pod = json!({ "spec": spec });
            overhead(&class, &mut pod).and_then(|()| placement(&class, &mut pod)).map(|()| pod["spec"].take())
        };
        assert_eq!(
            apply(json!({ "overhead": { "cpu": "0.1" }, "nodeSelector": { "a": "b" } })),
            Ok(json!({
                "overhead": { "cpu": "100m" }, "nodeSelector": { "a": "b", "vm": "yes" },
                "tolerations": [{ "key": "vm", "operator": "Exists" }],
            }))
        );
        assert_eq!(apply(json!({ "overhead": { "cpu": "1" } })), Err(DIFFERS.to_owned()));
        assert_eq!(
            apply(json!({ "nodeSelector": { "vm": "no" } })),
            Err("conflict: runtimeClass.scheduling.nodeSelector[vm] = \"yes\"; pod.spec.nodeSelector[vm] = \"no\""
                .into())
        );
    }
}
