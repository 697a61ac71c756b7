//! The types of `io.k8s.kube-aggregator.pkg.apis.apiregistration.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static API_SERVICE: Type = Type {
    name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apiregistration_v1::API_SERVICE_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::apiregistration_v1::API_SERVICE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static API_SERVICE_CONDITION: Type = Type {
    name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).at(&[5]).always(),
        field("reason", String).at(&[4]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static API_SERVICE_SPEC: Type = Type {
    name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec",
    atomic: false,
    fields: &[
        field("caBundle", Bytes).at(&[5]),
        field("group", String).at(&[2]).always(),
        field("groupPriorityMinimum", Int32).zero().required().at(&[7]).always(),
        field("insecureSkipTLSVerify", Boolean).at(&[4]).always(),
        field("service", Object(&super::apiregistration_v1::SERVICE_REFERENCE)).at(&[1]),
        field("version", String).at(&[3]).always(),
        field("versionPriority", Int32).zero().required().at(&[8]).always(),
    ],
    wire: &[4, 1, 5, 3, 0, 2, 6],
};

pub(super) static API_SERVICE_STATUS: Type = Type {
    name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::apiregistration_v1::API_SERVICE_CONDITION)))
        .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
        .at(&[1])],
    wire: &[0],
};

pub(super) static SERVICE_REFERENCE: Type = Type {
    name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference",
    atomic: false,
    fields: &[
        field("name", String).at(&[2]).always(),
        field("namespace", String).at(&[1]).always(),
        field("port", Int32).at(&[3]),
    ],
    wire: &[1, 0, 2],
};
