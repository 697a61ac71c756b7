//! What is told of MutatingAdmissionPolicies and ValidatingAdmissionPolicies.

use corten_api::resources::{
    MUTATING_ADMISSION_POLICIES as MUTATING_RESOURCE, VALIDATING_ADMISSION_POLICIES as VALIDATING_RESOURCE,
};
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static MUTATING_AT: Resource = MUTATING_RESOURCE;
static VALIDATING_AT: Resource = VALIDATING_RESOURCE;

pub(crate) static MUTATING_ADMISSION_POLICIES: KindMetrics<AdmissionPolicy> = KindMetrics {
    resource: &MUTATING_AT,
    labels: &["namespace", "mutatingadmissionpolicy"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: MUTATING,
};

pub(crate) static VALIDATING_ADMISSION_POLICIES: KindMetrics<AdmissionPolicy> = KindMetrics {
    resource: &VALIDATING_AT,
    labels: &["namespace", "validatingadmissionpolicy"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: VALIDATING,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AdmissionPolicy {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    failure_policy: String,
    param_kind: ParamKind,
    reinvocation_policy: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParamKind {
    api_version: String,
    kind: String,
}

const MUTATING: &[Family<AdmissionPolicy>] = &[
    created("kube_mutatingadmissionpolicy_created"),
    Family::gauge(
        "kube_mutatingadmissionpolicy_info",
        "Information about the MutatingAdmissionPolicy.",
        &["param_api_version", "param_kind", "failure_policy", "reinvocation_policy"],
        |AdmissionPolicy { spec, .. }, out| {
            let ParamKind { api_version, kind } = &spec.param_kind;
            out.add(&[api_version, kind, &spec.failure_policy, &spec.reinvocation_policy], 1.0);
        },
    ),
];

const VALIDATING: &[Family<AdmissionPolicy>] = &[
    created("kube_validatingadmissionpolicy_created"),
    Family::gauge(
        "kube_validatingadmissionpolicy_info",
        "Information about the ValidatingAdmissionPolicy.",
        &["param_api_version", "param_kind", "failure_policy"],
        |AdmissionPolicy { spec, .. }, out| {
            let ParamKind { api_version, kind } = &spec.param_kind;
            out.add(&[api_version, kind, &spec.failure_policy], 1.0);
        },
    ),
];

const fn created(name: &'static str) -> Family<AdmissionPolicy> {
    Family::gauge(name, "Unix creation timestamp.", &[], |it, out| out.one(it.metadata.creation_timestamp))
}
