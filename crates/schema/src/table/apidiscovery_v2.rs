//! What aggregated discovery is made of (`apidiscovery.k8s.io`, KEP-3352): the answer of `/api` and `/apis`, and of no OpenAPI document.
//! The numbers are those of its `generated.proto`; v2beta1 has the same.

use super::build::*;

pub(crate) static API_GROUP_DISCOVERY_LIST: Type = Type {
    name: "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("items", List(&Object(&API_GROUP_DISCOVERY))).at(&[2]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::LIST_META)).at(&[1]).always(),
    ],
    wire: &[3, 1],
};

static API_GROUP_DISCOVERY: Type = Type {
    name: "io.k8s.api.apidiscovery.v2.APIGroupDiscovery",
    atomic: false,
    fields: &[
        field("metadata", Object(&super::meta_v1::OBJECT_META)).at(&[1]).always(),
        field("versions", List(&Object(&API_VERSION_DISCOVERY))).at(&[2]),
    ],
    wire: &[0, 1],
};

static API_VERSION_DISCOVERY: Type = Type {
    name: "io.k8s.api.apidiscovery.v2.APIVersionDiscovery",
    atomic: false,
    fields: &[
        field("freshness", String).at(&[3]).always(),
        field("resources", List(&Object(&API_RESOURCE_DISCOVERY))).at(&[2]),
        field("version", String).at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

static API_RESOURCE_DISCOVERY: Type = Type {
    name: "io.k8s.api.apidiscovery.v2.APIResourceDiscovery",
    atomic: false,
    fields: &[
        field("categories", List(&String)).at(&[7]),
        field("resource", String).at(&[1]).always(),
        field("responseKind", Object(&GROUP_VERSION_KIND)).at(&[2]),
        field("scope", String).at(&[3]).always(),
        field("shortNames", List(&String)).at(&[6]),
        field("singularResource", String).at(&[4]).always(),
        field("subresources", List(&Object(&API_SUBRESOURCE_DISCOVERY))).at(&[8]),
        field("verbs", List(&String)).at(&[5]),
    ],
    wire: &[1, 2, 3, 5, 7, 4, 0, 6],
};

static API_SUBRESOURCE_DISCOVERY: Type = Type {
    name: "io.k8s.api.apidiscovery.v2.APISubresourceDiscovery",
    atomic: false,
    fields: &[
        field("acceptedTypes", List(&Object(&GROUP_VERSION_KIND))).at(&[3]),
        field("responseKind", Object(&GROUP_VERSION_KIND)).at(&[2]),
        field("subresource", String).at(&[1]).always(),
        field("verbs", List(&String)).at(&[4]),
    ],
    wire: &[2, 1, 0, 3],
};

static GROUP_VERSION_KIND: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionKind",
    atomic: false,
    fields: &[
        field("group", String).at(&[1]).always(),
        field("kind", String).at(&[3]).always(),
        field("version", String).at(&[2]).always(),
    ],
    wire: &[0, 2, 1],
};
