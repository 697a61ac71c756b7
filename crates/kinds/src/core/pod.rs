//! Containers that run together on one node.

mod addresses;
mod affinity;
pub(super) mod annotations;
mod app_armor;
mod columns;
mod ephemeral_containers;
pub mod host_ports;
mod resize;
mod update;

use corten_api::resources::PODS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{inner, made},
    pod_spec,
    read::text,
};
use serde_json::{Value, json};

use crate::{BuiltIn, Policy, Subresource, Verb};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: PODS,
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[
        Subresource::Attach,
        Subresource::Binding,
        Subresource::EphemeralContainers,
        Subresource::Eviction,
        Subresource::Exec,
        Subresource::Log,
        Subresource::PortForward,
        Subresource::Proxy,
        Subresource::Resize,
        Subresource::Status,
    ],
    schema: "io.k8s.api.core.v1.Pod",
    view_of: None,
    selectable_fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
    columns: columns::COLUMNS,
    policy: &Pod,
};

const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

struct Pod;

/// The claim that is made for an ephemeral volume has the names of both (ValidateVolumes).
fn claims_of_its_own(pod: Cursor<'_>) {
    let name = pod.at("metadata").at("name").str();
    for volume in pod.at("spec").list("volumes").filter(|it| it.at("ephemeral").exists()) {
        let volume = volume.at("name");
        if !name.is_empty() && !volume.is_empty() {
            let claim = format!("{name}-{}", volume.str());
            field::dns1123_subdomain(&claim).iter().for_each(|it| volume.invalid(&format!("PVC name {claim:?}: {it}")));
        }
    }
}

impl Policy for Pod {
    fn default(&self, object: &mut Value) {
        let is_open = host_ports::openness(object);
        if let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) {
            pod_spec::default(spec);
            pod_spec::default_requests(spec, is_open);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        affinity::merge_label_keys(object);
        app_armor::from_annotations(object);
        let mut status = json!({"phase": "Pending", "qosClass": pod_spec::qos_class(object)});
        if object["spec"]["schedulingGates"].as_array().is_some_and(|it| !it.is_empty()) {
            status["conditions"] = json!([
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": GATED}]);
        }
        if let Some(object) = object.as_object_mut() {
            object.insert("status".into(), status);
        }
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        addresses::agree(new);
        if let Some(class) = old["status"].get("qosClass")
            && let Some(status) = new.as_object_mut().and_then(|it| inner(it, "status"))
        {
            status.insert("qosClass".into(), class.clone());
        }
    }

    /// Only the Pod's owner and the garbage collector say whose it is.
    fn status_keeps(&self) -> &'static [&'static str] {
        &["deletionTimestamp", "ownerReferences"]
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |pod| {
            claims_of_its_own(pod);
            pod_spec::validate(pod.at("spec"), &host_ports::open(&host_ports::noted(object)));
            // They come by a subresource of their own, to Pods that are stored.
            let is_new = !pod.at("metadata").at("resourceVersion").exists();
            if is_new && !pod.at("spec").at("ephemeralContainers").is_empty() {
                pod.at("spec").at("ephemeralContainers").forbidden("cannot be set on create");
            }
            for list in ["containers", "initContainers"] {
                for image in pod.at("spec").list(list).map(|it| it.at("image")) {
                    if image.str().trim() != image.str() {
                        image.invalid("must not have leading or trailing whitespace");
                    }
                }
            }
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let of_annotations = if old.is_none() { app_armor::warnings(new) } else { Vec::new() };
        of_annotations.into_iter().chain(pod_spec::warnings(new, old, &["spec"], pod_spec::Name::OfHost)).collect()
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        update::violations_of(new, old)
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |pod| {
            annotations::validate_update(pod, old);
            addresses::validate(pod.at("status"), &old["status"]);
        })
    }

    fn take_part(&self, subresource: Subresource, asked: &Value, old: &Value) -> Value {
        match subresource {
            Subresource::EphemeralContainers => ephemeral_containers::taken(asked, old),
            Subresource::Resize => resize::taken(asked, old),
            _ => old.clone(),
        }
    }

    fn validate_part(&self, subresource: Subresource, new: &Value, old: &Value) -> Vec<Violation> {
        match subresource {
            Subresource::EphemeralContainers => ephemeral_containers::violations_of(new, old),
            Subresource::Resize => resize::violations_of(new, old),
            _ => Vec::new(),
        }
    }

    /// A Pod that no node runs, or that has ended, has nothing to end gracefully.
    fn grace_seconds(&self, object: &Value, asked: Option<i64>) -> i64 {
        if text(object, "/spec/nodeName").is_empty() || is_terminal(object) {
            return 0;
        }
        let own = object["spec"]["terminationGracePeriodSeconds"].as_i64();
        let seconds = asked.or(own).unwrap_or(30);
        if seconds < 0 { 1 } else { seconds }
    }
}

fn is_terminal(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;
