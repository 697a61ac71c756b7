//! The types of `io.k8s.api.certificates.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CERTIFICATE_SIGNING_REQUEST: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::certificates_v1::CERTIFICATE_SIGNING_REQUEST_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::certificates_v1::CERTIFICATE_SIGNING_REQUEST_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static CERTIFICATE_SIGNING_REQUEST_CONDITION: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[5]).always(),
        field("lastUpdateTime", Time).at(&[4]).always(),
        field("message", String).omitted().at(&[3]).always(),
        field("reason", String).omitted().at(&[2]).always(),
        field("status", String).zero().required().at(&[6]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 3, 2, 1, 0, 4],
};

pub(super) static CERTIFICATE_SIGNING_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequestSpec",
    atomic: false,
    fields: &[
        field("expirationSeconds", Int32).at(&[8]),
        field("extra", Map(&List(&String))).at(&[6]),
        field("groups", List(&String)).at(&[4]),
        field("request", Bytes).required().at(&[1]),
        field("signerName", String).zero().required().at(&[7]).always(),
        field("uid", String).omitted().at(&[3]).always(),
        field("usages", List(&String)).at(&[5]),
        field("username", String).omitted().at(&[2]).always(),
    ],
    wire: &[3, 7, 5, 2, 6, 1, 4, 0],
};

pub(super) static CERTIFICATE_SIGNING_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.certificates.v1.CertificateSigningRequestStatus",
    atomic: false,
    fields: &[
        field("certificate", Bytes).omitted().at(&[2]),
        field("conditions", List(&Object(&super::certificates_v1::CERTIFICATE_SIGNING_REQUEST_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: Replace, retain_keys: false })
            .at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static CLUSTER_TRUST_BUNDLE: Type = Type {
    name: "io.k8s.api.certificates.v1.ClusterTrustBundle",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::certificates_v1::CLUSTER_TRUST_BUNDLE_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static CLUSTER_TRUST_BUNDLE_SPEC: Type = Type {
    name: "io.k8s.api.certificates.v1.ClusterTrustBundleSpec",
    atomic: false,
    fields: &[
        field("signerName", String).at(&[1]).always(),
        field("trustBundle", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static POD_CERTIFICATE_REQUEST: Type = Type {
    name: "io.k8s.api.certificates.v1.PodCertificateRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::certificates_v1::POD_CERTIFICATE_REQUEST_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::certificates_v1::POD_CERTIFICATE_REQUEST_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static POD_CERTIFICATE_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.certificates.v1.PodCertificateRequestSpec",
    atomic: false,
    fields: &[
        field("maxExpirationSeconds", Int32).at(&[8]),
        field("nodeName", String).zero().required().at(&[6]).always(),
        field("nodeUID", String).zero().required().at(&[7]).always(),
        field("podName", String).zero().required().at(&[2]).always(),
        field("podUID", String).zero().required().at(&[3]).always(),
        field("serviceAccountName", String).zero().required().at(&[4]).always(),
        field("serviceAccountUID", String).zero().required().at(&[5]).always(),
        field("signerName", String).zero().required().at(&[1]).always(),
        field("stubPKCS10Request", Bytes).required().at(&[12]),
        field("unverifiedUserAnnotations", Map(&String)).at(&[11]),
    ],
    wire: &[7, 3, 4, 5, 6, 1, 2, 0, 9, 8],
};

pub(super) static POD_CERTIFICATE_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.certificates.v1.PodCertificateRequestStatus",
    atomic: false,
    fields: &[
        field("beginRefreshAt", Time).at(&[5]),
        field("certificateChain", String).omitted().at(&[2]).always(),
        field("conditions", List(&Object(&super::meta_v1::CONDITION))).at(&[1]),
        field("notAfter", Time).at(&[6]),
        field("notBefore", Time).at(&[4]),
    ],
    wire: &[2, 1, 4, 0, 3],
};
