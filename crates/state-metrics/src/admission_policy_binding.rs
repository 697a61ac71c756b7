//! What is told of MutatingAdmissionPolicyBindings and ValidatingAdmissionPolicyBindings.

use corten_api::resources::{
    MUTATING_ADMISSION_POLICY_BINDINGS as MUTATING_RESOURCE,
    VALIDATING_ADMISSION_POLICY_BINDINGS as VALIDATING_RESOURCE,
};
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static MUTATING_AT: Resource = MUTATING_RESOURCE;
static VALIDATING_AT: Resource = VALIDATING_RESOURCE;

pub(crate) static MUTATING_ADMISSION_POLICY_BINDINGS: KindMetrics<AdmissionPolicyBinding> = KindMetrics {
    resource: &MUTATING_AT,
    labels: &["namespace", "mutatingadmissionpolicybinding"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: MUTATING,
};

pub(crate) static VALIDATING_ADMISSION_POLICY_BINDINGS: KindMetrics<AdmissionPolicyBinding> = KindMetrics {
    resource: &VALIDATING_AT,
    labels: &["namespace", "validatingadmissionpolicybinding"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: VALIDATING,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AdmissionPolicyBinding {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    param_ref: ParamRef,
    policy_name: String,
    validation_actions: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParamRef {
    name: String,
    namespace: String,
    parameter_not_found_action: String,
}

const MUTATING: &[Family<AdmissionPolicyBinding>] = &[
    created("kube_mutatingadmissionpolicybinding_created"),
    info("kube_mutatingadmissionpolicybinding_info", "Information about the MutatingAdmissionPolicyBinding."),
];

const VALIDATING: &[Family<AdmissionPolicyBinding>] = &[
    created("kube_validatingadmissionpolicybinding_created"),
    info("kube_validatingadmissionpolicybinding_info", "Information about the ValidatingAdmissionPolicyBinding."),
    Family::gauge(
        "kube_validatingadmissionpolicybinding_validation_action",
        "Validation actions for the ValidatingAdmissionPolicyBinding.",
        &["action"],
        |it, out| it.spec.validation_actions.iter().for_each(|action| out.add(&[action], 1.0)),
    ),
];

const fn created(name: &'static str) -> Family<AdmissionPolicyBinding> {
    Family::gauge(name, "Unix creation timestamp.", &[], |it, out| out.one(it.metadata.creation_timestamp))
}

const fn info(name: &'static str, help: &'static str) -> Family<AdmissionPolicyBinding> {
    let labels = &["policy_name", "param_name", "param_namespace", "param_not_found_action"];
    Family::gauge(name, help, labels, |AdmissionPolicyBinding { spec, .. }, out| {
        let ParamRef { name, namespace, parameter_not_found_action } = &spec.param_ref;
        out.add(&[&spec.policy_name, name, namespace, parameter_not_found_action], 1.0);
    })
}
