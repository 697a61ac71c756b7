//! The types of `io.k8s.api.networking.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static HTTP_INGRESS_PATH: Type = Type {
    name: "io.k8s.api.networking.v1.HTTPIngressPath",
    atomic: false,
    fields: &[
        field("backend", Object(&super::networking_v1::INGRESS_BACKEND)).zero().required().at(&[2]).always(),
        field("path", String).omitted().at(&[1]).always(),
        field("pathType", String).required().at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static HTTP_INGRESS_RULE_VALUE: Type = Type {
    name: "io.k8s.api.networking.v1.HTTPIngressRuleValue",
    atomic: false,
    fields: &[field("paths", List(&Object(&super::networking_v1::HTTP_INGRESS_PATH))).required().at(&[1])],
    wire: &[0],
};

pub(super) static IP_ADDRESS: Type = Type {
    name: "io.k8s.api.networking.v1.IPAddress",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::networking_v1::IP_ADDRESS_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static IP_ADDRESS_SPEC: Type = Type {
    name: "io.k8s.api.networking.v1.IPAddressSpec",
    atomic: false,
    fields: &[field("parentRef", Object(&super::networking_v1::PARENT_REFERENCE)).required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static IP_BLOCK: Type = Type {
    name: "io.k8s.api.networking.v1.IPBlock",
    atomic: false,
    fields: &[field("cidr", String).zero().required().at(&[1]).always(), field("except", List(&String)).at(&[2])],
    wire: &[0, 1],
};

pub(super) static INGRESS: Type = Type {
    name: "io.k8s.api.networking.v1.Ingress",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::networking_v1::INGRESS_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::networking_v1::INGRESS_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static INGRESS_BACKEND: Type = Type {
    name: "io.k8s.api.networking.v1.IngressBackend",
    atomic: false,
    fields: &[
        field("resource", Object(&super::core_v1::TYPED_LOCAL_OBJECT_REFERENCE)).at(&[3]),
        field("service", Object(&super::networking_v1::INGRESS_SERVICE_BACKEND)).at(&[4]),
    ],
    wire: &[0, 1],
};

pub(super) static INGRESS_CLASS: Type = Type {
    name: "io.k8s.api.networking.v1.IngressClass",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::networking_v1::INGRESS_CLASS_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static INGRESS_CLASS_PARAMETERS_REFERENCE: Type = Type {
    name: "io.k8s.api.networking.v1.IngressClassParametersReference",
    atomic: false,
    fields: &[
        field("apiGroup", String).at(&[1]),
        field("kind", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[3]).always(),
        field("namespace", String).at(&[5]),
        field("scope", String).at(&[4]),
    ],
    wire: &[0, 1, 2, 4, 3],
};

pub(super) static INGRESS_CLASS_SPEC: Type = Type {
    name: "io.k8s.api.networking.v1.IngressClassSpec",
    atomic: false,
    fields: &[
        field("controller", String).omitted().at(&[1]).always(),
        field("parameters", Object(&super::networking_v1::INGRESS_CLASS_PARAMETERS_REFERENCE)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static INGRESS_LOAD_BALANCER_INGRESS: Type = Type {
    name: "io.k8s.api.networking.v1.IngressLoadBalancerIngress",
    atomic: false,
    fields: &[
        field("hostname", String).omitted().at(&[2]).always(),
        field("ip", String).omitted().at(&[1]).always(),
        field("ports", List(&Object(&super::networking_v1::INGRESS_PORT_STATUS))).at(&[4]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static INGRESS_LOAD_BALANCER_STATUS: Type = Type {
    name: "io.k8s.api.networking.v1.IngressLoadBalancerStatus",
    atomic: false,
    fields: &[field("ingress", List(&Object(&super::networking_v1::INGRESS_LOAD_BALANCER_INGRESS))).at(&[1])],
    wire: &[0],
};

pub(super) static INGRESS_PORT_STATUS: Type = Type {
    name: "io.k8s.api.networking.v1.IngressPortStatus",
    atomic: false,
    fields: &[
        field("error", String).at(&[3]),
        field("port", Int32).zero().required().at(&[1]).always(),
        field("protocol", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static INGRESS_RULE: Type = Type {
    name: "io.k8s.api.networking.v1.IngressRule",
    atomic: false,
    fields: &[
        field("host", String).omitted().at(&[1]).always(),
        field("http", Object(&super::networking_v1::HTTP_INGRESS_RULE_VALUE)).at(&[2, 1]),
    ],
    wire: &[0, 1],
};

pub(super) static INGRESS_SERVICE_BACKEND: Type = Type {
    name: "io.k8s.api.networking.v1.IngressServiceBackend",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("port", Object(&super::networking_v1::SERVICE_BACKEND_PORT)).zero().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static INGRESS_SPEC: Type = Type {
    name: "io.k8s.api.networking.v1.IngressSpec",
    atomic: false,
    fields: &[
        field("defaultBackend", Object(&super::networking_v1::INGRESS_BACKEND)).at(&[1]),
        field("ingressClassName", String).at(&[4]),
        field("rules", List(&Object(&super::networking_v1::INGRESS_RULE))).at(&[3]),
        field("tls", List(&Object(&super::networking_v1::INGRESS_TLS))).at(&[2]),
    ],
    wire: &[0, 3, 2, 1],
};

pub(super) static INGRESS_STATUS: Type = Type {
    name: "io.k8s.api.networking.v1.IngressStatus",
    atomic: false,
    fields: &[field("loadBalancer", Object(&super::networking_v1::INGRESS_LOAD_BALANCER_STATUS))
        .zero()
        .at(&[1])
        .always()],
    wire: &[0],
};

pub(super) static INGRESS_TLS: Type = Type {
    name: "io.k8s.api.networking.v1.IngressTLS",
    atomic: false,
    fields: &[field("hosts", List(&String)).at(&[1]), field("secretName", String).omitted().at(&[2]).always()],
    wire: &[0, 1],
};

pub(super) static NETWORK_POLICY: Type = Type {
    name: "io.k8s.api.networking.v1.NetworkPolicy",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::networking_v1::NETWORK_POLICY_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static NETWORK_POLICY_EGRESS_RULE: Type = Type {
    name: "io.k8s.api.networking.v1.NetworkPolicyEgressRule",
    atomic: false,
    fields: &[
        field("ports", List(&Object(&super::networking_v1::NETWORK_POLICY_PORT))).at(&[1]),
        field("to", List(&Object(&super::networking_v1::NETWORK_POLICY_PEER))).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static NETWORK_POLICY_INGRESS_RULE: Type = Type {
    name: "io.k8s.api.networking.v1.NetworkPolicyIngressRule",
    atomic: false,
    fields: &[
        field("from", List(&Object(&super::networking_v1::NETWORK_POLICY_PEER))).at(&[2]),
        field("ports", List(&Object(&super::networking_v1::NETWORK_POLICY_PORT))).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static NETWORK_POLICY_PEER: Type = Type {
    name: "io.k8s.api.networking.v1.NetworkPolicyPeer",
    atomic: false,
    fields: &[
        field("ipBlock", Object(&super::networking_v1::IP_BLOCK)).at(&[3]),
        field("namespaceSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[2]),
        field("podSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[1]),
    ],
    wire: &[2, 1, 0],
};

pub(super) static NETWORK_POLICY_PORT: Type = Type {
    name: "io.k8s.api.networking.v1.NetworkPolicyPort",
    atomic: false,
    fields: &[
        field("endPort", Int32).at(&[3]),
        field("port", IntOrString).at(&[2]),
        field("protocol", String).at(&[1]),
    ],
    wire: &[2, 1, 0],
};

pub(super) static NETWORK_POLICY_SPEC: Type = Type {
    name: "io.k8s.api.networking.v1.NetworkPolicySpec",
    atomic: false,
    fields: &[
        field("egress", List(&Object(&super::networking_v1::NETWORK_POLICY_EGRESS_RULE))).at(&[3]),
        field("ingress", List(&Object(&super::networking_v1::NETWORK_POLICY_INGRESS_RULE))).at(&[2]),
        field("podSelector", Object(&super::meta_v1::LABEL_SELECTOR)).zero().at(&[1]).always(),
        field("policyTypes", List(&String)).at(&[4]),
    ],
    wire: &[2, 1, 0, 3],
};

pub(super) static PARENT_REFERENCE: Type = Type {
    name: "io.k8s.api.networking.v1.ParentReference",
    atomic: false,
    fields: &[
        field("group", String).omitted().at(&[1]).always(),
        field("name", String).required().at(&[4]).always(),
        field("namespace", String).at(&[3]).always(),
        field("resource", String).required().at(&[2]).always(),
    ],
    wire: &[0, 3, 2, 1],
};

pub(super) static SERVICE_BACKEND_PORT: Type = Type {
    name: "io.k8s.api.networking.v1.ServiceBackendPort",
    atomic: true,
    fields: &[field("name", String).omitted().at(&[1]).always(), field("number", Int32).omitted().at(&[2]).always()],
    wire: &[0, 1],
};

pub(super) static SERVICE_CIDR: Type = Type {
    name: "io.k8s.api.networking.v1.ServiceCIDR",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::networking_v1::SERVICE_CIDR_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::networking_v1::SERVICE_CIDR_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static SERVICE_CIDR_SPEC: Type = Type {
    name: "io.k8s.api.networking.v1.ServiceCIDRSpec",
    atomic: false,
    fields: &[field("cidrs", List(&String)).at(&[1])],
    wire: &[0],
};

pub(super) static SERVICE_CIDR_STATUS: Type = Type {
    name: "io.k8s.api.networking.v1.ServiceCIDRStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::meta_v1::CONDITION)))
        .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
        .at(&[1])],
    wire: &[0],
};
