//! The types of `io.k8s.api.certificates.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CERTIFICATE_SIGNING_REQUEST: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]),
        field("spec", Object(&super::certificates_v1::CERTIFICATE_SIGNING_REQUEST_SPEC)).zero().required().at(&[2]),
        field("status", Object(&super::certificates_v1::CERTIFICATE_SIGNING_REQUEST_STATUS)).zero().at(&[3]),
    ],
};

pub(super) static CERTIFICATE_SIGNING_REQUEST_CONDITION: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[5]),
        field("lastUpdateTime", Time).at(&[4]),
        field("message", String).at(&[3]),
        field("reason", String).at(&[2]),
        field("status", String).zero().required().at(&[6]),
        field("type", String).zero().required().at(&[1]),
    ],
};

pub(super) static CERTIFICATE_SIGNING_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequestSpec",
    atomic: false,
    fields: &[
        field("expirationSeconds", Int32).at(&[8]),
        field("extra", Map(&List(&String))).at(&[6]),
        field("groups", List(&String)).at(&[4]),
        field("request", Bytes).required().at(&[1]),
        field("signerName", String).zero().required().at(&[7]),
        field("uid", String).at(&[3]),
        field("usages", List(&String)).at(&[5]),
        field("username", String).at(&[2]),
    ],
};

pub(super) static CERTIFICATE_SIGNING_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequestStatus",
    atomic: false,
    fields: &[
        field("certificate", Bytes).at(&[2]),
        field("conditions", List(&Object(&super::certificates_v1::CERTIFICATE_SIGNING_REQUEST_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: Replace, retain_keys: false })
            .at(&[1]),
    ],
};

pub(super) static CLUSTER_TRUST_BUNDLE: Type = Type {
    name: "io.k8s.api.certificates.v1.ClusterTrustBundle",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required(),
        field("spec", Object(&super::certificates_v1::CLUSTER_TRUST_BUNDLE_SPEC)).zero().required(),
    ],
};

pub(super) static CLUSTER_TRUST_BUNDLE_SPEC: Type = Type {
    name: "io.k8s.api.certificates.v1.ClusterTrustBundleSpec",
    atomic: false,
    fields: &[field("signerName", String), field("trustBundle", String).zero().required()],
};

pub(super) static POD_CERTIFICATE_REQUEST: Type = Type {
    name: "io.k8s.api.certificates.v1.PodCertificateRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required(),
        field("spec", Object(&super::certificates_v1::POD_CERTIFICATE_REQUEST_SPEC)).zero().required(),
        field("status", Object(&super::certificates_v1::POD_CERTIFICATE_REQUEST_STATUS)).zero(),
    ],
};

pub(super) static POD_CERTIFICATE_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.certificates.v1.PodCertificateRequestSpec",
    atomic: false,
    fields: &[
        field("maxExpirationSeconds", Int32),
        field("nodeName", String).zero().required(),
        field("nodeUID", String).zero().required(),
        field("podName", String).zero().required(),
        field("podUID", String).zero().required(),
        field("serviceAccountName", String).zero().required(),
        field("serviceAccountUID", String).zero().required(),
        field("signerName", String).zero().required(),
        field("stubPKCS10Request", Bytes).required(),
        field("unverifiedUserAnnotations", Map(&String)),
    ],
};

pub(super) static POD_CERTIFICATE_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.certificates.v1.PodCertificateRequestStatus",
    atomic: false,
    fields: &[
        field("beginRefreshAt", Time),
        field("certificateChain", String),
        field("conditions", List(&Object(&super::meta_v1::CONDITION))),
        field("notAfter", Time),
        field("notBefore", Time),
    ],
};
